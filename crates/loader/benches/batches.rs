//! Rows per second of batches, in order and shuffled, compared with memcpy and with common PyTorch loaders.
//!
//! `cargo bench -p brisk-loader`; if `BRISK_PYTHON` names a Python with torch, the PyTorch loaders are measured in the same run.
//! `BRISK_BENCH_ROWS` sets the number of rows of the table (1,000,000). `cargo bench -p brisk-loader -- --smoke` is tiny.
#![expect(clippy::print_stdout, reason = "a bench reports")]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use brisk_loader::{Ahead, Batching, HugePages, Lanes, LastBatch, Loader, Order, RowSource, Rows, Shuffle};

type Huge = Rows<HugePages<f32>, HugePages<f32>>;

const N_COLS: usize = 28;
const SIZES: [usize; 2] = [1024, 8192];

fn main() {
    let is_smoke = std::env::args().any(|arg| arg == "--smoke");
    let n_rows = match std::env::var("BRISK_BENCH_ROWS") {
        Ok(rows) => rows.parse().expect("BRISK_BENCH_ROWS is a number of rows"),
        Err(_) if is_smoke => 20_000,
        Err(_) => 1_000_000,
    };
    let n_repeats = if is_smoke { 1 } else { 11 };
    let rows = table(n_rows);
    check(&rows);
    let huge = rows.clone().into_huge_pages().expect("memory for a copy");
    check(&huge);

    println!(
        "{n_rows} rows of {N_COLS} f32 and a label, warm; {} threads; {n_repeats} epochs of each, turn by turn",
        rayon::current_num_threads()
    );
    let mut peers = Peers::start(n_rows, is_smoke);
    println!();
    println!("| batch | what | M rows/s, median | best | median against |");
    println!("|---|---|---|---|---|");
    for size in SIZES {
        measure(&rows, &huge, size, n_repeats, peers.as_mut());
    }
}

/// One line of the table: its name, its rate in each round, and the lines that it is compared with.
struct Case {
    name: &'static str,
    rates: Vec<f64>,
    against: &'static [&'static str],
}

const MEMCPY: &str = "memcpy of the same bytes, 1 thread";
const BLOCKS: &str = "shuffled by blocks";
const PEERS: [&str; 4] = ["copied_slices", "data_loader", "permuted_slices", "index_select_out"];

/// Each round runs every case once, so that other load on the machine affects all of them equally.
fn measure(rows: &Rows, huge: &Huge, size: usize, n_repeats: usize, mut peers: Option<&mut Peers>) {
    let case = |name, against| Case { name, rates: Vec::new(), against };
    let mut cases = vec![
        case(MEMCPY, &[] as &[&str]),
        case("in order", &[MEMCPY]),
        case("in order, 1 thread ahead", &[MEMCPY]),
        case("shuffled", &PEERS[1..]),
        case("shuffled, huge pages", &PEERS[1..]),
        case("shuffled, 1 thread ahead", &PEERS[1..]),
        case("shuffled, 2 threads ahead", &PEERS[1..]),
        case("shuffled, huge pages, 2 threads ahead", &PEERS[1..]),
        case(BLOCKS, &PEERS[1..]),
        case("shuffled by lanes", &[BLOCKS]),
        case("order only, 1 thread", &[]),
    ];
    let n_ours = cases.len();
    if peers.is_some() {
        cases.extend(PEERS.map(|name| case(name, &[])));
    }
    let batching = Batching::of(size).last(LastBatch::Drop);
    let mut loader = Loader::new(rows, batching.clone()).expect("a plain batching");
    let mut shuffled = Loader::new(rows, batching.clone().shuffled(42)).expect("a plain batching");
    let mut huge_shuffled = Loader::new(huge, batching.clone().shuffled(42)).expect("a plain batching");
    let mut by_blocks = Loader::new(rows, batching.clone().shuffled_blocks(42, 4096, 16)).expect("a plain batching");
    // As many rows in a window of all lanes.
    let n_lanes = size as u32 / 16;
    let lanes = Lanes { seed: Some(42), batch_rows: size as u32, n_lanes, block_rows: 4096 * 16 / n_lanes / 4, window_blocks: 4 };
    let mut by_lanes = Loader::new(rows, Batching { order: Order::Lanes(lanes), ..batching }).expect("a plain batching");
    for epoch in 0..=n_repeats as u32 {
        let mut round = vec![
            rate(|| memcpy(rows, size)),
            rate(|| inline(&mut loader, epoch)),
            rate(|| ahead(&loader, epoch, 1)),
            rate(|| inline(&mut shuffled, epoch)),
            rate(|| inline(&mut huge_shuffled, epoch)),
            rate(|| ahead(&shuffled, epoch, 1)),
            rate(|| ahead(&shuffled, epoch, 2)),
            rate(|| ahead(&huge_shuffled, epoch, 2)),
            rate(|| inline(&mut by_blocks, epoch)),
            rate(|| inline(&mut by_lanes, epoch)),
            rate(|| fill_order(rows.labels().len(), epoch)),
        ];
        if let Some(peers) = peers.as_mut() {
            round.extend(PEERS.map(|name| peers.rate(name, size)));
        }
        // The first round is the warm-up.
        if epoch > 0 {
            cases.iter_mut().zip(round).for_each(|(case, rate)| case.rates.push(rate));
        }
    }
    for case in &mut cases {
        case.rates.sort_by(f64::total_cmp);
    }
    let middle = |case: &Case| case.rates[case.rates.len() / 2];
    for (i, case) in cases.iter().enumerate() {
        let ratios = case.against.iter().filter_map(|name| {
            let other = cases.iter().find(|case| case.name == *name)?;
            Some(format!("{:.2}x {}", middle(case) / middle(other), name.split(' ').next().unwrap_or_default()))
        });
        let whose = if i < n_ours { "" } else { "PyTorch " };
        let (median, best) = (middle(case) / 1e6, case.rates[case.rates.len() - 1] / 1e6);
        println!("| {size} | {whose}{} | {median:.2} | {best:.2} | {} |", case.name, ratios.collect::<Vec<_>>().join(", "));
    }
}

/// A table in which each value identifies its row.
fn table(n_rows: usize) -> Rows {
    let features = (0..n_rows * N_COLS).map(|i| (i % (1 << 24)) as f32).collect();
    Rows::new(features, (0..n_rows).map(|row| row as f32).collect(), N_COLS).expect("as many rows as labels")
}

/// Checks that the measured code returns the right rows.
fn check<F, L>(rows: &Rows<F, L>)
where
    F: Deref<Target = [f32]> + Sync,
    L: Deref<Target = [f32]> + Sync,
{
    let mut loader = Loader::new(rows, Batching::of(1000).shuffled(42)).expect("a plain batching");
    let shuffle = Shuffle::new(rows.labels().len() as u32, 42, 0);
    let mut batches = loader.epoch(0);
    let mut position = 0;
    while let Some(batch) = batches.next_batch().expect("rows in memory") {
        for slot in 0..batch.rows {
            let row = shuffle.row(position) as usize;
            position += 1;
            assert_eq!(batch.labels[slot], rows.labels()[row], "label at position {position}");
            let expected = &rows.features()[row * N_COLS..][..N_COLS];
            assert_eq!(&batch.features[slot * N_COLS..][..N_COLS], expected, "features at position {position}");
        }
    }
    assert_eq!(position, shuffle.n_rows(), "rows in an epoch");
}

fn memcpy(rows: &Rows, size: usize) -> usize {
    let (mut features, mut labels) = (vec![0.0; size * N_COLS], vec![0.0; size]);
    let mut n_copied = 0;
    for (from, from_labels) in rows.features().chunks_exact(size * N_COLS).zip(rows.labels().chunks_exact(size)) {
        features.copy_from_slice(from);
        labels.copy_from_slice(from_labels);
        black_box((&mut features, &mut labels));
        n_copied += size;
    }
    n_copied
}

fn inline<S: RowSource>(loader: &mut Loader<S>, epoch: u32) -> usize {
    let mut batches = loader.epoch(epoch);
    let mut n_seen = 0;
    while let Some(batch) = batches.next_batch().expect("rows in memory") {
        n_seen += black_box(batch).rows;
    }
    n_seen
}

fn ahead<S: RowSource>(loader: &Loader<S>, epoch: u32, workers: usize) -> usize {
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { workers, ..Ahead::default() });
        let mut batches = ahead.epoch(epoch);
        let mut n_seen = 0;
        while let Some(batch) = batches.next_batch().expect("rows in memory") {
            n_seen += black_box(batch).rows;
        }
        n_seen
    })
}

fn fill_order(n_rows: usize, epoch: u32) -> usize {
    let shuffle = Shuffle::new(n_rows as u32, 42, epoch);
    let mut rows = [0; 1024];
    let n_runs = n_rows / rows.len();
    for run in 0..n_runs {
        shuffle.fill((run * rows.len()) as u32, &mut rows);
        black_box(&mut rows);
    }
    n_runs * rows.len()
}

/// Rows per second of one call, which returns the number of rows.
fn rate(epoch: impl FnOnce() -> usize) -> f64 {
    // Give the thread pools of the previous case time to go to sleep.
    thread::sleep(Duration::from_millis(5));
    let start = Instant::now();
    let n_rows = epoch();
    n_rows as f64 / start.elapsed().as_secs_f64()
}

/// `peers.py`, which runs one epoch of a PyTorch loader for each request.
struct Peers {
    // Kept so that it can be waited for; it ends when its input does.
    _process: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Peers {
    fn start(n_rows: usize, is_smoke: bool) -> Option<Self> {
        let Some(python) = std::env::var_os("BRISK_PYTHON").filter(|_| !is_smoke) else {
            println!("PyTorch not measured: BRISK_PYTHON names no Python with torch");
            return None;
        };
        let mut process = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers.py"))
            .arg(n_rows.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("BRISK_PYTHON can be run");
        let ask = process.stdin.take().expect("a piped input");
        let answer = BufReader::new(process.stdout.take().expect("a piped output"));
        let mut peers = Self { _process: process, ask, answer };
        println!("{}", peers.line());
        Some(peers)
    }

    fn rate(&mut self, name: &str, size: usize) -> f64 {
        thread::sleep(Duration::from_millis(5));
        writeln!(self.ask, "{name} {size}").expect("peers.py listens");
        self.line().parse().expect("peers.py answers with a rate")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answer.read_line(&mut line).expect("peers.py answers");
        line.trim().to_owned()
    }
}
