//! The memory costs of epochs: allocations in each, and memory after a thousand.

use std::thread;

use crate::higgs_table::{N_COLS, higgs_table};
use anyhow::Result;
use brisk_loader::{Ahead, Batching, Loader, Rows};

use crate::counting::n_allocations;
use crate::options::{Options, Scale};
use crate::row::Row;

/// Epochs after which everything that is allocated once has been.
const N_WARM: u32 = 3;

pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    let (features, labels) = higgs_table(options.n_rows, 1);
    let rows = Rows::new(features, labels, N_COLS)?;
    let batching = Batching::of(1024).shuffled(42);
    let mut lines = Vec::new();
    let mut note = |how: &str, counts, is_aim: bool| {
        let row = Row::at_most("loader", format!("allocations an epoch, {how}"), counts, "allocations", 0.0);
        lines.push(Row { target: row.target.filter(|_| is_aim), ..row });
    };

    let mut loader = Loader::new(&rows, batching.clone())?;
    let in_pool = loader.run(2, |loader| counted(options.n_rounds, |epoch| consume(loader, epoch)))??;
    note("batch 1024, `Loader::run`", in_pool, true);
    // The allocations for handing each batch to a pool from outside.
    note("batch 1024, from outside of a pool", counted(options.n_rounds, |epoch| consume(&mut loader, epoch))?, false);
    let ahead = thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead::default());
        counted(options.n_rounds, |epoch| {
            let mut batches = ahead.epoch(epoch);
            while batches.next_batch()?.is_some() {}
            Ok(())
        })
    });
    note("batch 1024, one worker ahead", ahead?, true);

    let n_epochs = if options.scale == Scale::Smoke { 20 } else { 1000 };
    let (features, labels) = higgs_table(options.n_rows.min(20_480), 1);
    let rows = Rows::new(features, labels, N_COLS)?;
    if let Some(growth) = growth(&rows, batching, n_epochs)? {
        lines.push(Row::at_most("loader", format!("memory growth over {n_epochs} epochs"), vec![growth], "B", 1e6));
    }
    Ok(lines)
}

/// Allocations in each of several epochs, after warm-up epochs.
fn counted(n_rounds: usize, mut epoch: impl FnMut(u32) -> Result<()>) -> Result<Vec<f64>> {
    let mut counts = Vec::with_capacity(n_rounds);
    for number in 0..N_WARM + n_rounds as u32 {
        let before = n_allocations();
        epoch(number)?;
        let count = n_allocations() - before;
        if number >= N_WARM {
            counts.push(count as f64);
        }
    }
    Ok(counts)
}

/// The increase of resident memory in bytes over this many epochs, half of them gathered in place and half in advance by a worker
/// that is started for each epoch; `None` if the system does not report it.
fn growth(rows: &Rows, batching: Batching, n_epochs: u32) -> Result<Option<f64>> {
    let mut loader = Loader::new(rows, batching)?;
    let mut both = |epoch: u32| -> Result<()> {
        consume(&mut loader, epoch)?;
        thread::scope(|scope| {
            let mut ahead = loader.prefetch(scope, Ahead::default());
            let mut batches = ahead.epoch(epoch);
            while batches.next_batch()?.is_some() {}
            Ok(())
        })
    };
    for epoch in 0..n_epochs / 20 {
        both(epoch)?;
    }
    let Some(before) = resident_bytes() else { return Ok(None) };
    for epoch in 0..n_epochs / 2 {
        both(epoch)?;
    }
    Ok(resident_bytes().map(|after| after.saturating_sub(before) as f64))
}

fn consume(loader: &mut Loader<&Rows>, epoch: u32) -> Result<()> {
    let mut batches = loader.epoch(epoch);
    while batches.next_batch()?.is_some() {}
    Ok(())
}

/// The resident memory of this process, if Linux reports it.
fn resident_bytes() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// The value that Linux reports for this process's memory under that name.
pub(crate) fn status_bytes(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
