//! A checkpoint is refused by a run that would compute anything else than the run that wrote it, and accepted on any device,
//! number of replicas and feed.

use brisk_loader::Rows;
use brisk_nn::tensor::Tensor;
use brisk_nn::{
    Activation, Adam, Augment, Entry, Flatten, Mlp, MlpConfig, ParameterGroup, Parameters, Schedule, Sequential, WeightDecay,
};
use brisk_program::Device;
use brisk_train::metrics::{ExpectedCalibrationError, Metric};
use brisk_train::{
    Binary, Checkpoint, Classification, DataParallel, DataParallelConfig, Error, FeedChoice, FeedConfig, FitReport, LabelledRows,
    Labels, Limit, Model, ResumeDifference, ResumeMismatch, RunFolder, Standardisation, Task, Trainer, Wire, ZeroStage,
    run_threads,
};
use brisk_vision::{AugmentedImages, Flip, ImageAugmentation, MixedImages, Mixing};

use crate::gpu::{cpu, gpu};

const IMAGE: [usize; 3] = [4, 4, 1];
const N_COLS: usize = 16;

/// What a run computes, apart from its rows.
struct Run {
    activation: Activation,
    task: Box<dyn Task>,
    adam: fn(Adam) -> Adam,
    /// The rate of biases, as a multiple of that of weights, if they are a group.
    bias_rate: Option<f32>,
    scale: Option<Standardisation>,
    augmentation: ImageAugmentation,
    mixing: Option<Mixing>,
    n_valid_batches: Option<usize>,
    schedule: Schedule,
    n_epochs: usize,
    extends: bool,
}

impl Run {
    fn of(task: impl Task + 'static) -> Self {
        Self {
            activation: Activation::relu(),
            task: Box::new(task),
            adam: |adam| adam,
            bias_rate: None,
            scale: None,
            augmentation: ImageAugmentation { pad: 1, flip: Flip::Random, seed: 5, ..ImageAugmentation::default() },
            mixing: None,
            n_valid_batches: None,
            schedule: Schedule::constant(1e-3),
            n_epochs: 1,
            extends: false,
        }
    }

    fn augment(&self) -> Box<dyn Augment> {
        let images = AugmentedImages { image: IMAGE, augmentation: self.augmentation };
        match self.mixing {
            None => Box::new(images),
            Some(mixing) => Box::new(MixedImages { images, mixing, seed: 5 }),
        }
    }

    fn optimizer(&self, params: &Parameters) -> Adam {
        let adam = (self.adam)(Adam::new(params));
        let Some(rate) = self.bias_rate else { return adam };
        let is_bias = |entry: &Entry| entry.shape.len() == 1;
        let biases = ParameterGroup::new(params.ids_where(is_bias)).lr_factor(rate);
        let weights = ParameterGroup::new(params.ids_where(|entry| !is_bias(entry)));
        adam.groups(params, &[biases, weights]).expect("two groups")
    }

    /// Trains from the start, or from a checkpoint.
    fn train(&self, on: &Place<'_>, from: Option<&Checkpoint>, allowed: &[ResumeMismatch]) -> Result<FitReport, Error> {
        let rows = rows(self.task.n_outputs().max(2));
        let [train, valid] = brisk_loader::split(&rows, 3, [0.6, 0.4]).expect("rows");
        let sizes = MlpConfig {
            n_inputs: N_COLS,
            hidden: vec![8],
            n_outputs: self.task.n_outputs(),
            activation: self.activation.clone(),
        };
        let mut model = Model::new(1, |params| Sequential(vec![Box::new(Flatten), Box::new(Mlp::new(params, &sizes))]));
        let feed = FeedConfig { choice: on.feed, chunk_bytes: 1, ..FeedConfig::default() };
        let mut trainer = Trainer::new(&on.device).batch_rows(16).max_epochs(self.n_epochs).schedule(self.schedule.clone());
        trainer = trainer.optimizer(|params| self.optimizer(params)).augment(self.augment()).feed(&feed);
        trainer = trainer.resume_anyway(allowed);
        if let Some(scale) = &self.scale {
            trainer = trainer.standardisation(scale.clone());
        }
        if let Some(n) = self.n_valid_batches {
            trainer = trainer.configure(|config| config.limit_valid_batches = Some(Limit::Batches(n)));
        }
        if let Some(folder) = &on.folder {
            trainer = trainer.folder(folder);
        }
        trainer = trainer.replicas(on.replicas);
        if self.extends {
            trainer = trainer.configure(|config| config.extend = true);
        }
        match from {
            None => trainer.fit(&mut model, &*self.task, &train, &valid),
            Some(checkpoint) => trainer.resume(&mut model, checkpoint, &*self.task, &train, &valid),
        }
    }

    /// The last checkpoint of this run.
    fn checkpoint(&self) -> Checkpoint {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = RunFolder::create_at(&root.path().join("run")).expect("a folder");
        self.train(&Place { folder: Some(folder.clone()), ..Place::default() }, None, &[]).expect("a run");
        Checkpoint::load(folder.last()).expect("a checkpoint")
    }
}

/// Where a run computes, and where its rows are.
struct Place<'a> {
    device: Device,
    feed: FeedChoice,
    folder: Option<RunFolder>,
    replicas: &'a DataParallel,
}

impl Default for Place<'_> {
    fn default() -> Self {
        Self { device: cpu(1), feed: FeedChoice::Resident, folder: None, replicas: DataParallel::single() }
    }
}

fn rows(n_classes: usize) -> Rows<Vec<u8>> {
    let pixels: Vec<u8> = (0..100 * N_COLS).map(|i| (i * i % 251) as u8).collect();
    let labels = (0..100).map(|row| (row % n_classes) as f32).collect::<Vec<_>>();
    Rows::new(pixels, labels, N_COLS).expect("rows of images")
}

/// The run with `change` does not resume from a checkpoint of the run without it, unless this is allowed.
#[track_caller]
fn check(run: fn() -> Run, change: impl FnOnce(&mut Run), what: &str, kind: ResumeMismatch) {
    let checkpoint = run().checkpoint();
    let mut changed = Run { n_epochs: 2, ..run() };
    assert_eq!(changed.train(&Place::default(), Some(&checkpoint), &[]).expect("the same run").n_epochs, 2, "unchanged");
    change(&mut changed);
    let error = changed.train(&Place::default(), Some(&checkpoint), &[]).expect_err("it computes something else");
    let Error::ResumeMismatch { differences, .. } = &error else { panic!("{error}") };
    let found: Vec<(&str, ResumeMismatch)> = differences.iter().map(|found| (found.what.as_str(), found.mismatch)).collect();
    assert_eq!(found, [(what, kind)], "{error}");
    assert_eq!(changed.train(&Place::default(), Some(&checkpoint), &[kind]).expect("it is allowed").n_epochs, 2, "{what}");
}

fn binary() -> Run {
    Run::of(Binary::new())
}

fn classes() -> Run {
    Run::of(Classification::of(3))
}

fn mixed() -> Run {
    Run { mixing: Some(Mixing::Mixup { alpha: 0.4 }), ..classes() }
}

fn grouped() -> Run {
    Run { bias_rate: Some(2.0), ..binary() }
}

fn watching() -> Run {
    Run::of(Watching::new())
}

/// A task that watches a metric with a setting.
#[derive(Debug)]
struct Watching {
    task: Binary,
    n_bins: usize,
}

impl Watching {
    fn new() -> Self {
        Self { task: Binary::new(), n_bins: 10 }
    }
}

impl Task for Watching {
    fn labels(&self) -> Labels {
        self.task.labels()
    }

    fn n_outputs(&self) -> usize {
        1
    }

    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        self.task.loss(outputs, rows)
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        vec![Box::new(ExpectedCalibrationError::with_bins(self.n_bins))]
    }

    fn watched(&self) -> &str {
        "expected_calibration_error"
    }
}

const WATCHED: &str = "definition of the watched metric";

const INPUT: &str = "input of a training batch (augmentation)";

#[test]
fn whatever_changes_the_result_is_refused() {
    use ResumeMismatch::{Computation, Rows, Settings};

    check(binary, |run| run.activation = Activation::tanh(), "model", Computation);
    check(binary, |run| run.task = Box::new(Binary::new().pos_weight(2.0)), "loss", Computation);
    check(binary, |run| run.task = Box::new(Binary::new().label_smoothing(0.1)), "loss", Computation);
    check(classes, |run| run.task = Box::new(Classification::of(3).class_weights([1.0, 2.0, 1.0])), "loss", Computation);
    check(classes, |run| run.task = Box::new(Classification::of(3).label_smoothing(0.1)), "loss", Computation);
    check(binary, |run| run.adam = |adam| adam.betas(0.8, 0.999), "optimizer", Computation);
    check(binary, |run| run.adam = |adam| adam.eps(1e-6), "optimizer", Computation);
    check(binary, |run| run.adam = |adam| adam.weight_decay(WeightDecay::Decoupled(0.01)), "optimizer", Computation);
    check(binary, |run| run.bias_rate = Some(2.0), "optimizer", Computation);
    check(grouped, |run| run.bias_rate = Some(3.0), "optimizer", Computation);
    check(watching, |run| run.task = Box::new(Watching { n_bins: 5, ..Watching::new() }), WATCHED, Settings);
    check(binary, |run| run.scale = Some(Standardisation::none(N_COLS)), "standardisation", Rows);
    check(classes, |run| run.augmentation.pad = 2, INPUT, Computation);
    check(classes, |run| run.augmentation.flip = Flip::Never, INPUT, Computation);
    check(classes, |run| run.augmentation.cutout = 2, INPUT, Computation);
    check(classes, |run| run.augmentation.seed = 6, INPUT, Computation);
    check(mixed, |run| run.mixing = Some(Mixing::Mixup { alpha: 0.5 }), INPUT, Computation);
    check(mixed, |run| run.mixing = Some(Mixing::CutMix { alpha: 0.4 }), INPUT, Computation);
    check(mixed, |run| run.mixing = None, INPUT, Computation);
    check(classes, |run| run.n_valid_batches = Some(1), "number of validation rows", Settings);
}

#[test]
fn a_difference_is_shown_by_the_field_that_has_it() {
    let checkpoint = binary().checkpoint();
    let run = Run { n_epochs: 2, adam: |adam| adam.betas(0.8, 0.999), ..binary() };
    let error = run.train(&Place::default(), Some(&checkpoint), &[]).expect_err("another β").to_string();
    assert!(error.contains("optimizer: betas: [0.9, 0.999] in the checkpoint, betas: [0.8, 0.999] here"), "{error}");
}

#[test]
fn the_same_run_resumes_on_any_device_with_any_feed_and_number_of_replicas() {
    let checkpoint = classes().checkpoint();
    let run = Run { n_epochs: 2, ..classes() };
    let resumes = |place: &Place<'_>| assert_eq!(run.train(place, Some(&checkpoint), &[]).expect("the same run").n_epochs, 2);
    resumes(&Place { feed: FeedChoice::Streamed, ..Place::default() });
    if let Some(device) = gpu() {
        resumes(&Place { device, ..Place::default() });
    }
    for zero in [ZeroStage::Replicated, ZeroStage::Parameters] {
        let config = DataParallelConfig { zero, ..DataParallelConfig::default() };
        let epochs = run_threads(2, &config, |replicas| {
            let run = Run { n_epochs: 2, ..classes() };
            run.train(&Place { replicas, ..Place::default() }, Some(&checkpoint), &[]).map(|report| report.n_epochs)
        });
        assert_eq!(epochs.expect("the same run"), [2, 2], "{zero:?}");
    }
}

/// The type in which gradients are sent changes what is computed, as other settings do.
#[test]
fn gradients_in_another_type_are_refused() {
    let checkpoint = classes().checkpoint();
    let config = DataParallelConfig { wire: Wire::F16, ..DataParallelConfig::default() };
    let resumed = |allowed: &[ResumeMismatch]| {
        run_threads(2, &config, |replicas| {
            let run = Run { n_epochs: 2, ..classes() };
            let place = Place { replicas, ..Place::default() };
            run.train(&place, Some(&checkpoint), allowed).map(|report| report.n_epochs)
        })
    };
    match resumed(&[]) {
        Err(Error::ResumeMismatch { differences, .. }) => {
            let found = &differences[0];
            let values = (found.mismatch, found.what.as_str(), found.checkpoint.as_str(), found.run.as_str());
            let expected = (ResumeMismatch::Settings, "type in which gradients are sent", "f32", "f16");
            assert_eq!((values, differences.len()), (expected, 1));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(resumed(&[ResumeMismatch::Settings]).expect("it is allowed"), [2, 2]);
}

/// Groups are compared in the same way if replicas have shards of them.
#[test]
fn groups_of_sharded_parameters_are_compared() {
    let checkpoint = grouped().checkpoint();
    let config = DataParallelConfig { zero: ZeroStage::Optimizer, ..DataParallelConfig::default() };
    for (rate, is_same) in [(2.0, true), (3.0, false)] {
        let resumed = run_threads(2, &config, |replicas| {
            let run = Run { n_epochs: 2, bias_rate: Some(rate), ..binary() };
            run.train(&Place { replicas, ..Place::default() }, Some(&checkpoint), &[]).map(drop)
        });
        let differs =
            |error: Error| matches!(error, Error::ResumeMismatch { differences, .. } if differences[0].what == "optimizer");
        match resumed {
            Ok(_) => assert!(is_same, "biases at {rate}"),
            Err(error) => assert!(!is_same && differs(error), "biases at {rate}"),
        }
    }
}

/// The learning rates of the second epoch, with a schedule over all steps of a run.
#[test]
fn more_epochs_keep_the_planned_schedule_or_are_refused() {
    let planned = || Run { schedule: Schedule::one_cycle(0.1), ..binary() };
    let checkpoint = planned().checkpoint();
    let longer = Run { n_epochs: 2, ..planned() };
    let error = longer.train(&Place::default(), Some(&checkpoint), &[]).expect_err("the schedule is longer");
    let Error::ResumeMismatch { differences, .. } = &error else { panic!("{error}") };
    let found = differences.iter().map(|found| (found.what.as_str(), found.checkpoint.as_str(), found.run.as_str()));
    assert_eq!(found.collect::<Vec<_>>(), [(ResumeDifference::SCHEDULE_LENGTH, "4", "8")], "60 rows in batches of 16");
    assert!(error.to_string().contains("`TrainerConfig::extend`"), "{error}");

    let last_rate = |run: &Run| {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = RunFolder::create_at(&root.path().join("run")).expect("a folder");
        planned().train(&Place { folder: Some(folder.clone()), ..Place::default() }, None, &[]).expect("a run");
        let last = Checkpoint::load(folder.last()).expect("a checkpoint");
        run.train(&Place { folder: Some(folder.clone()), ..Place::default() }, Some(&last), &[ResumeMismatch::Settings])
            .expect("it is allowed");
        let log = std::fs::read_to_string(folder.metrics_csv()).expect("a log");
        let row: Vec<f64> = log.lines().last().expect("a row").split(',').map(|cell| cell.parse().expect("a number")).collect();
        let lr = log.lines().next().expect("a header").split(',').position(|name| name == "lr").expect("a column");
        row[lr]
    };
    let (four, eight) = (Schedule::one_cycle(0.1).rate(7, 4), Schedule::one_cycle(0.1).rate(7, 8));
    assert_eq!(last_rate(&Run { n_epochs: 2, extends: true, ..planned() }), four, "as planned");
    assert_eq!(last_rate(&Run { n_epochs: 2, ..planned() }), eight, "replaced");
    // Fixed lengths do not depend on the number of epochs.
    let fixed = || Run { schedule: Schedule::step(0.1, 3, 0.5), ..binary() };
    let report = Run { n_epochs: 2, ..fixed() }.train(&Place::default(), Some(&fixed().checkpoint()), &[]);
    assert_eq!(report.expect("the same rates").n_epochs, 2);
}
