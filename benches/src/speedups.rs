//! The ladder of six: the effect of parallel loading, mixed precision, data parallel, sharding, early stopping and evaluation without gradients, added one after the
//! other; each is one line of a trainer's set-up.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result};
use brisk_loader::{Ahead, Layout, RowBuffers, RowSelection, RowSource, Rows, split};
use brisk_nn::Mlp;
use brisk_program::Device;
use brisk_tensor::{Graph, Precision};
use brisk_train::{
    Binary, Callback, DataParallel, DataParallelConfig, EarlyStopping, Error, FeedChoice, FeedConfig, Model, RunView, Trainable,
    Trainer, TrainerConfig, ValidationEnd, ZeroStage, run_threads,
};

use crate::Options;
use crate::higgs::{SEED, sizes};
use crate::higgs_table::{N_COLS, higgs_table};
use crate::options::Scale;
use crate::row::{Better, Row, Table};

/// What is switched on, cumulatively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rung {
    Baseline,
    ParallelLoading,
    MixedPrecision,
    DataParallel,
    Sharded,
    EarlyStopping,
}

impl Rung {
    const ALL: [Self; 6] =
        [Self::Baseline, Self::ParallelLoading, Self::MixedPrecision, Self::DataParallel, Self::Sharded, Self::EarlyStopping];

    fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline: rows one by one, f32, one replica",
            Self::ParallelLoading => "+ parallel loading",
            Self::MixedPrecision => "+ mixed precision (bf16)",
            Self::DataParallel => "+ data parallel, 2 replicas",
            Self::Sharded => "+ sharded (ZeRO 3)",
            Self::EarlyStopping => "+ early stopping",
        }
    }
}

/// Rows that are fetched one at a time, each into its own memory, and concatenated afterwards, as PyTorch's default loader does.
#[derive(Debug)]
struct OneByOne<'r, S>(&'r S);

impl<S: RowSource<Feature = f32>> RowSource for OneByOne<'_, S> {
    type Feature = f32;
    type Error = S::Error;

    fn layout(&self) -> Layout {
        self.0.layout()
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), S::Error> {
        let (n_cols, mut fetched) = (self.n_cols(), Vec::with_capacity(rows.len()));
        rows.for_each_block(|_, rows| {
            for row in rows {
                let (mut x, mut y) = (vec![0.0; n_cols], [0.0]);
                self.0.gather(RowSelection::Numbers(&[*row]), RowBuffers::new(&mut x, &mut y))?;
                fetched.push((x, y));
            }
            Ok(())
        })?;
        let (features, labels) = (into.features.unwrap_or_default(), into.labels.unwrap_or_default());
        for ((x, y), (features, label)) in fetched.iter().zip(features.chunks_exact_mut(n_cols).zip(labels)) {
            features.copy_from_slice(x);
            *label = y[0];
        }
        Ok(())
    }
}

/// When each epoch ended, and how good the model was then.
#[derive(Clone, Default)]
struct Clock(Rc<RefCell<Times>>);

#[derive(Default)]
struct Times {
    started: Option<Instant>,
    /// Seconds since the start, and the AUC, at the end of each epoch.
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
        clock.epochs.push((elapsed, validation.metrics.get("valid_auc").unwrap_or(0.0)));
        Ok(ControlFlow::Continue(()))
    }
}

/// The results of one run.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    /// Seconds of training and validation until the end of each epoch, and its AUC.
    epochs: Vec<(f64, f64)>,
    planned_bytes: usize,
}

impl Found {
    fn seconds_an_epoch(&self) -> f64 {
        self.epochs.last().map_or(f64::NAN, |(seconds, _)| seconds / self.epochs.len() as f64)
    }

    fn seconds_to(&self, auc: f64) -> Option<f64> {
        self.epochs.iter().find(|epoch| epoch.1 >= auc).map(|epoch| epoch.0)
    }
}

#[expect(clippy::print_stdout, reason = "what is checked before timing belongs to the report")]
pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    let (features, labels) = higgs_table(options.n_rows, SEED);
    let [train, valid] = split(Rows::new(features, labels, N_COLS)?, SEED, [0.9, 0.1])?;
    let max_epochs = if options.scale == Scale::Smoke { 2 } else { 8 };
    let single = DataParallel::single();
    let mut found: Vec<Vec<Found>> = vec![Vec::new(); Rung::ALL.len()];
    for _ in 0..options.n_rounds {
        for (rung, found) in Rung::ALL.into_iter().zip(&mut found) {
            let one_by_one = OneByOne(&train);
            found.push(match rung {
                Rung::Baseline => train_on(rung, options, &one_by_one, &valid, max_epochs, single)?,
                _ if rung < Rung::DataParallel => train_on(rung, options, &train, &valid, max_epochs, single)?,
                _ => on_replicas(rung, options, &train, &valid, max_epochs)?,
            });
        }
    }
    // The AUC that even the worst of them reaches.
    let best = |found: &Found| found.epochs.iter().map(|epoch| epoch.1).fold(0.0, f64::max);
    let worst = found.iter().flatten().map(best).fold(1.0, f64::min);
    let target = (worst * 1000.0 - 1.0).floor() / 1000.0;
    println!("time to a validation AUC of {target}; all runs reach {worst:.4} or more");

    let mut rows = Vec::new();
    for (rung, of_rung) in Rung::ALL.into_iter().zip(&found) {
        let row = |what: &str, unit, figure: &dyn Fn(&Found) -> f64| Row {
            suite: "speedups",
            case: format!("{}, {what}", rung.name()),
            ours: of_rung.iter().map(figure).collect(),
            unit,
            reference: Some(("the baseline".to_owned(), found[0].iter().map(figure).collect())),
            target: None,
            better: Better::Less,
        };
        rows.push(row("an epoch", "s", &Found::seconds_an_epoch));
        rows.push(row("to the AUC", "s", &|found| found.seconds_to(target).unwrap_or(f64::NAN)));
        rows.push(row("planned memory", "B", &|found| found.planned_bytes as f64));
    }
    let [with, without] = evaluation_bytes()?;
    rows.push(Row {
        suite: "speedups",
        case: "evaluation without gradients, planned memory of 1024 rows".to_owned(),
        ours: vec![without as f64],
        unit: "B",
        reference: Some(("with gradients".to_owned(), vec![with as f64])),
        target: None,
        better: Better::Less,
    });
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}

/// The switches of a rung; each of the six is one line.
fn train_on<S: RowSource<Feature = f32>, V: RowSource<Feature = f32>>(
    rung: Rung,
    options: &Options,
    train: &S,
    valid: &V,
    max_epochs: usize,
    replicas: &DataParallel,
) -> Result<Found, Error> {
    let device = match replicas.world_size() {
        1 => options.device.clone(),
        _ => Device::builder().selection(options.selection.clone()).threads(1).open()?,
    };
    let feed = match rung {
        // One batch at a time, and none in advance.
        Rung::Baseline => FeedConfig {
            choice: FeedChoice::Streamed,
            chunk_bytes: 1,
            ahead: Ahead { depth: 1, workers: 1 },
            ..FeedConfig::default()
        },
        _ => FeedConfig::default(),
    };
    let config = TrainerConfig {
        batch_rows: 1024,
        max_epochs,
        precision: if rung >= Rung::MixedPrecision { Precision::Bf16 } else { Precision::F32 },
        early_stopping: (rung >= Rung::EarlyStopping).then(|| EarlyStopping::default().patience(2)),
        ..TrainerConfig::default()
    };
    let clock = Clock::default();
    let mut model = Model::new(SEED, |params| Mlp::new(params, &sizes()));
    let trainer = || Trainer::new(&device).config(config.clone()).feed(&feed).replicas(replicas);
    let params = replicas.divide(model.params().clone())?;
    let optimizer = brisk_nn::Adam::new(&params);
    let trainable = Trainable::new(model.module(), &params, &optimizer);
    let prepared = trainer().prepare(trainable, &Binary::new(), train, valid)?;
    let rows = prepared.train_rows().len_bytes() + prepared.valid_rows().len_bytes();
    let planned_bytes = Graph::planned_peak_bytes(&prepared.graphs())? + rows;
    drop(prepared);
    trainer().callback(clock.clone()).fit(&mut model, &Binary::new(), train, valid)?;
    let epochs = clock.0.borrow().epochs.clone();
    Ok(Found { epochs, planned_bytes })
}

fn on_replicas<S: RowSource<Feature = f32>, V: RowSource<Feature = f32>>(
    rung: Rung,
    options: &Options,
    train: &S,
    valid: &V,
    max_epochs: usize,
) -> Result<Found> {
    let zero = if rung >= Rung::Sharded { ZeroStage::Parameters } else { ZeroStage::Replicated };
    let config = DataParallelConfig { zero, ..DataParallelConfig::default() };
    let found = run_threads::<_, Error>(2, &config, |replicas| train_on(rung, options, train, valid, max_epochs, replicas))?;
    found.into_iter().next().context("there are two replicas")
}

/// The planned memory of a forward pass whose activations are kept for gradients, and of one that keeps none.
fn evaluation_bytes() -> Result<[usize; 2]> {
    let model = Model::new(SEED, |params| Mlp::new(params, &sizes()));
    let planned = |graph: Graph| {
        let x = graph.constant("x", &vec![0.0; 1024 * N_COLS], &[1024, N_COLS]);
        let y = model.module().forward(&model.params().bind(&graph), &x).mean(..);
        if graph.mode() == brisk_tensor::Mode::Training {
            graph.backward(&y)?;
        }
        Ok::<_, anyhow::Error>(Graph::planned_peak_bytes(&[&graph])?)
    };
    Ok([planned(Graph::training("evaluate"))?, planned(Graph::inference("evaluate"))?])
}
