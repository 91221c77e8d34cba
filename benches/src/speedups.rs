//! The effect of each of the settings that make training on images fast, one after the other: where photos are decoded, where
//! they are augmented, mixed precision, early stopping; and of replicas, sharding and evaluation without gradients. Each is a
//! line of a trainer's set-up.

mod photos;

use std::cell::RefCell;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use brisk_loader::{Ahead, RowSource};
use brisk_nn::tensor::Pool2d;
use brisk_nn::{
    Activation, BatchNorm, BatchNormConfig, Bias, Conv2d, Conv2dConfig, Flatten, Linear, MaxPool2d, Module, ParametersBuilder,
    Reshape, Sequential,
};
use brisk_program::Device;
use brisk_table::{Channels, ImagesOptions, Table as ImageTable, import};
use brisk_tensor::{Graph, Precision};
use brisk_train::{
    Callback, Classification, DataParallel, DataParallelConfig, EarlyStopping, Error, FeedChoice, FeedConfig, Model, RunView,
    Standardisation, Trainable, Trainer, TrainerConfig, ValidationEnd, ZeroStage, run_threads,
};
use brisk_vision::{AugmentedImages, Flip, ImageAugmentation};

use crate::Options;
use crate::options::Scale;
use crate::peer::Peer;
use crate::row::{Better, Row, Table};
use photos::{AugmentedRows, IMAGE, N_CLASSES, Photos};

const SEED: u64 = 1;
const BATCH: usize = 64;
const LEARNING_RATE: f64 = 1e-3;
/// Epochs of a run that does not stop early.
const MAX_EPOCHS: usize = 20;
/// The epochs of a run of PyTorch, of which the first is not timed.
const PEER_EPOCHS: usize = 2;

/// What is switched on: each of the first six also has what those before it have, and the last two have all but early stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rung {
    OneThread,
    AllThreads,
    Table,
    OnDevice,
    MixedPrecision,
    EarlyStopping,
    Replicated,
    Sharded,
}

impl Rung {
    const ALL: [Self; 8] = [
        Self::OneThread,
        Self::AllThreads,
        Self::Table,
        Self::OnDevice,
        Self::MixedPrecision,
        Self::EarlyStopping,
        Self::Replicated,
        Self::Sharded,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::OneThread => "photos decoded one by one, by one thread",
            Self::AllThreads => "+ by all threads, ahead of training",
            Self::Table => "+ once, into a table",
            Self::OnDevice => "+ augmented on the device",
            Self::MixedPrecision => "+ mixed precision (bf16)",
            Self::EarlyStopping => "+ early stopping",
            Self::Replicated => "without early stopping, 2 replicas",
            Self::Sharded => "without early stopping, 2 replicas, sharded (ZeRO 3)",
        }
    }

    /// The request for `benches/peers/speedups.py`, and what PyTorch does then, if it has the like.
    fn peer(self) -> Option<[&'static str; 2]> {
        match self {
            Self::OneThread => Some(["alone", "PyTorch, DataLoader without workers"]),
            Self::AllThreads => Some(["workers", "PyTorch, DataLoader with a worker per core"]),
            Self::OnDevice => Some(["memory", "PyTorch, images in memory, batches augmented"]),
            Self::MixedPrecision => Some(["bf16", "PyTorch, the same with autocast"]),
            Self::Table | Self::EarlyStopping | Self::Replicated | Self::Sharded => None,
        }
    }
}

/// When each epoch ended, and how good the model was then.
#[derive(Clone, Default)]
struct Clock(Rc<RefCell<Times>>);

#[derive(Default)]
struct Times {
    started: Option<Instant>,
    /// Seconds since the start, and the accuracy, at the end of each epoch.
    epochs: Vec<(f64, f64)>,
}

impl Callback for Clock {
    fn on_fit_start(&mut self, _: &RunView<'_>) -> Result<(), Error> {
        self.0.borrow_mut().started = Some(Instant::now());
        Ok(())
    }

    fn on_validation_end(&mut self, _: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        let mut clock = self.0.borrow_mut();
        let elapsed = clock.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        clock.epochs.push((elapsed, validation.metrics.get("valid_accuracy").unwrap_or(0.0)));
        Ok(ControlFlow::Continue(()))
    }
}

/// The results of one run.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    /// Seconds of training and validation until the end of each epoch, and its accuracy.
    epochs: Vec<(f64, f64)>,
    /// Seconds before that, for the table.
    import: f64,
    planned_bytes: usize,
}

impl Found {
    fn best(&self) -> f64 {
        self.epochs.iter().map(|epoch| epoch.1).fold(0.0, f64::max)
    }

    fn seconds(&self) -> f64 {
        self.epochs.last().map_or(f64::NAN, |(seconds, _)| *seconds)
    }

    fn seconds_an_epoch(&self) -> f64 {
        self.seconds() / self.epochs.len() as f64
    }

    fn seconds_to(&self, accuracy: f64) -> f64 {
        let reached = self.epochs.iter().find(|epoch| epoch.1 >= accuracy);
        reached.map_or(f64::NAN, |(seconds, _)| self.import + seconds)
    }
}

/// The photos of a set, in their folder and in a table.
struct Set {
    photos: Photos,
    table: ImageTable,
    /// Seconds that the import took.
    import: f64,
}

impl Set {
    /// Draws `n` photos in `folder`, and reads each of them in each way.
    fn new(folder: &Path, n: usize, seed: u64) -> Result<Self> {
        photos::draw(folder, n, seed)?;
        let table = folder.with_extension("safetensors");
        let size = Some([IMAGE[0], IMAGE[1]]);
        let started = Instant::now();
        import(folder, &table, &ImagesOptions { channels: Channels::Rgb, size, ..ImagesOptions::default() })?;
        let import = started.elapsed().as_secs_f64();
        Ok(Self { photos: Photos::of(folder)?, table: ImageTable::open(&table)?, import })
    }
}

#[expect(clippy::print_stdout, reason = "what is checked before timing belongs to the report")]
pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    let n_valid = (options.n_rows / 5).max(N_CLASSES);
    ensure!(
        options.n_rows >= n_valid + BATCH,
        "--images {}: expected a batch of {BATCH} to train on and a fifth to validate with; pass {} or more",
        options.n_rows,
        2 * BATCH
    );
    let folder = tempfile::tempdir()?;
    let [train_folder, valid_folder] = ["train", "valid"].map(|set| folder.path().join(set));
    let train = Set::new(&train_folder, options.n_rows - n_valid, SEED)?;
    let valid = Set::new(&valid_folder, n_valid, SEED + 1)?;
    let scale = Standardisation::of("train", &train.table)?.per_channel(IMAGE[2])?;
    let mut torch = match &options.peers {
        None => None,
        Some(python) => {
            let n_threads = std::thread::available_parallelism()?.get();
            let words = [train_folder, valid_folder].map(|folder| folder.display().to_string());
            let words = [&words[..], &[BATCH.to_string(), n_threads.to_string()]].concat();
            Some(Peer::python(python, "benches/peers/speedups.py", &words)?)
        }
    };
    let mut found: [Vec<Found>; Rung::ALL.len()] = Default::default();
    let mut theirs: [Vec<f64>; Rung::ALL.len()] = Default::default();
    for _ in 0..options.n_rounds {
        for ((rung, found), theirs) in Rung::ALL.into_iter().zip(&mut found).zip(&mut theirs) {
            let run = Run { rung, options, scale: &scale, import: train.import + valid.import };
            found.push(run.train(&train, &valid)?);
            if let (Some(torch), Some([request, _])) = (&mut torch, rung.peer()) {
                let n_epochs = if options.scale == Scale::Smoke { 1 } else { PEER_EPOCHS };
                theirs.extend(torch.ask(&format!("{request} {n_epochs}"))?);
            }
        }
    }
    // The accuracy that even the worst of them reaches.
    let worst = found.iter().flatten().map(Found::best).fold(1.0, f64::min);
    let target = (worst * 100.0 - 1.0).floor() / 100.0;
    println!("time to a validation accuracy of {target}; all runs reach {worst:.4} or more");

    let mut rows = Vec::new();
    for ((rung, of_rung), theirs) in Rung::ALL.into_iter().zip(&found).zip(theirs) {
        let row = |what: &str, unit, figure: &dyn Fn(&Found) -> f64, target: Option<f64>| Row {
            suite: "speedups",
            case: format!("{}, {what}", rung.name()),
            ours: of_rung.iter().map(figure).collect(),
            unit,
            reference: (rung != Rung::OneThread)
                .then(|| ("decoded by one thread".to_owned(), found[0].iter().map(figure).collect())),
            target,
            better: Better::Less,
        };
        rows.push(row("an epoch", "s", &Found::seconds_an_epoch, None));
        if let (Some([_, peer]), true) = (rung.peer(), torch.is_some()) {
            let reference = Some((peer.to_owned(), theirs));
            rows.push(Row { reference, ..row("an epoch", "s", &Found::seconds_an_epoch, None) });
        }
        rows.push(row("to the accuracy, with the import", "s", &|found| found.seconds_to(target), None));
        let six = (rung == Rung::EarlyStopping).then_some(6.0);
        rows.push(row("the run, with the import", "s", &|found| found.import + found.seconds(), six));
        rows.push(row("planned memory", "B", &|found| found.planned_bytes as f64, None));
    }
    let [with, without] = evaluation_bytes()?;
    rows.push(Row {
        suite: "speedups",
        case: format!("evaluation without gradients, planned memory of {BATCH} images"),
        ours: vec![without as f64],
        unit: "B",
        reference: Some(("with gradients".to_owned(), vec![with as f64])),
        target: None,
        better: Better::Less,
    });
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}

/// A run of a rung.
#[derive(Clone, Copy)]
struct Run<'a> {
    rung: Rung,
    options: &'a Options,
    scale: &'a Standardisation,
    /// Seconds that the import of both sets took.
    import: f64,
}

impl Run<'_> {
    fn train(self, train: &Set, valid: &Set) -> Result<Found> {
        let single = DataParallel::single();
        let (train_table, valid_table) = (train.table.typed::<u8>()?, valid.table.typed::<u8>()?);
        Ok(match self.rung {
            Rung::OneThread | Rung::AllThreads => self.train_on(&AugmentedRows::new(&train.photos), &valid.photos, single)?,
            Rung::Table => self.train_on(&AugmentedRows::new(train_table), &valid_table, single)?,
            Rung::OnDevice | Rung::MixedPrecision | Rung::EarlyStopping => self.train_on(&train_table, &valid_table, single)?,
            Rung::Replicated | Rung::Sharded => {
                let zero = if self.rung == Rung::Sharded { ZeroStage::Parameters } else { ZeroStage::Replicated };
                let config = DataParallelConfig { zero, ..DataParallelConfig::default() };
                let train_on = |replicas: &DataParallel| self.train_on(&train_table, &valid_table, replicas);
                let found = run_threads::<_, Error>(2, &config, train_on)?;
                found.into_iter().next().context("there are two replicas")?
            }
        })
    }

    /// The switches of a rung; each of them is one line.
    fn train_on<S: RowSource<Feature = u8>, V: RowSource<Feature = u8>>(
        self,
        train: &S,
        valid: &V,
        replicas: &DataParallel,
    ) -> Result<Found, Error> {
        let Self { rung, options, .. } = self;
        let n_threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let device = match replicas.world_size() {
            1 => options.device.clone(),
            _ => Device::builder().selection(options.selection.clone()).threads(1).open()?,
        };
        let ahead = |depth, workers| FeedConfig {
            choice: FeedChoice::Streamed,
            // A batch.
            chunk_bytes: 1,
            ahead: Ahead { depth, workers },
            ..FeedConfig::default()
        };
        let feed = match rung {
            Rung::OneThread => ahead(1, 1),
            Rung::AllThreads | Rung::Table => ahead(2 * n_threads, n_threads),
            _ => FeedConfig::default(),
        };
        let config = TrainerConfig {
            batch_rows: BATCH,
            max_epochs: if options.scale == Scale::Smoke { 1 } else { MAX_EPOCHS },
            precision: if rung >= Rung::MixedPrecision { Precision::Bf16 } else { Precision::F32 },
            early_stopping: (rung == Rung::EarlyStopping).then(|| EarlyStopping::on("valid_accuracy").patience(3)),
            ..TrainerConfig::default()
        };
        let clock = Clock::default();
        let mut model = Model::new(SEED, network);
        let trainer = || {
            let trainer = Trainer::new(&device).config(config.clone()).learning_rate(LEARNING_RATE);
            let trainer = trainer.feed(&feed).replicas(replicas).standardisation(self.scale.clone());
            if rung < Rung::OnDevice {
                return trainer;
            }
            let augmentation = ImageAugmentation { pad: 4, flip: Flip::Random, seed: SEED, ..ImageAugmentation::default() };
            trainer.augment(AugmentedImages { image: IMAGE, augmentation })
        };
        let task = Classification::of(N_CLASSES);
        let params = replicas.shard_parameters(model.params().clone())?;
        let optimizer = brisk_nn::Adam::new(&params);
        let prepared = trainer().prepare(Trainable::new(model.module(), &params, &optimizer), &task, train, valid)?;
        let rows = prepared.train_rows().len_bytes() + prepared.valid_rows().len_bytes();
        let planned_bytes = Graph::planned_peak_bytes(&prepared.graphs())? + rows;
        drop(prepared);
        trainer().callback(clock.clone()).fit(&mut model, &task, train, valid)?;
        let epochs = clock.0.borrow().epochs.clone();
        Ok(Found { epochs, import: if rung >= Rung::Table { self.import } else { 0.0 }, planned_bytes })
    }
}

/// Three convolutions of 3 by 3, each with batch normalisation, ReLU and pooling by two, then a linear layer.
fn network(params: &mut ParametersBuilder) -> Sequential {
    let mut layers: Vec<Box<dyn Module>> = vec![Box::new(Reshape::new(IMAGE))];
    for (i, [n_in, n_out]) in [[IMAGE[2], 16], [16, 32], [32, 64]].into_iter().enumerate() {
        let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(n_in, n_out, 3) };
        let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(n_out) };
        layers.push(Box::new(Conv2d::new(params, &format!("conv{i}"), &conv)));
        layers.push(Box::new(BatchNorm::new(params, &format!("norm{i}"), &norm)));
        layers.push(Box::new(MaxPool2d(Pool2d::square(2))));
    }
    let n_features = IMAGE[0] / 8 * (IMAGE[1] / 8) * 64;
    layers.push(Box::new(Flatten));
    layers.push(Box::new(Linear::new(params, "head", n_features, N_CLASSES, Activation::identity())));
    Sequential(layers)
}

/// The planned memory of a forward pass whose activations are kept for gradients, and of one that keeps none.
fn evaluation_bytes() -> Result<[usize; 2]> {
    let model = Model::new(SEED, network);
    let n_cols = IMAGE.iter().product();
    let planned = |graph: Graph| {
        let x = graph.constant("x", &vec![0.0; BATCH * n_cols], &[BATCH, n_cols]);
        let y = model.module().forward(&model.params().bind(&graph), &x).mean(..);
        if graph.mode() == brisk_tensor::Mode::Training {
            graph.backward(&y)?;
        }
        Ok::<_, anyhow::Error>(Graph::planned_peak_bytes(&[&graph])?)
    };
    Ok([planned(Graph::training("evaluate"))?, planned(Graph::inference("evaluate"))?])
}
