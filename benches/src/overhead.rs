//! The overhead of the trainer: training compared with replays of the training step, saving a checkpoint compared with a plain
//! write, and the pause of training for a checkpoint compared with a copy in memory. Also the cost of metrics, and how much busy
//! threads in the background slow down the training step.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use brisk_loader::{Order, RowSource as _, Rows};
use brisk_nn::{Mlp, MlpConfig};
use brisk_tensor::Precision;
use brisk_train::metrics::Scored;
use brisk_train::{
    Binary, Callback, Checkpoint, Error, Feed, FitReport, Model, ResidentRows, RunFolder, RunView, Scorer, Standardisation,
    Task as _, Trainer, ValidationEnd,
};
use rayon::prelude::*;

use crate::Options;
use crate::higgs::{Run, SEED, sizes};
use crate::higgs_table::{N_COLS, higgs_table};
use crate::options::Scale;
use crate::row::{Better, Row, Table};

const BATCH: usize = 1024;
/// The replayed step has no validation, so the trainer validates on one batch only.
const VALID_ROWS: usize = 1024;
/// The rows of an epoch of one step, where only the pause after it is measured.
const PAUSED_ROWS: usize = 64;
/// The parameters of a network and the two moments of Adam.
const CHECKPOINT_TENSORS: usize = 3;
/// The tensors of as many values that `last.safetensors` has: those, and the parameters of the best epoch.
const LAST_TENSORS: usize = CHECKPOINT_TENSORS + 1;

pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    let (n_epochs, checkpoint_bytes) = match options.scale {
        Scale::Full => (4, 1 << 30),
        Scale::Smoke => (2, 3 << 20),
    };
    let rows = vec![
        epochs(options, n_epochs)?,
        with_busy_threads(options)?,
        metrics(options)?,
        checkpoint(options, checkpoint_bytes)?,
        pauses(options, checkpoint_bytes)?,
    ];
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}

/// Training throughput in rows per second, compared with that of replaying the training step of the same network.
fn epochs(options: &Options, n_epochs: usize) -> Result<Row> {
    let (features, labels) = higgs_table(options.n_rows, SEED);
    let n_valid = VALID_ROWS.min(options.n_rows);
    let valid = Rows::new(features[..n_valid * N_COLS].to_vec(), labels[..n_valid].to_vec(), N_COLS)?;
    let train = Rows::new(features, labels, N_COLS)?;
    let bare = Run::new(&options.device, &train, BATCH)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.n_rounds {
        let mut seconds = 0.0;
        for epoch in 0..n_epochs {
            seconds += train.n_rows() as f64 / bare.epoch(epoch as u32)?.0;
        }
        theirs.push((n_epochs * train.n_rows()) as f64 / seconds);
        let seconds = Rc::new(Cell::new(0.0));
        let mut model = Model::new(SEED, |params| Mlp::new(params, &sizes()));
        Trainer::new(&options.device)
            .batch_rows(BATCH)
            .max_epochs(n_epochs)
            .callback(Stopwatch { started: Instant::now(), seconds: Rc::clone(&seconds) })
            .fit(&mut model, &Binary::new(), &train, &valid)?;
        ours.push((n_epochs * train.n_rows()) as f64 / seconds.get());
    }
    Ok(Row {
        suite: "overhead",
        case: format!("training for {n_epochs} epochs, batch {BATCH}"),
        ours,
        unit: "rows/s",
        reference: Some(("limit:the training step, replayed".to_owned(), theirs)),
        target: Some(0.98),
        better: Better::More,
    })
}

/// Throughput of the replayed training step with one busy thread per core in the background, compared with its throughput without
/// them. With equal shares of the processor the ratio would be 0.5.
fn with_busy_threads(options: &Options) -> Result<Row> {
    let (features, labels) = higgs_table(options.n_rows, SEED);
    let train = Rows::new(features, labels, N_COLS)?;
    let bare = Run::new(&options.device, &train, BATCH)?;
    let n_busy = std::thread::available_parallelism()?.get();
    bare.epoch(0)?;
    let (mut contended, mut idle) = (Vec::new(), Vec::new());
    for round in 0..options.n_rounds as u32 {
        idle.push(bare.epoch(2 * round + 1)?.0);
        let is_over = AtomicBool::new(false);
        let epoch = std::thread::scope(|scope| {
            for _ in 0..n_busy {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let epoch = bare.epoch(2 * round + 2);
            is_over.store(true, Ordering::Relaxed);
            epoch
        });
        contended.push(epoch?.0);
    }
    Ok(Row {
        suite: "overhead",
        case: format!("the training step with {n_busy} busy threads in the background, batch {BATCH}"),
        ours: contended,
        unit: "rows/s",
        reference: Some(("limit:the training step without them".to_owned(), idle)),
        // At most 2.3 times slower.
        target: Some(0.43),
        better: Better::More,
    })
}

/// Rows validated per second with all metrics of a binary task, which the host computes, compared with only computing the outputs
/// and reading them.
fn metrics(options: &Options) -> Result<Row> {
    let (features, labels) = higgs_table(options.n_rows, SEED);
    let table = Rows::new(features, labels.clone(), N_COLS)?;
    let model = Model::new(SEED, |params| Mlp::new(params, &sizes()));
    let device = &options.device;
    model.params().write_initial(device)?;
    let scale = Standardisation::new(vec![0.0; N_COLS], vec![1.0; N_COLS]);
    scale.write(device)?;
    let rows = Feed::of_resident(&ResidentRows::upload(device, "valid", &table)?, Order::Sequential, BATCH);
    let scorer = Scorer::new(device, model.module(), model.params(), &rows, &scale, Precision::F32)?;
    let mut metrics = Binary::new().metrics();
    scorer.scores()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.n_rounds {
        let started = Instant::now();
        let outputs = scorer.scores()?;
        theirs.push(labels.len() as f64 / started.elapsed().as_secs_f64());
        for metric in &mut metrics {
            metric.reset();
            metric.update(&Scored::binary(&outputs, &labels))?;
            black_box(metric.compute()?);
        }
        ours.push(labels.len() as f64 / started.elapsed().as_secs_f64());
    }
    Ok(Row {
        suite: "overhead",
        case: format!("validation with {} metrics on the host, batch {BATCH}", metrics.len()),
        ours,
        unit: "rows/s",
        reference: Some(("limit:the outputs without metrics".to_owned(), theirs)),
        target: Some(0.9),
        better: Better::More,
    })
}

/// Measures the seconds from the start of a fit to its end.
struct Stopwatch {
    started: Instant,
    seconds: Rc<Cell<f64>>,
}

impl Callback for Stopwatch {
    fn on_fit_start(&mut self, _: &RunView<'_>) -> Result<(), Error> {
        self.started = Instant::now();
        Ok(())
    }

    fn on_fit_end(&mut self, _: &RunView<'_>, _: &FitReport) -> Result<(), Error> {
        self.seconds.set(self.started.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Bytes per second of saving a checkpoint of `n_bytes`, compared with writing the same number of bytes to a new file, syncing it
/// and renaming it.
///
/// The plain file is a new one in each round, as the checkpoint is: truncating an old file would let the system reuse its cached
/// pages, which is faster.
fn checkpoint(options: &Options, n_bytes: usize) -> Result<Row> {
    let folder = tempfile::Builder::new().prefix("brisk-bench-").tempdir()?;
    let n_values = n_bytes / CHECKPOINT_TENSORS / size_of::<f32>();
    // A sparse or compressing file system cannot skip these values.
    let values: Vec<f32> = (0..n_values as u32).map(|i| i.wrapping_mul(2_654_435_761) as f32).collect();
    let mut checkpoint = Checkpoint::new();
    for i in 0..CHECKPOINT_TENSORS {
        checkpoint.insert(format!("tensor{i}"), &[n_values], values.clone())?;
    }
    let [saved, plain, temp] = ["checkpoint.safetensors", "plain", "plain.tmp"].map(|name| folder.path().join(name));
    checkpoint.save(&saved)?;
    let is_whole = Checkpoint::load(&saved)?.fingerprint() == checkpoint.fingerprint();
    anyhow::ensure!(is_whole, "the checkpoint differs after saving and loading it");
    let n_bytes = std::fs::metadata(&saved)?.len();

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.n_rounds {
        let started = Instant::now();
        checkpoint.save(&saved)?;
        ours.push(n_bytes as f64 / started.elapsed().as_secs_f64());
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let started = Instant::now();
        let mut file = File::create(&temp).with_context(|| format!("{}: cannot create", temp.display()))?;
        for _ in 0..CHECKPOINT_TENSORS {
            file.write_all(bytes)?;
        }
        file.sync_all()?;
        std::fs::rename(&temp, &plain)?;
        theirs.push((CHECKPOINT_TENSORS * bytes.len()) as f64 / started.elapsed().as_secs_f64());
    }
    Ok(Row {
        suite: "overhead",
        case: format!("saving a checkpoint of {:.2} GB", n_bytes as f64 / 1e9),
        ours,
        unit: "B/s",
        reference: Some(("limit:disk, a plain file".to_owned(), theirs)),
        target: Some(0.7),
        better: Better::More,
    })
}

/// Seconds for which training pauses after an epoch for a checkpoint of `n_bytes`, compared with copying the parameters and
/// moments from memory to memory by all threads.
///
/// A pause lasts from the end of a validation to the start of the next epoch. Before training continues the checkpoint is on
/// disk, as it would be after enough steps.
fn pauses(options: &Options, n_bytes: usize) -> Result<Row> {
    let root = tempfile::Builder::new().prefix("brisk-bench-").tempdir()?;
    let folder = RunFolder::create(root.path(), None, SystemTime::now())?;
    let width = (n_bytes / LAST_TENSORS / size_of::<f32>()).isqrt();
    let sizes = MlpConfig { hidden: vec![width; 2], ..sizes() };
    let (features, labels) = higgs_table(PAUSED_ROWS, SEED);
    let rows = Rows::new(features, labels, N_COLS)?;
    let mut model = Model::new(SEED, |params| Mlp::new(params, &sizes));
    let n_values = model.params().len();
    let seconds = Rc::new(RefCell::new(Vec::new()));
    let pauses = Pauses { validated: Instant::now(), seconds: Rc::clone(&seconds), last: folder.last(), written: None };
    Trainer::new(&options.device)
        .batch_rows(PAUSED_ROWS)
        .learning_rate(1e-9)
        // No pause precedes the first epoch or follows the last one, and during the first two pauses memory is mapped that the
        // others use again.
        .max_epochs(options.n_rounds + 3)
        .folder(&folder)
        .callback(pauses)
        .fit(&mut model, &Binary::new(), &rows, &rows)?;
    let ours = seconds.take().split_off(2);
    let n_bytes = std::fs::metadata(folder.last())?.len();

    let (from, mut to) = (vec![1.0_f32; CHECKPOINT_TENSORS * n_values], vec![0.0_f32; CHECKPOINT_TENSORS * n_values]);
    let share = from.len().div_ceil(rayon::current_num_threads());
    let copies = (0..options.n_rounds).map(|_| {
        let started = Instant::now();
        let (to, from) = (black_box(&mut to).par_chunks_mut(share), black_box(&from).par_chunks(share));
        to.zip(from).for_each(|(to, from)| to.copy_from_slice(from));
        started.elapsed().as_secs_f64()
    });
    Ok(Row {
        suite: "overhead",
        case: format!("pause of training for a checkpoint of {:.2} GB", n_bytes as f64 / 1e9),
        ours,
        unit: "s",
        reference: Some(("limit:memcpy".to_owned(), copies.collect())),
        target: Some(0.8),
        better: Better::Less,
    })
}

/// Measures the seconds from the end of a validation to the start of the next epoch.
struct Pauses {
    validated: Instant,
    seconds: Rc<RefCell<Vec<f64>>>,
    last: PathBuf,
    /// When the last checkpoint was written.
    written: Option<SystemTime>,
}

impl Callback for Pauses {
    fn on_validation_end(&mut self, _: &RunView<'_>, _: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        self.validated = Instant::now();
        Ok(ControlFlow::Continue(()))
    }

    fn on_epoch_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        if run.epoch == 1 {
            return Ok(());
        }
        self.seconds.borrow_mut().push(self.validated.elapsed().as_secs_f64());
        let modified = || std::fs::metadata(&self.last).and_then(|metadata| metadata.modified()).ok();
        let started = Instant::now();
        // If the checkpoint cannot be written, the run ends with that error.
        while modified() == self.written && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.written = modified();
        Ok(())
    }
}
