//! Speed of reading tables larger than memory, and of different kinds of memory:
//! `cargo bench -p brisk-table --bench larger_than_memory`.
//!
//! Options, after `--`: `--mb N` for a table of about `N` megabytes (default 512), `--smoke` for a tiny run. The file is evicted
//! from the page cache before each cold run. Each figure is the median of five, measured in turns; rows are checked first.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use brisk_loader::{Batching, Loader, RowBuffers, RowSelection, RowSource, Rows};
use brisk_table::{ReadAhead, StreamedTable, Table};

mod rows;

use rows::{N_COLS, ROW_BYTES, median, write};

const RUNS: usize = 5;
/// 7.3 MB per block, 29 MB per window.
const BLOCK_ROWS: u32 = 65_536;
const WINDOW_BLOCKS: u32 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let mb = args.iter().position(|arg| arg == "--mb").and_then(|i| args.get(i + 1));
    let n_bytes = match mb {
        _ if args.iter().any(|arg| arg == "--smoke") => 1 << 20,
        Some(mb) => mb.parse::<usize>()? << 20,
        None => 512 << 20,
    };
    let n_rows = n_bytes / ROW_BYTES;
    let folder = tempfile::Builder::new().prefix("brisk-table-bench").tempdir()?;
    let path = folder.path().join("table.safetensors");
    write(&path, n_rows)?;
    println!("{n_rows} rows of {N_COLS} f32 and a label, {} MB; median of {RUNS}", n_bytes >> 20);
    cold(&path)?;
    at_random(&path)
}

/// Reads the file in order, compared with an epoch of shuffled blocks and one in order over a streamed table.
fn cold(path: &Path) -> Result<(), Box<dyn Error>> {
    let ahead = ReadAhead::new(3 * (BLOCK_ROWS * WINDOW_BLOCKS) as usize * ROW_BYTES);
    let table = StreamedTable::open(path, &ahead)?;
    let blocks = Batching::of(8192).shuffled_blocks(42, BLOCK_ROWS, WINDOW_BLOCKS);
    let expected: f64 = epoch(&table, Batching::of(8192))?;
    assert!((epoch(&table, blocks.clone())? / expected - 1.0).abs() < 1e-9, "an epoch of blocks has other rows");

    // SAFETY: the file is this program's own, and nothing writes to it.
    #[expect(unsafe_code, reason = "a warm map is what a streamed table is compared with")]
    let mapped = unsafe { Table::open_mapped(path) }?;
    let mut seconds = [const { Vec::new() }; 2];
    for _ in 0..RUNS {
        seconds[0].push(seconds_of(|| epoch(&mapped, blocks.clone()).map(|_| ()))?);
        seconds[1].push(seconds_of(|| epoch(&table, blocks.clone()).map(|_| ()))?);
    }
    let [limit, streamed] = seconds.map(median);
    println!(
        "warm: shuffled blocks, mapped {:7.0} ms, streamed {:7.0} ms  {:5.2}×",
        limit * 1e3,
        streamed * 1e3,
        limit / streamed
    );
    drop(mapped);

    let mut seconds = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        seconds[0].push(timed(path, || in_order(path))?);
        seconds[1].push(timed(path, || epoch(&table, blocks.clone()).map(|_| ()))?);
        seconds[2].push(timed(path, || epoch(&table, Batching::of(8192)).map(|_| ()))?);
    }
    let [limit, blocks, sequential] = seconds.map(median);
    let n_bytes = std::fs::metadata(path)?.len() as f64;
    for (what, seconds) in [("the file, 8 MiB at a time", limit), ("shuffled blocks", blocks), ("rows in order", sequential)] {
        println!("cold: {what:28} {:7.0} ms  {:6.3} GB/s  {:5.2}×", seconds * 1e3, n_bytes / 1e9 / seconds, limit / seconds);
    }
    println!("{:?}", ahead.report());
    Ok(())
}

/// Gathers rows at random: from a copy in large pages, from a `Vec`, from a map.
fn at_random(path: &Path) -> Result<(), Box<dyn Error>> {
    let copied = Table::open(path)?;
    let rows = Rows::new(copied.rows::<f32>(0..copied.n_rows())?.to_vec(), copied.labels::<f32>()?.to_vec(), N_COLS)?;
    // SAFETY: the file is this program's own, and nothing writes to it.
    #[expect(unsafe_code, reason = "a map is what is measured")]
    let mapped = unsafe { Table::open_mapped(path) }?;
    let mut seconds = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        seconds[0].push(gathered(&rows)?);
        seconds[1].push(gathered(&copied)?);
        seconds[2].push(gathered(&mapped)?);
    }
    let n = copied.n_rows() as f64;
    let [rows, copied, mapped] = seconds.map(median);
    for (what, seconds) in [("`Rows`", rows), ("`Table::open`", copied), ("`Table::open_mapped`, warm", mapped)] {
        println!("at random, one thread: {what:28} {:6.2} M rows/s  {:5.2}×", n / 1e6 / seconds, rows / seconds);
    }
    Ok(())
}

/// Returns the seconds for gathering all rows, in an order that no prefetcher can predict.
fn gathered<S: RowSource<Feature = f32>>(source: &S) -> Result<f64, Box<dyn Error>> {
    let n_rows = source.n_rows();
    let shuffle = brisk_loader::Shuffle::new(u32::try_from(n_rows)?, 42, 0);
    let (mut features, mut labels, mut numbers) = (vec![0.0; 1024 * N_COLS], vec![0.0; 1024], vec![0; 1024]);
    let mut seconds = 0.0;
    for start in (0..n_rows - n_rows % 1024).step_by(1024) {
        for (i, number) in numbers.iter_mut().enumerate() {
            *number = shuffle.row((start + i) as u32);
        }
        let begin = Instant::now();
        source.gather(RowSelection::Numbers(&numbers), RowBuffers::new(&mut features, &mut labels))?;
        seconds += begin.elapsed().as_secs_f64();
        black_box(&features);
    }
    Ok(seconds)
}

/// Returns the sum of the first features of an epoch.
fn epoch<S: RowSource<Feature = f32>>(table: &S, batching: Batching) -> Result<f64, Box<dyn Error>> {
    let mut loader = Loader::new(table, batching)?;
    let mut batches = loader.epoch(0);
    let mut sum = 0.0;
    while let Some(batch) = batches.next_batch()? {
        sum += batch.features.iter().step_by(N_COLS).map(|&x| f64::from(x)).sum::<f64>();
    }
    Ok(sum)
}

fn in_order(path: &Path) -> Result<(), Box<dyn Error>> {
    let (mut file, mut bytes) = (File::open(path)?, vec![0; 8 << 20]);
    while file.read(&mut bytes)? > 0 {
        black_box(&bytes);
    }
    Ok(())
}

/// Returns the seconds of a run that starts with an empty page cache for the file, if the system supports that.
fn timed(path: &Path, mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(File::open(path)?, 0, None, rustix::fs::Advice::DontNeed)?;
    seconds_of(&mut run)
}

fn seconds_of(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let begin = Instant::now();
    run()?;
    Ok(begin.elapsed().as_secs_f64())
}
