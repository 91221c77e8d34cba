//! All-reduce between threads against a copy of the same bytes by one thread, both warm: `cargo bench -p brisk-replicate`.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::hint::black_box;
use std::time::Instant;

use brisk_replicate::{CollectiveExt, Error, ReduceOp, run_replicas};

fn main() -> Result<(), Error> {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (sizes, n_rounds): (&[usize], usize) = if smoke { (&[4096], 2) } else { (&[16 << 10, 1 << 20, 4 << 20, 64 << 20], 15) };
    for n_ranks in [2, 4] {
        for &n_bytes in sizes {
            measure(n_ranks, n_bytes / 4, n_rounds)?;
        }
    }
    Ok(())
}

/// Rounds in turn: a copy, which moves twice the bytes, and an all-reduce, which must read and write each buffer once.
fn measure(n_ranks: usize, len: usize, n_rounds: usize) -> Result<(), Error> {
    let times = run_replicas(n_ranks, |replica| {
        let (source, mut copy) = (vec![1.0_f32; len], vec![0.0_f32; len]);
        let mut values = vec![1.0_f32; len];
        let n_calls = (1 << 22) / len + 1;
        let (mut copying, mut reducing) = (Vec::new(), Vec::new());
        for round in 0..=n_rounds {
            replica.all_reduce(&mut [0_u8], ReduceOp::Max)?;
            let since = Instant::now();
            for _ in 0..n_calls {
                black_box(&mut copy).copy_from_slice(black_box(&source));
            }
            let copied = since.elapsed().as_secs_f64() / n_calls as f64;
            values.fill(1.0);
            replica.all_reduce(&mut [0_u8], ReduceOp::Max)?;
            let since = Instant::now();
            for _ in 0..n_calls {
                replica.all_reduce(&mut values, ReduceOp::Mean)?;
            }
            let reduced = since.elapsed().as_secs_f64() / n_calls as f64;
            assert!(values.iter().all(|&value| value == 1.0), "the mean of ones is one");
            if round > 0 {
                copying.push(copied);
                reducing.push(reduced);
            }
        }
        Ok::<_, Error>((median(copying), median(reducing)))
    })?;
    let (copied, reduced) = times[0];
    let n_bytes = 4 * len;
    // 2 (N - 1) / N of the bytes go to and fro, at what every rank copies at the same time.
    let bound = copied * 2.0 * (n_ranks - 1) as f64 / n_ranks as f64;
    println!(
        "{n_ranks} ranks, {:>8} KiB: {:>9.1} us, {:.2} of a memcpy-bound ring's {:>9.1} us",
        n_bytes >> 10,
        reduced * 1e6,
        bound / reduced,
        bound * 1e6
    );
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
