//! Reading a table from a server: `cargo bench -p brisk-table --features http --bench remote`.
//!
//! The server is on this machine; its link is limited to 200 MB/s and each answer takes 20 ms, as from a store in the same
//! region. Options, after `--`: `--mb N` for a table of about `N` megabytes (default 128), `--smoke` for a tiny run. Each figure
//! is the median of five; rows are checked first.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::error::Error;
use std::time::{Duration, Instant};

use brisk_loader::{Batching, Loader};
use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteOptions, StreamedTable};

mod rows;
#[path = "../tests/it/remote/server.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod server;

use rows::{N_COLS, ROW_BYTES, median, write};

const RUNS: usize = 5;
const N_EPOCHS: usize = 4;
const BLOCK_ROWS: u32 = 36_000;
const WINDOW_BLOCKS: u32 = 4;
/// Memory for rows, in windows: the one in use, the next, and room for those that are on their way.
const N_WINDOWS: usize = 4;
const LINK_BYTES_PER_S: f64 = 200e6;
const LATENCY: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let mb = args.iter().position(|arg| arg == "--mb").and_then(|i| args.get(i + 1));
    let (n_bytes, n_runs) = match mb {
        _ if args.iter().any(|arg| arg == "--smoke") => (1 << 20, 1),
        Some(mb) => (mb.parse::<usize>()? << 20, RUNS),
        None => (128 << 20, RUNS),
    };
    let folder = tempfile::Builder::new().prefix("brisk-table-bench").tempdir()?;
    let path = folder.path().join("table.safetensors");
    write(&path, n_bytes / ROW_BYTES)?;
    let server = server::Server::start();
    let bytes = std::fs::read(&path)?;
    let n_bytes = bytes.len() as f64;
    server.put("/t.safetensors", bytes);
    let url = server.url("/t.safetensors");

    let local = |ahead: &ReadAhead| Ok(StreamedTable::open(&path, ahead)?);
    let (expected, _) = epochs(&local)?;
    let (mut cold, mut warm, mut here, mut amplification) = (vec![], [const { vec![] }; 3], [const { vec![] }; 3], 0.0);
    for run in 0..n_runs {
        let cache = folder.path().join(format!("cache{run}"));
        let options = || RemoteOptions { cache: CacheFolder::At(cache.clone()), ..RemoteOptions::default() };
        server.set_link(LINK_BYTES_PER_S, LATENCY);
        let remote = Remote::new(options())?;
        let (sum, [opening, seconds, _]) = epochs(&|ahead| Ok(StreamedTable::open_url(&url, ahead, &remote)?))?;
        assert!((sum / expected - 1.0).abs() < 1e-9, "the server's rows differ");
        cold.push(opening + seconds);
        amplification = remote.report().bytes_from_server as f64 / n_bytes;
        for block in std::fs::read_dir(&cache)? {
            // Else the disk is busy while the epochs after this one are measured.
            std::fs::File::open(block?.path())?.sync_all()?;
        }
        // Another session, as of the next program, which checks what it finds in the cache.
        let remote = Remote::new(options())?;
        let (_, seconds) = epochs(&|ahead| Ok(StreamedTable::open_url(&url, ahead, &remote)?))?;
        assert!((remote.report().bytes_from_server as f64) < 0.1 * n_bytes + 1e6, "the epochs were not read from the cache");
        warm.iter_mut().zip(seconds).for_each(|(all, seconds)| all.push(seconds));
        here.iter_mut().zip(epochs(&local)?.1).for_each(|(all, seconds)| all.push(seconds));
    }
    let (link, cold) = (n_bytes / LINK_BYTES_PER_S, median(cold));
    println!("{:.0} MB of {N_COLS} f32 and a label, epochs of shuffled blocks; median of {n_runs}", n_bytes / 1e6);
    println!("cold:        {:7.0} ms, {:.2}x the link's time of {:.0} ms", cold * 1e3, cold / link, link * 1e3);
    println!("bytes:       {amplification:.3}x the table's");
    let [[opening, first, later], [opening_here, first_here, later_here]] = [warm, here].map(|all| all.map(median));
    let latency = LATENCY.as_secs_f64();
    println!(
        "warm, open:  {:7.0} ms, one request of {:.0} ms; the file itself {:.1} ms",
        opening * 1e3,
        latency * 1e3,
        opening_here * 1e3
    );
    for (name, warm, here) in [("warm first:", first, first_here), ("warm later:", later, later_here)] {
        println!("{name:<12} {:7.0} ms, {:.2}x that of the file itself, {:.0} ms", warm * 1e3, warm / here, here * 1e3);
    }
    Ok(())
}

type Open<'a> = dyn Fn(&ReadAhead) -> Result<StreamedTable, Box<dyn Error>> + 'a;

/// The sum of the first features of an epoch; and the seconds of opening the table, of the first epoch, and of a later one.
fn epochs(open: &Open<'_>) -> Result<(f64, [f64; 3]), Box<dyn Error>> {
    let mut begin = Instant::now();
    let table = open(&ReadAhead::new(N_WINDOWS * (BLOCK_ROWS * WINDOW_BLOCKS) as usize * ROW_BYTES))?;
    let mut loader = Loader::new(&table, Batching::of(8192).shuffled_blocks(42, BLOCK_ROWS, WINDOW_BLOCKS))?;
    let opening = begin.elapsed().as_secs_f64();
    begin = Instant::now();
    let (mut sum, mut seconds) = (0.0, Vec::new());
    for _ in 0..N_EPOCHS {
        let mut batches = loader.epoch(0);
        sum = 0.0;
        while let Some(batch) = batches.next_batch()? {
            sum += batch.features.iter().step_by(table.n_cols()).map(|&x| f64::from(x)).sum::<f64>();
        }
        seconds.push(begin.elapsed().as_secs_f64());
        begin = Instant::now();
    }
    Ok((sum, [opening, seconds[0], median(seconds.split_off(1))]))
}
