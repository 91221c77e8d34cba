//! Rows per second of batches of warm rows, compared with memcpy and with common ways in PyTorch.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::higgs_table::{N_COLS, higgs_table};
use anyhow::{Result, ensure};
use brisk_loader::{Batching, HugePages, LastBatch, Loader, RowSource, Rows, Shuffle};
use brisk_table::Table;

use super::tables;
use crate::options::Options;
use crate::peer::Peer;
use crate::row::{Better, Row};

const SIZES: [usize; 2] = [1024, 8192];
const SEED: u64 = 42;
/// Common ways in PyTorch, by their names in `peers.py`, with the target ratios.
const FORMS: [(&str, &str, f64); 3] = [
    ("data_loader", "PyTorch, DataLoader(TensorDataset)", 150.0),
    ("permuted_slices", "PyTorch, FastTensorDataLoader's way", 5.0),
    ("index_select_out", "PyTorch, index_select(out=)", 1.5),
];

/// Rows in memory in large pages.
type Memory = Rows<HugePages<f32>, HugePages<f32>>;

/// Figures by batch size and case, one per round.
type Figures = BTreeMap<(usize, &'static str), Vec<f64>>;

#[expect(clippy::print_stdout, reason = "the peers' versions belong to the report")]
pub(crate) fn run(options: &Options, folder: &Path) -> Result<Vec<Row>> {
    let (features, labels) = higgs_table(options.n_rows, 1);
    let path = folder.join("batches.safetensors");
    tables::write(&path, &features, &labels)?;
    let memory = Rows::new(features, labels, N_COLS)?.into_huge_pages()?;
    let (table, map) = (Table::open(&path)?, tables::mapped(&path)?);
    check(&memory, &memory)?;
    check(&table, &memory)?;
    check(&map, &memory)?;

    let mut peers = match &options.peers {
        Some(python) => Some(Peer::python(python, "crates/loader/benches/peers.py", &[options.n_rows.to_string()])?),
        None => None,
    };
    if let Some(peers) = &mut peers {
        println!("{}", peers.line()?);
    }

    let mut figures = Figures::new();
    // The first round warms up.
    for round in 0..=options.n_rounds as u32 {
        for size in SIZES {
            let mut note = |case, rate: Result<f64>| -> Result<()> {
                let rate = rate?;
                if round > 0 {
                    figures.entry((size, case)).or_default().push(rate);
                }
                Ok(())
            };
            let in_order = Batching::of(size).last(LastBatch::Drop);
            let shuffled = in_order.clone().shuffled(SEED);
            note("memcpy", rate(|| Ok(memcpy(memory.features(), memory.labels(), size))))?;
            note("memcpy, map", rate(|| Ok(memcpy(map.rows(0..memory.labels().len())?, map.labels()?, size))))?;
            note("in order, memory", rate(|| epoch(&memory, &in_order, round)))?;
            note("in order, map", rate(|| epoch(&map, &in_order, round)))?;
            note("shuffled, memory", rate(|| epoch(&memory, &shuffled, round)))?;
            note("shuffled, table", rate(|| epoch(&table, &shuffled, round)))?;
            note("shuffled, map", rate(|| epoch(&map, &shuffled, round)))?;
            if let Some(peers) = &mut peers {
                for (form, _, _) in FORMS {
                    note(form, peers.ask(&format!("{form} {size}")).map(|figures| figures[0]))?;
                }
            }
        }
    }

    let mut rows = Vec::new();
    for size in SIZES {
        // Each is compared with a copy of its own memory: pages of a map are small.
        for (case, of, limit) in
            [("in order, memory", "rows in memory", "memcpy"), ("in order, map", "a warm map", "memcpy, map")]
        {
            let case = (case, format!("in order from {of}, batch {size}"));
            rows.push(row(&figures, size, case, (limit, "limit:memcpy"), Some(0.9)));
        }
        let told = format!("shuffled from rows in memory, batch {size}");
        for (form, name, target) in FORMS.into_iter().filter(|_| peers.is_some()) {
            rows.push(row(&figures, size, ("shuffled, memory", told.clone()), (form, name), Some(target)));
        }
        if peers.is_none() {
            rows.push(row(&figures, size, ("shuffled, memory", told), ("memcpy", "limit:memcpy"), None));
        }
        for (case, of) in [("shuffled, table", "an opened table"), ("shuffled, map", "a warm map")] {
            let case = (case, format!("shuffled from {of}, batch {size}"));
            let beside = if peers.is_some() { (FORMS[2].0, FORMS[2].1) } else { ("memcpy", "limit:memcpy") };
            rows.push(row(&figures, size, case, beside, None));
        }
    }
    Ok(rows)
}

fn row(figures: &Figures, size: usize, case: (&'static str, String), beside: (&'static str, &str), target: Option<f64>) -> Row {
    let ours = figures[&(size, case.0)].clone();
    let reference = Some((beside.1.to_owned(), figures[&(size, beside.0)].clone()));
    Row { suite: "loader", case: case.1, ours, unit: "rows/s", reference, target, better: Better::More }
}

/// Checks that a shuffled epoch of `source` has the rows of `memory`, in the order of [`Shuffle`].
fn check<S: RowSource<Feature = f32>>(source: &S, memory: &Memory) -> Result<()> {
    let mut loader = Loader::new(source, Batching::of(1000).shuffled(SEED))?;
    let shuffle = Shuffle::new(memory.labels().len() as u32, SEED, 0);
    let mut batches = loader.epoch(0);
    let mut position = 0;
    while let Some(batch) = batches.next_batch()? {
        for slot in 0..batch.rows {
            let row = shuffle.row(position) as usize;
            position += 1;
            let same = batch.labels[slot] == memory.labels()[row]
                && batch.features[slot * N_COLS..][..N_COLS] == memory.features()[row * N_COLS..][..N_COLS];
            ensure!(same, "position {position} of the shuffled epoch is not row {row}: there is nothing to time");
        }
    }
    ensure!(position == shuffle.n_rows(), "an epoch had {position} rows of {}", shuffle.n_rows());
    Ok(())
}

/// One thread copies all rows into the memory of a batch, batch after batch.
fn memcpy(all_features: &[f32], all_labels: &[f32], size: usize) -> usize {
    let (mut features, mut labels) = (vec![0.0; size * N_COLS], vec![0.0; size]);
    let mut n_rows = 0;
    for (from, from_labels) in all_features.chunks_exact(size * N_COLS).zip(all_labels.chunks_exact(size)) {
        features.copy_from_slice(from);
        labels.copy_from_slice(from_labels);
        black_box((&mut features, &mut labels));
        n_rows += size;
    }
    n_rows
}

fn epoch<S: RowSource>(source: &S, batching: &Batching, epoch: u32) -> Result<usize> {
    let mut loader = Loader::new(source, batching.clone())?;
    let mut batches = loader.epoch(epoch);
    let mut n_rows = 0;
    while let Some(batch) = batches.next_batch()? {
        n_rows += black_box(batch).rows;
    }
    Ok(n_rows)
}

/// Rows per second of one call, which returns the number of rows.
fn rate(epoch: impl FnOnce() -> Result<usize>) -> Result<f64> {
    // The threads of the previous case go to sleep.
    thread::sleep(Duration::from_millis(5));
    let started = Instant::now();
    let n_rows = epoch()?;
    Ok(n_rows as f64 / started.elapsed().as_secs_f64())
}
