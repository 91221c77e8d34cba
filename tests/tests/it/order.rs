//! The rows that the recorded step gathers are those of the loader, on every executor.

use brisk_kernels::{Advance, BatchRows, DType, ORDER_LEN, STATE_LEN, sequential_order, shuffled_order};
use brisk_loader::{Order, Shuffle};
use brisk_program::{Device, Error, Executable, Persistent, Program};

use crate::gpu::{cpu, gpu};

/// Numbers of rows with batch sizes: one, a power of two, next to it, one that divides, one that does not, one that is larger.
const CASES: [(u32, usize); 15] = [
    (1, 1),
    (1, 7),
    (2, 1),
    (2, 2),
    (3, 2),
    (3, 4),
    (5, 2),
    (5, 64),
    (1000, 37),
    (1000, 250),
    (1000, 1001),
    (4097, 65),
    (4097, 4096),
    (100_003, 1000),
    (100_003, 65_536),
];

/// Seeds with epochs.
const KEYS: [(u64, u32); 4] = [(0, 0), (0, 1), (42, 7), (u64::MAX, u32::MAX)];

struct Batches {
    executable: Executable,
    order: Persistent,
    state: Persistent,
    rows: Persistent,
    weights: Persistent,
}

impl Batches {
    fn new(device: &Device, n: usize) -> Result<Self, Error> {
        let [order, state] =
            [("order", ORDER_LEN), ("state", STATE_LEN)].map(|(name, len)| Persistent::new(name, DType::U32, len));
        let (rows, weights) = (Persistent::new("rows", DType::U32, n), Persistent::new("weights", DType::F32, n));
        let mut program = Program::new("batches");
        let args = [&order, &state, &rows, &weights].map(|persistent| program.persistent(persistent));
        program.push(BatchRows { first: 0, n }, &args)?;
        program.push(Advance, &args[1..2])?;
        Ok(Self { executable: device.compile(&program)?, order, state, rows, weights })
    }

    /// All batches of an epoch, concatenated, including padding.
    fn epoch(&self, order: &[u32; ORDER_LEN], n_batches: usize) -> Result<(Vec<u32>, Vec<f32>), Error> {
        let device = self.executable.device();
        device.write(&self.order, order)?;
        device.write(&self.state, &[0_u32; STATE_LEN])?;
        let (mut rows, mut weights) = (Vec::new(), Vec::new());
        for _ in 0..n_batches {
            self.executable.run(1)?;
            rows.extend(device.read::<u32>(&self.rows)?);
            weights.extend(device.read::<f32>(&self.weights)?);
        }
        Ok((rows, weights))
    }
}

fn check(device: &Device, cases: &[(u32, usize)]) -> Result<(), Error> {
    for &(n_rows, size) in cases {
        let batches = Batches::new(device, size)?;
        for (seed, epoch) in KEYS {
            let case = format!("{n_rows} rows in batches of {size}, seed {seed}, epoch {epoch}");
            let shuffle = Shuffle::new(n_rows, seed, epoch);
            assert_eq!(Order::Shuffled { seed }.shuffle(n_rows, epoch).as_ref(), Some(&shuffle), "{case}");
            let order = shuffled_order(n_rows, shuffle.bits(), shuffle.keys(), size as u32, 0);
            check_epoch(&batches, &order, n_rows, size, |position| shuffle.row(position), &case)?;
        }
        let order = sequential_order(n_rows, size as u32, 0);
        check_epoch(&batches, &order, n_rows, size, |position| position, &format!("{n_rows} rows in order, by {size}"))?;
    }
    Ok(())
}

fn check_epoch(
    batches: &Batches,
    order: &[u32; ORDER_LEN],
    n_rows: u32,
    size: usize,
    row_at: impl Fn(u32) -> u32,
    case: &str,
) -> Result<(), Error> {
    let (rows, weights) = batches.epoch(order, (n_rows as usize).div_ceil(size))?;
    let (real, padding) = rows.split_at(n_rows as usize);
    for (position, &row) in (0_u32..).zip(real) {
        assert_eq!(row, row_at(position), "{case}: the row at position {position}");
    }
    let last_batch = &real[n_rows as usize / size * size..];
    assert!(padding.iter().eq(last_batch.iter().cycle().take(padding.len())), "{case}: padding repeats the rows of the batch");
    let (real_weights, padding_weights) = weights.split_at(n_rows as usize);
    assert!(real_weights.iter().all(|&weight| weight == 1.0), "{case}: rows weigh 1");
    assert!(padding_weights.iter().all(|&weight| weight == 0.0), "{case}: padding weighs nothing");

    let mut sorted = real.to_vec();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..n_rows), "{case}: every row comes once");
    Ok(())
}

#[test]
fn the_twin_takes_the_loaders_rows() -> Result<(), Error> {
    check(&cpu(2), &CASES)
}

#[test]
fn the_gpu_takes_the_loaders_rows() -> Result<(), Error> {
    gpu().map_or(Ok(()), |device| check(&device, &CASES))
}

#[test]
fn ranks_that_share_a_batch_take_the_loaders_rows_together() -> Result<(), Error> {
    // Two ranks of 30 rows each: a stride of 60, the second offset by 30.
    let (n_rows, size) = (1000_u32, 30_usize);
    let shuffle = Shuffle::new(n_rows, 5, 2);
    for device in std::iter::once(cpu(2)).chain(gpu()) {
        let batches = Batches::new(&device, size)?;
        for rank in 0..2_u32 {
            let order = shuffled_order(n_rows, shuffle.bits(), shuffle.keys(), 2 * size as u32, rank * size as u32);
            let (rows, weights) = batches.epoch(&order, 17)?;
            for (i, (&row, &weight)) in rows.iter().zip(&weights).enumerate() {
                let start = (i / size * 2 * size) as u32 + rank * size as u32;
                let position = start + (i % size) as u32;
                let repeated = || start + (i % size) as u32 % (n_rows - start);
                let expected = if position < n_rows { (shuffle.row(position), 1.0) } else { (shuffle.row(repeated()), 0.0) };
                assert_eq!((row, weight), expected, "rank {rank}, position {position} on {}", device.info());
            }
        }
    }
    Ok(())
}
