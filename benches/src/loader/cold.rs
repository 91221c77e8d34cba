//! A table that is not in memory: rows shuffled by blocks, compared with reading the file sequentially; and rows at random, for
//! contrast.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Instant;

use crate::higgs_table::{N_COLS, higgs_table};
use anyhow::{Result, ensure};
use brisk_loader::{Ahead, Batching, LastBatch, Loader, Shuffle};
use brisk_table::{ReadAhead, StreamedTable, TableWriter};
use rustix::fs::{Advice, fadvise};

use super::{sparse::ROW_BYTES, tables};
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

/// The size of sequential reads for the comparison.
const READ_BYTES: usize = 8 << 20;
const BLOCK_ROWS: u32 = 1 << 16;
const WINDOW_BLOCKS: u32 = 8;
const AHEAD_BYTES: usize = 256 << 20;
/// Random reads, each of which waits for the disk.
const N_RANDOM: usize = 1000;

#[expect(clippy::print_stdout, reason = "why there is no figure belongs to the report")]
pub(crate) fn run(options: &Options, folder: &Path) -> Result<Vec<Row>> {
    let n_bytes = if options.scale == Scale::Smoke { 16 << 20 } else { 1 << 30 };
    let path = folder.join("cold.safetensors");
    let written = Written::new(&path, n_bytes)?;

    let (mut by_blocks, mut in_order, mut random) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..options.n_rounds as u32 {
        let Some(figure) = cold_rate(&path, written.n_bytes(), || read_in_order(&path))? else {
            println!("{}: stays in memory, so nothing cold is measured; another TMPDIR may help", path.display());
            return Ok(Vec::new());
        };
        in_order.push(figure);
        by_blocks.extend(cold_rate(&path, written.n_bytes(), || written.read_by_blocks(&path, round))?);
        random.extend(cold_rate(&path, 0.0, || written.read_at_random(&path, round))?);
    }
    std::fs::remove_file(&path)?;
    ensure!(by_blocks.len() == in_order.len(), "the file was cold when read in order, and was not when read by blocks");

    let row = |case: &str, ours, unit, reference: &str, figures, target| Row {
        suite: "loader",
        case: case.to_owned(),
        ours,
        unit,
        reference: Some((reference.to_owned(), figures)),
        target,
        better: Better::More,
    };
    let rows = |rates: &[f64]| rates.iter().map(|rate| rate / ROW_BYTES as f64).collect::<Vec<_>>();
    let blocks = rows(&by_blocks);
    Ok(vec![
        row("shuffled by blocks from a cold file", by_blocks, "B/s", "limit:reading in order, 8 MiB", in_order, Some(0.8)),
        row("random rows of a cold map", rows(&random), "rows/s", "brisk, shuffled by blocks", blocks, None),
    ])
}

/// A table that repeats the same rows, and the sum of its labels.
struct Written {
    n_rows: usize,
    labels: f64,
}

impl Written {
    fn new(path: &Path, n_bytes: usize) -> Result<Self> {
        const CHUNK_ROWS: usize = 1 << 16;
        let (features, labels) = higgs_table(CHUNK_ROWS, 1);
        let mut writer = TableWriter::create(path, tables::schema())?;
        let n_chunks = n_bytes / (CHUNK_ROWS * ROW_BYTES) + 1;
        for _ in 0..n_chunks {
            writer.push(&features, &labels)?;
        }
        let sum: f64 = labels.iter().map(|&label| f64::from(label)).sum();
        Ok(Self { n_rows: writer.finish()?, labels: sum * n_chunks as f64 })
    }

    fn n_bytes(&self) -> f64 {
        (self.n_rows * ROW_BYTES) as f64
    }

    /// One epoch; returns the number of bytes of its rows.
    fn read_by_blocks(&self, path: &Path, epoch: u32) -> Result<f64> {
        let table = StreamedTable::open(path, &ReadAhead::new(AHEAD_BYTES))?;
        let batching = Batching::of(8192).shuffled_blocks(1, BLOCK_ROWS, WINDOW_BLOCKS).last(LastBatch::Short);
        let loader = Loader::new(&table, batching)?;
        let (mut n_rows, mut labels) = (0, 0.0);
        thread::scope(|scope| -> Result<()> {
            let mut ahead = loader.prefetch(scope, Ahead { workers: 2, ..Ahead::default() });
            let mut batches = ahead.epoch(epoch);
            while let Some(batch) = batches.next_batch()? {
                n_rows += batch.rows;
                labels += batch.labels.iter().map(|&label| f64::from(label)).sum::<f64>();
            }
            Ok(())
        })?;
        ensure!((n_rows, labels) == (self.n_rows, self.labels), "an epoch by blocks had {n_rows} rows of {}", self.n_rows);
        Ok(self.n_bytes())
    }

    /// Reads some rows, in a random order, through a map.
    fn read_at_random(&self, path: &Path, epoch: u32) -> Result<f64> {
        let table = tables::mapped(path)?;
        let shuffle = Shuffle::new(self.n_rows as u32, 1, epoch);
        let n = N_RANDOM.min(self.n_rows);
        let mut row = [0.0_f32; N_COLS];
        for position in 0..n as u32 {
            let at = shuffle.row(position) as usize;
            row.copy_from_slice(table.rows(at..at + 1)?);
            black_box(&mut row);
        }
        Ok((n * ROW_BYTES) as f64)
    }
}

fn read_in_order(path: &Path) -> Result<f64> {
    let (mut file, mut buffer, mut n_bytes) = (File::open(path)?, vec![0; READ_BYTES], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(n_bytes as f64),
            n => n_bytes += n,
        }
    }
}

/// Bytes per second of what `read` reads, after the file has been dropped from the page cache; `None` if less than nine tenths of
/// `at_least` came from the disk, so that the file was not cold.
fn cold_rate(path: &Path, at_least: f64, read: impl FnOnce() -> Result<f64>) -> Result<Option<f64>> {
    fadvise(File::open(path)?, 0, None, Advice::DontNeed)?;
    let before = bytes_from_disk();
    let started = Instant::now();
    let n_bytes = read()?;
    let seconds = started.elapsed().as_secs_f64();
    let from_disk = bytes_from_disk().zip(before).map(|(after, before)| (after - before) as f64);
    Ok(from_disk.filter(|&from_disk| from_disk >= 0.9 * at_least).map(|_| n_bytes / seconds))
}

/// How many bytes disks have read for this process, if the system counts them.
fn bytes_from_disk() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.trim().parse().ok())
}
