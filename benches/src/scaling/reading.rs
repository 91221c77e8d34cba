//! The time in which ranks read a table on a server, and train meanwhile: predicted, and measured with processes and a server of
//! this machine, whose link is limited.

use std::time::Duration;

use anyhow::{Result, ensure};
use brisk_replicate::TableReading;
use brisk_table::RemoteOptions;
use serde_json::{Value, json};

use super::SUITE;
use super::reader::{BATCH_ROWS, NETWORKS, Ranks, Work};
use super::served::{LATENCY, Served, lanes, window_bytes};
use crate::options::{Options, Scale};
use crate::row::{Better, Row, median};

/// The bytes that `brisk-table` requests at a time.
const BLOCK_BYTES: f64 = (1 << 20) as f64;

/// Epochs of up to four processes that share the link of a server, beside their predictions: cold, from the caches, and with a
/// training step for each batch.
pub(super) fn check(options: &Options) -> Result<Vec<Row>> {
    const N_RANKS: [usize; 4] = [1, 2, 3, 4];
    let n_bytes = if options.scale == Scale::Smoke { 2 << 20 } else { 192 << 20 };
    let served = Served::start(n_bytes, 1, 40e6, N_RANKS[3])?;
    // Of files on this machine, which one process and as many as there are read in the same order.
    let local_bytes_per_s = |n_ranks: usize| -> Result<f64> {
        let folder = tempfile::tempdir()?;
        let mut ranks = Ranks::start(n_ranks, &served.file().to_string_lossy(), folder.path(), "none")?;
        let seconds = (0..2 + options.n_rounds).map(|_| Ok(ranks.each(Work::Read)?.seconds)).collect::<Result<Vec<_>>>()?;
        ranks.finish()?;
        Ok(served.bytes() / median(&seconds[2..]))
    };
    let [of_rank, of_host] = [local_bytes_per_s(1)?, local_bytes_per_s(N_RANKS[3])?];

    let mut rows = Vec::new();
    for n_ranks in N_RANKS {
        let cold = TableReading {
            table_bytes: served.bytes(),
            n_shards: served.n_shards,
            window_bytes: window_bytes(&lanes(BATCH_ROWS)?) as f64,
            server_bytes_per_s: served.bytes_per_s,
            host_bytes_per_s: f64::INFINITY,
            ranks_per_host: n_ranks,
            cache_bytes_per_s: of_host.max(of_rank),
            rank_cache_bytes_per_s: of_rank,
            ..typical()
        };
        let warm = TableReading { cached: 1.0, ..cold };
        let mut row = |case: &str, ours: Vec<f64>, unit, reference: &str, theirs: Vec<f64>| {
            let link = format!("{} MiB at {:.0} MB/s", (served.bytes() / BLOCK_BYTES).round(), served.bytes_per_s / 1e6);
            let case = format!("{case}, {link}, {n_ranks} processes");
            rows.push(Row {
                suite: SUITE,
                case,
                ours,
                unit,
                reference: Some((reference.to_owned(), theirs)),
                target: None,
                better: Better::Less,
            });
        };
        let mut read = [const { Vec::new() }; 3];
        let mut trained = NETWORKS.map(|_| [const { Vec::new() }; 2]);
        for _ in 0..options.n_rounds {
            let epochs = |network: &str, works: &[Work]| -> Result<Vec<f64>> {
                let caches = tempfile::tempdir()?;
                let mut ranks = Ranks::start(n_ranks, &served.url(), caches.path(), network)?;
                let mut seconds = Vec::new();
                for &work in works {
                    let done = ranks.each(work)?;
                    let is_whole = work == Work::Compute || done.n_rows == served.n_rows;
                    ensure!(is_whole, "{n_ranks} ranks read {} rows of {}", done.n_rows, served.n_rows);
                    seconds.push(done.seconds);
                }
                ranks.finish()?;
                Ok(seconds)
            };
            let before = served.bytes_sent(n_ranks);
            let epochs_read = epochs("none", &[Work::Read; 4])?;
            let [of_link, of_cache] = [epochs_read[0], median(&epochs_read[1..])];
            let bytes = served.bytes_sent(n_ranks).iter().zip(before).map(|(after, before)| after - before).fold(0.0, f64::max);
            read.iter_mut().zip([of_link, of_cache, bytes]).for_each(|(all, figure)| all.push(figure));
            for (network, [predicted, measured]) in NETWORKS.iter().zip(&mut trained) {
                let seconds = epochs(network.name, &[Work::Compute, Work::Train])?;
                predicted.push(cold.epoch(n_ranks, Duration::from_secs_f64(seconds[0])).as_secs_f64());
                measured.push(seconds[1]);
            }
        }
        let [of_link, of_cache, bytes] = read;
        let all = |value: f64| vec![value; options.n_rounds];
        let seconds = |model: &TableReading| all(model.read(n_ranks).as_secs_f64());
        row("reading an epoch", of_link.clone(), "s", "link", all(served.bytes() / served.bytes_per_s));
        row("reading an epoch", of_link, "s", "predicted", seconds(&cold));
        row("reading an epoch from the cache", of_cache, "s", "predicted", seconds(&warm));
        row("bytes that a rank reads", bytes.clone(), "B", "its part", all(served.bytes() / n_ranks as f64));
        row("bytes that a rank reads", bytes, "B", "predicted", all(cold.rank_bytes(n_ranks)));
        for (network, [predicted, measured]) in NETWORKS.iter().zip(trained) {
            row(&format!("training {} while reading", network.name), measured, "s", "predicted", predicted);
        }
    }
    Ok(rows)
}

/// Stores in the same region; a rank a GPU, eight to a host with 25 Gbit/s, whose cache is on an NVMe drive.
fn typical() -> TableReading {
    TableReading {
        table_bytes: 1e12,
        n_shards: 1000,
        n_lanes: 64,
        window_bytes: BLOCK_BYTES,
        block_bytes: BLOCK_BYTES,
        requests_at_a_time: RemoteOptions::default().parallel,
        latency: LATENCY,
        server_bytes_per_s: 100e9 / 8.0,
        host_bytes_per_s: 25e9 / 8.0,
        ranks_per_host: 8,
        cached: 0.0,
        cache_bytes_per_s: 2e9,
        rank_cache_bytes_per_s: 1e9,
    }
}

/// The rows that a rank computes in a second, in bytes: 4.3 million of HIGGS.
const COMPUTED_BYTES_PER_S: f64 = 500e6;

/// Prints the time of an epoch of 1 TB on 1 to 4096 ranks, cold and from caches, and returns the figures too.
#[expect(clippy::print_stdout, reason = "its figures are its result")]
pub(super) fn simulate() -> Vec<Value> {
    let n_ranks: Vec<usize> = (0..=12).map(|power| 1 << power).collect();
    let mut predictions = Vec::new();
    println!(
        "\nAn epoch of 1 TB in 1000 shards, by blocks of 1 MiB, 16 requests at a time and rank, 20 ms each; 8 ranks a host of 25 Gbit/s; caches of 2 GB/s a host and 1 GB/s a rank. Minutes of reading, what \
         limits it, and minutes of training if each rank computes {:.0} MB of rows a second:\n",
        COMPUTED_BYTES_PER_S / 1e6
    );
    println!("| server | cached | lanes |{}", n_ranks.iter().map(|n| format!(" {n} |")).collect::<String>());
    println!("| --- | ---: | ---: |{}", " ---: |".repeat(n_ranks.len()));
    for gbit in [10.0, 100.0, 1000.0] {
        for (cached, n_lanes) in [(0.0, 64), (0.0, 4096), (0.5, 64), (0.5, 4096), (1.0, 64), (1.0, 4096)] {
            let model = TableReading { server_bytes_per_s: gbit * 1e9 / 8.0, cached, n_lanes, ..typical() };
            let mut cells = String::new();
            for &n in &n_ranks {
                let (read, bound) = (model.read(n).as_secs_f64(), model.bound(n));
                let compute = model.table_bytes / n as f64 / COMPUTED_BYTES_PER_S;
                let epoch = model.epoch(n, Duration::from_secs_f64(compute)).as_secs_f64();
                cells += &format!(" {:.1} {} {:.1} |", read / 60.0, format!("{bound:?}").to_lowercase(), epoch / 60.0);
                predictions.push(json!({
                    "suite": SUITE, "server_gbit_per_s": gbit, "cached": cached, "n_lanes": n_lanes, "n_ranks": n, "rank_bytes": model.rank_bytes(n),
                    "open_s": model.open(n).as_secs_f64(), "read_s": read, "bound": format!("{bound:?}"), "compute_s": compute, "epoch_s": epoch,
                }));
            }
            println!("| {gbit} Gbit/s | {:.0} % | {n_lanes} |{cells}", 100.0 * cached);
        }
    }
    predictions
}
