//! Settings that cannot be right: each is refused before the first step, by an error that names the setting and what was found.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use brisk_loader::{
    Ahead, Batching, Error as LoaderError, Layout, Loader, Order, RowBuffers, RowSelection, RowSource, Rows, WeightedDraws,
    k_fold, split,
};
use brisk_nn::{
    Activation, Adam, AdamConfig, BatchNorm, BatchNormConfig, CautiousAdamW, CombinedOptimizer, EmaConfig, GradScalerConfig,
    Linear, Lookahead, Mlp, MlpConfig, Module, Momentum, Muon, MuonConfig, MuonScale, OptimizerConfig, ParameterGroup,
    Parameters, ParametersBuilder, Schedule, ScheduleFreeAdamW, Scheduled, Sequential, Sgd, SgdConfig, WeightDecay,
};
use brisk_tensor::Tensor;
use brisk_train::metrics::{self, Accuracy, Direction, Metric, MetricValue, PinballLoss, Scored, TopKAccuracy};
use brisk_train::{
    Binary, Callback, Classification, EarlyStopping, Error, Feed, FeedChoice, FeedConfig, GradientClip, LabelledRows, Labels,
    Limit, Model, MultiLabel, Regression, RunView, StepLog, Swa, Task, Trainable, Trainer, TrainerConfig, ValidationInterval,
};
use brisk_vision::{AugmentedImages, ImageAugmentation, MixedImages, Mixing, Recipe};

use crate::gpu::cpu;
use crate::run::{N_COLS, rows};

const NAN: f32 = f32::NAN;

/// Notes that an epoch starts.
struct Started(Rc<Cell<bool>>);

impl Callback for Started {
    fn on_epoch_start(&mut self, _: &RunView<'_>) -> Result<(), Error> {
        self.0.set(true);
        Ok(())
    }
}

fn mlp(n_outputs: usize) -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![4], n_outputs, activation: Activation::relu() };
    Model::new(1, |params| Mlp::new(params, &sizes))
}

/// Fits, and checks that the run is refused before its first step with an error that has all `words`.
#[track_caller]
fn check<M: Module>(model: &mut Model<M>, task: &dyn Task, trainer: Trainer<'_>, words: &[&str]) {
    let started = Rc::new(Cell::new(false));
    let (train, valid) = (rows(0, 100), rows(100, 50));
    let fitted = trainer.callback(Started(Rc::clone(&started))).fit(model, task, &train, &valid);
    let error = fitted.map(drop).expect_err(words[0]).to_string();
    assert!(words.iter().all(|word| error.contains(word)), "{error}, expected {words:?}");
    assert!(!started.get(), "{error}: after the first step");
}

fn trainer() -> Trainer<'static> {
    Trainer::new(&cpu(1)).batch_rows(50).max_epochs(2)
}

type Change = Box<dyn Fn(Trainer<'static>) -> Trainer<'static>>;

/// A setting, what the error says of its value, and a trainer with it.
fn row(
    name: &'static str,
    found: &'static str,
    change: impl Fn(Trainer<'static>) -> Trainer<'static> + 'static,
) -> (&'static str, &'static str, Change) {
    (name, found, Box::new(change))
}

fn config(change: impl Fn(&mut TrainerConfig)) -> impl Fn(Trainer<'static>) -> Trainer<'static> {
    move |trainer| {
        let mut config = TrainerConfig { batch_rows: 50, max_epochs: 2, ..TrainerConfig::default() };
        change(&mut config);
        trainer.config(config)
    }
}

fn scaler(change: impl Fn(&mut GradScalerConfig)) -> impl Fn(Trainer<'static>) -> Trainer<'static> {
    config(move |config| change(&mut config.scaler))
}

#[test]
fn settings_of_a_trainer_are_refused() {
    let early = EarlyStopping::default;
    let weights = |params: &Parameters| params.ids_where(|entry| entry.shape.len() == 2);
    for (name, found, change) in [
        row("batch_rows", "0", |t| t.batch_rows(0)),
        row("accumulate", "0", |t| t.accumulate(0)),
        row("accumulate", "4294967297", |t| t.accumulate((1 << 32) + 1)),
        row("max_epochs", "0", |t| t.max_epochs(0)),
        row("max_steps", "0", |t| t.max_steps(0)),
        row("max_time", "no time", |t| t.configure(|config| config.max_time = Some(Duration::ZERO))),
        row("validate_every", "0", |t| t.configure(|config| config.validate_every = 0)),
        row("min_epochs", "3", config(|c| c.min_epochs = 3)),
        row("max_skipped", "0", config(|c| c.max_skipped = 0)),
        row("profile_batches", "65", |t| t.configure(|config| config.profile_batches = 65)),
        row("limit_train_batches", "NaN", |t| t.configure(|config| config.limit_train_batches = Some(Limit::Share(f64::NAN)))),
        row("limit_train_batches", "Batches(0)", |t| t.configure(|config| config.limit_train_batches = Some(Limit::Batches(0)))),
        row("limit_valid_batches", "-1", |t| t.configure(|config| config.limit_valid_batches = Some(Limit::Share(-1.0)))),
        row("validate_within_epoch", "NaN", |t| {
            t.configure(|config| config.validate_within_epoch = Some(ValidationInterval::Share(f64::NAN)))
        }),
        row("validate_within_epoch", "0 batches", |t| {
            t.configure(|config| config.validate_within_epoch = Some(ValidationInterval::Batches(0)))
        }),
        row("clip", "NaN", |t| t.clip(GradientClip::Norm(NAN))),
        row("clip", "-1", |t| t.clip(GradientClip::Norm(-1.0))),
        row("clip", "NaN", |t| t.clip(GradientClip::Value(NAN))),
        row("clip", "inf", |t| t.clip(GradientClip::Value(f32::INFINITY))),
        row("ema.decay", "NaN", |t| t.ema(NAN)),
        row("ema.decay", "1.5", |t| t.ema(1.5)),
        row("ema.decay", "-0.1", |t| t.ema(-0.1)),
        row("ema.every", "0", |t| t.ema(EmaConfig::new(0.9).every(0))),
        row("ema.first_step", "0", |t| t.ema(EmaConfig::new(0.9).first_step(0))),
        row("min_delta", "NaN", move |t| t.early_stopping(early().min_delta(f64::NAN))),
        row("min_delta", "inf", move |t| t.early_stopping(early().min_delta(f64::INFINITY))),
        row("stopping_threshold", "NaN", move |t| t.early_stopping(early().stopping_threshold(f64::NAN))),
        row("divergence_threshold", "NaN", move |t| t.early_stopping(early().divergence_threshold(f64::NAN))),
        row("valid_nosuch", "expected one of valid_auc", |t| t.early_stopping(EarlyStopping::on("valid_nosuch"))),
        row("lr", "NaN", |t| t.learning_rate(f64::NAN)),
        row("lr", "-0.1", |t| t.learning_rate(-0.1)),
        row("lr", "inf", |t| t.learning_rate(f64::INFINITY)),
        row("max_lr", "NaN", |t| t.schedule(Schedule::one_cycle(f64::NAN))),
        row("warmup", "NaN", |t| t.schedule(Schedule::constant(0.1).warmup(f64::NAN))),
        row("warmup", "2", |t| t.schedule(Schedule::constant(0.1).warmup(2.0))),
        row("step_size", "NaN", |t| t.schedule(Schedule::step(0.1, f64::NAN, 0.1))),
        row("step_size", "0", |t| t.schedule(Schedule::step(0.1, 0, 0.1))),
        row("gamma", "NaN", |t| t.schedule(Schedule::step(0.1, 10, f64::NAN))),
        row("gamma", "-1", |t| t.schedule(Schedule::exponential(0.1, -1.0))),
        row("points", "NaN", |t| t.schedule(Schedule::piecewise_linear([(0, f64::NAN)]))),
        row("points", "NaN", |t| t.schedule(Schedule::piecewise_linear([(f64::NAN, 0.1)]))),
        row("milestones", "NaN", |t| t.schedule(Schedule::multi_step(0.1, [f64::NAN], 0.1))),
        row("t_0", "0", |t| t.schedule(Schedule::cosine_warm_restarts(0.1, 0, 1))),
        row("t_mult", "0", |t| t.schedule(Schedule::cosine_warm_restarts(0.1, 10, 0))),
        row("power", "NaN", |t| t.schedule(Schedule::polynomial(0.1, f64::NAN))),
        row("the function", "NaN", |t| t.schedule(Schedule::from_fn(|_, _| f64::NAN))),
        row("init_scale", "NaN", scaler(|s| s.init_scale = NAN)),
        row("growth_factor", "1", scaler(|s| s.growth_factor = 1.0)),
        row("backoff_factor", "2", scaler(|s| s.backoff_factor = 2.0)),
        row("growth_interval", "0", scaler(|s| s.growth_interval = 0)),
        row("beta1", "1", |t| t.optimizer(|p| Adam::new(p).betas(1.0, 0.9))),
        row("beta2", "NaN", |t| t.optimizer(|p| Adam::new(p).betas(0.9, NAN))),
        row("eps", "-1", |t| t.optimizer(|p| Adam::new(p).eps(-1.0))),
        row("eps", "NaN", |t| t.optimizer(|p| Adam::new(p).eps(NAN))),
        row("weight_decay", "NaN", |t| t.optimizer(|p| Adam::new(p).weight_decay(WeightDecay::Gradient(NAN)))),
        row("weight_decay", "-1", |t| t.optimizer(|p| Adam::new(p).weight_decay(WeightDecay::Decoupled(-1.0)))),
        row("momentum", "NaN", |t| t.optimizer(|p| Sgd::new(p).momentum(NAN, Momentum::Heavy))),
        row("momentum", "-0.5", |t| t.optimizer(|p| Sgd::new(p).momentum(-0.5, Momentum::Nesterov))),
        row("momentum", "1", |t| t.optimizer(|p| Sgd::new(p).momentum(1.0, Momentum::Heavy))),
        row("weight_decay", "inf", |t| t.optimizer(|p| Sgd::new(p).weight_decay(f32::INFINITY))),
        row("lr_factor", "NaN", move |t| {
            t.try_optimizer(move |p| Sgd::new(p).groups(p, &[ParameterGroup::new(weights(p)).lr_factor(NAN)]))
        }),
        row("weight_decay", "-1", move |t| {
            t.try_optimizer(move |p| Adam::new(p).groups(p, &[ParameterGroup::new(weights(p)).weight_decay(-1.0)]))
        }),
        row("lr_factor", "NaN", move |t| t.try_optimizer(move |p| Ok(Muon::new(p, &weights(p))?.lr_factor(NAN)))),
        row("weight_decay", "-1", move |t| t.try_optimizer(move |p| Ok(Muon::new(p, &weights(p))?.weight_decay(-1.0)))),
        row("momentum", "1", move |t| t.try_optimizer(move |p| Ok(Muon::new(p, &weights(p))?.momentum(1.0, Momentum::Heavy)))),
        row("eps", "0", move |t| t.try_optimizer(move |p| Ok(Muon::new(p, &weights(p))?.eps(0.0)))),
        row("coefficients", "NaN", move |t| t.try_optimizer(move |p| Ok(Muon::new(p, &weights(p))?.newton_schulz(5, [NAN; 3])))),
        row("decays", "1.5", |t| t.optimizer(|p| Lookahead::new(Sgd::new(p), p, 5, vec![1.5]))),
        row("every", "0", |t| t.optimizer(|p| Lookahead::new(Sgd::new(p), p, 0, vec![0.5]))),
        row("lr", "NaN", |t| t.optimizer(|p| Scheduled::new(Sgd::new(p), &Schedule::constant(f64::NAN), 10))),
        row("beta1", "2", config(|c| c.optimizer = Some(adamw([2.0, 0.999])))),
        row("no matrices", "layers.0.weight", config(|c| c.optimizer = Some(OptimizerConfig::Muon(MuonConfig::default())))),
        row("matrices", "layers.9.weight", config(|c| c.optimizer = Some(OptimizerConfig::Muon(muon("layers.9.weight"))))),
        row("layers.0.bias", "a matrix", config(|c| c.optimizer = Some(OptimizerConfig::Muon(muon("layers.0.bias"))))),
        row("optimizer", "besides another optimizer", |t| {
            t.optimizer(Sgd::new).configure(|c| c.optimizer = Some(adamw([0.9, 0.999])))
        }),
        row("combined", "an optimizer whose average", |t| {
            t.optimizer(|p| CombinedOptimizer::new().and(ScheduleFreeAdamW::new(p)))
        }),
        row("swa", "epoch 0", |t| t.callback(Swa::from_epoch(0))),
        row("swa", "epoch 3 of a run of 2", |t| t.callback(Swa::from_epoch(3))),
        row("StepLog::every", "0", |t| t.callback(StepLog::new("target/no-such-log.csv").every(0))),
    ] {
        check(&mut mlp(1), &Binary::new(), change(trainer()), &[name, found]);
    }
}

fn adamw(betas: [f32; 2]) -> OptimizerConfig {
    OptimizerConfig::AdamW(AdamConfig { betas, weight_decay: Some(0.1), ..AdamConfig::default() })
}

/// Muon for one parameter.
fn muon(name: &str) -> MuonConfig {
    MuonConfig { matrices: vec![name.to_owned()], ..MuonConfig::default() }
}

#[test]
fn an_optimizer_as_a_setting_is_the_one_of_its_name() -> Result<(), Error> {
    let fitted = |trainer: Trainer<'static>| -> Result<Vec<f32>, Error> {
        let mut model = mlp(1);
        { trainer }.fit(&mut model, &Binary::new(), &rows(0, 100), &rows(100, 50))?;
        let params = model.params();
        Ok(params
            .entries()
            .iter()
            .flat_map(|entry| params.initial_of(params.id_of(&entry.name).expect("it is its own")))
            .collect())
    };
    let with = |config: OptimizerConfig| fitted(trainer().configure(|c| c.optimizer = Some(config)));
    let by_code = fitted(trainer().optimizer(|p| Adam::new(p).betas(0.8, 0.99).weight_decay(WeightDecay::Decoupled(0.1))))?;
    assert_eq!(with(adamw([0.8, 0.99]))?, by_code);
    let sgd = OptimizerConfig::Sgd(SgdConfig { momentum: 0.5, form: Momentum::Nesterov, weight_decay: 0.25, dampening: 0.0 });
    assert_eq!(
        with(sgd.clone())?,
        fitted(trainer().optimizer(|p| Sgd::new(p).momentum(0.5, Momentum::Nesterov).weight_decay(0.25)))?
    );
    assert_eq!(with(OptimizerConfig::default())?, fitted(trainer())?, "Adam is the default");
    let cautious = OptimizerConfig::CautiousAdamW(AdamConfig { weight_decay: Some(0.0), ..AdamConfig::default() });
    assert_eq!(with(cautious)?, fitted(trainer().optimizer(CautiousAdamW::new))?);
    let config = MuonConfig {
        scale: MuonScale::MatchRmsAdamw,
        rest: AdamConfig { weight_decay: Some(0.25), ..AdamConfig::default() },
        rest_lr_factor: 0.5,
        ..muon("layers.0.weight")
    };
    let by_code = fitted(trainer().try_optimizer(|p| {
        let [matrices, rest] = [true, false].map(|is_matrix| p.ids_where(|e| (e.name == "layers.0.weight") == is_matrix));
        let muon = Muon::new(p, &matrices)?.scale(MuonScale::MatchRmsAdamw);
        let rest = ParameterGroup::new(rest).lr_factor(0.5);
        Ok(CombinedOptimizer::new().and(muon).and(Adam::new(p).weight_decay(WeightDecay::Decoupled(0.25)).groups(p, &[rest])?))
    }))?;
    assert_eq!(with(OptimizerConfig::Muon(config))?, by_code);
    assert_ne!(by_code, with(OptimizerConfig::Muon(muon("layers.0.weight")))?, "its values have an effect");
    // Parameters and optimizer are those of the caller, so the setting would have no effect.
    let (model, device) = (mlp(1), cpu(1));
    let optimizer = Sgd::new(model.params());
    let trainer = Trainer::new(&device).configure(|c| c.optimizer = Some(sgd));
    let trainable = Trainable::new(model.module(), model.params(), &optimizer);
    let (train, valid) = (rows(0, 100), rows(100, 50));
    let prepared = trainer.prepare(trainable, &Binary::new(), &train, &valid).map(drop);
    assert!(matches!(prepared, Err(Error::Setting { name: "optimizer", .. })), "{prepared:?}");
    Ok(())
}

#[test]
fn settings_of_a_task_are_refused() {
    let classes = || Classification::of(2);
    let tasks: [(&str, &str, Box<dyn Task>); 21] = [
        ("pos_weight", "NaN", Box::new(Binary::new().pos_weight(NAN))),
        ("pos_weight", "-1", Box::new(Binary::new().pos_weight(-1.0))),
        ("label_smoothing", "NaN", Box::new(Binary::new().label_smoothing(NAN))),
        ("label_smoothing", "-0.5", Box::new(Binary::new().label_smoothing(-0.5))),
        ("n_classes", "1", Box::new(Classification::of(1))),
        ("n_classes", "0", Box::new(Classification::of(0))),
        ("label_smoothing", "2", Box::new(classes().label_smoothing(2.0))),
        ("class_weights", "NaN", Box::new(classes().class_weights([1.0, NAN]))),
        ("class_weights", "-1", Box::new(classes().class_weights([1.0, -1.0]))),
        ("class_weights", "2 weights of 0", Box::new(classes().class_weights([0.0, 0.0]))),
        ("class_weights", "3 weights for 2", Box::new(classes().class_weights([1.0; 3]))),
        ("n_labels", "0", Box::new(MultiLabel::of(0))),
        ("pos_weight", "NaN", Box::new(MultiLabel::of(1).pos_weight([NAN]))),
        ("pos_weight", "2 weights for 1", Box::new(MultiLabel::of(1).pos_weight([1.0; 2]))),
        ("delta", "0", Box::new(Regression::huber(0.0))),
        ("delta", "-1", Box::new(Regression::huber(-1.0))),
        ("delta", "NaN", Box::new(Regression::huber(NAN))),
        ("quantile", "1.5", Box::new(Regression::quantile(1.5))),
        ("quantile", "0", Box::new(Regression::quantile(0.0))),
        ("quantile", "NaN", Box::new(Regression::quantile(NAN))),
        ("targets", "0", Box::new(Regression::mse().targets(0))),
    ];
    let held_out = rows(0, 20);
    for (name, found, task) in tasks {
        check(&mut mlp(1), &*task, trainer(), &[name, found]);
        let error = mlp(1).evaluate(&*task, &held_out).map(drop).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains(found), "evaluation: {error}, expected {name} and {found}");
    }
}

/// A model with batch normalisation, whose settings are changed.
#[track_caller]
fn check_norm(words: &[&str], change: impl Fn(&mut BatchNormConfig)) {
    let mut model = Model::new(1, |params| {
        let mut norm = BatchNormConfig::new(4);
        change(&mut norm);
        let first = Linear::new(params, "first", N_COLS, 4, Activation::relu());
        let norm = BatchNorm::new(params, "norm", &norm);
        Sequential(vec![Box::new(first), Box::new(norm), Box::new(Linear::new(params, "last", 4, 1, Activation::identity()))])
    });
    check(&mut model, &Binary::new(), trainer(), words);
}

#[test]
fn settings_of_layers_and_augmentations_are_refused() {
    check_norm(&["batch_norm", "eps", "NaN"], |norm| norm.eps = NAN);
    check_norm(&["batch_norm", "eps", "-1"], |norm| norm.eps = -1.0);
    check_norm(&["batch_norm", "momentum", "2"], |norm| norm.momentum = 2.0);
    check_norm(&["batch_norm", "momentum", "NaN"], |norm| norm.momentum = NAN);
    check_norm(&["ghost batches of 0"], |norm| norm.ghost_rows = Some(0));

    let images = |augmentation| AugmentedImages { image: [1, N_COLS, 1], augmentation };
    for (name, found, augmentation) in [
        ("brightness", "NaN", ImageAugmentation { brightness: NAN, ..ImageAugmentation::default() }),
        ("contrast", "-1", ImageAugmentation { contrast: -1.0, ..ImageAugmentation::default() }),
        ("cutout", "9", ImageAugmentation { cutout: 9, ..ImageAugmentation::default() }),
        ("pad", "5", ImageAugmentation { pad: 5, ..ImageAugmentation::default() }),
    ] {
        check(&mut mlp(1), &Binary::new(), trainer().augment(images(augmentation)), &[name, found]);
    }
    for (found, mixing) in
        [("NaN", Mixing::Mixup { alpha: NAN }), ("-1", Mixing::CutMix { alpha: -1.0 }), ("0", Mixing::Mixup { alpha: 0.0 })]
    {
        let mixed = MixedImages { images: images(ImageAugmentation::default()), mixing, seed: 1 };
        check(&mut mlp(1), &Binary::new(), trainer().augment(mixed), &["alpha", found]);
    }
}

#[test]
fn settings_of_a_recipe_are_refused() {
    type Change = fn(&mut Recipe);
    let changes: [(&str, &str, Change); 6] = [
        ("batch_rows", "0", |recipe| recipe.batch_rows = 0),
        ("n_epochs", "NaN", |recipe| recipe.n_epochs = f64::NAN),
        ("n_epochs", "-1", |recipe| recipe.n_epochs = -1.0),
        ("whitening.eps", "NaN", |recipe| recipe.whitening.eps = NAN),
        ("whitening.n_images", "0", |recipe| recipe.whitening.n_images = 0),
        ("label_smoothing", "2", |recipe| recipe.label_smoothing = 2.0),
    ];
    for (name, found, change) in changes {
        let mut recipe = Recipe::page().narrowed(&[4, 4, 4, 4], 32);
        let mut builder = ParametersBuilder::new();
        let network = recipe.build(&mut builder);
        let params = builder.build(1);
        change(&mut recipe);
        assert_eq!(recipe.n_steps(0), 0, "{name}: nothing panics");
        let error = recipe.optimizer(&network, &params, 1000).map(drop).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains(found), "{error}, expected {name} and {found}");
    }
}

/// Two classes, evaluated by these metrics, of which the first is watched.
#[derive(Debug)]
struct Judged(fn() -> Vec<Box<dyn Metric>>, &'static str);

impl Task for Judged {
    fn labels(&self) -> Labels {
        Labels::Classes { n_classes: 2 }
    }
    fn n_outputs(&self) -> usize {
        2
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        Classification::of(2).loss(outputs, rows)
    }
    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        (self.0)()
    }
    fn watched(&self) -> &str {
        self.1
    }
}

/// A metric that is never a number.
#[derive(Debug)]
struct Undefined(&'static str);

impl Metric for Undefined {
    fn name(&self) -> &str {
        self.0
    }
    fn direction(&self) -> Direction {
        Direction::Maximize
    }
    fn reset(&mut self) {}
    fn update(&mut self, _: &Scored<'_>) -> Result<(), metrics::Error> {
        Ok(())
    }
    fn compute(&self) -> Result<MetricValue, metrics::Error> {
        Ok(MetricValue::Number(f64::NAN))
    }
}

#[test]
fn metrics_are_checked_before_the_first_step() {
    let twice = Judged(|| vec![Box::new(Accuracy::default()), Box::new(Accuracy::default())], "loss");
    check(&mut mlp(2), &twice, trainer(), &["\"accuracy\"", "two metrics of this name"]);
    let loss = Judged(|| vec![Box::new(Undefined("loss"))], "loss");
    check(&mut mlp(2), &loss, trainer(), &["\"loss\"", "the loss has this name"]);
    let comma = Judged(|| vec![Box::new(Undefined("a,b"))], "loss");
    check(&mut mlp(2), &comma, trainer(), &["\"a,b\"", "cannot head a column"]);
    let top = Judged(|| vec![Box::new(TopKAccuracy::new(2))], "loss");
    check(&mut mlp(2), &top, trainer(), &["`k`", "2", "fewer than the 2 classes"]);
    let pinball = Judged(|| vec![Box::new(PinballLoss::new(f64::NAN))], "loss");
    check(&mut mlp(2), &pinball, trainer(), &["`quantile`", "NaN"]);
}

#[test]
fn a_watched_metric_that_is_never_a_number_is_an_error() {
    let task = Judged(|| vec![Box::new(Undefined("agreement"))], "agreement");
    let (train, valid) = (rows(0, 100), rows(100, 50));
    let error = trainer().fit(&mut mlp(2), &task, &train, &valid).expect_err("there is no best model");
    assert!(
        matches!(&error, Error::Setting { name: "metric", found, .. } if found == "`valid_agreement`, NaN in each validation (2)"),
        "{error}"
    );
    let unwatched = Judged(|| vec![Box::new(Undefined("agreement"))], "loss");
    let report = trainer().fit(&mut mlp(2), &unwatched, &train, &valid).expect("it is only shown");
    assert!(report.history[0].get("valid_agreement").is_some_and(f64::is_nan));
}

#[test]
fn a_search_for_a_learning_rate_that_finds_nothing_is_an_error() {
    let huge = Rows::new((0..200).map(|x| x as f32).collect::<Vec<_>>(), vec![1e30; 200], 1).expect("rows");
    let model = Model::new(1, |params| Linear::new(params, "line", 1, 1, Activation::identity()));
    let error = trainer().find_learning_rate(&model, &Regression::mse(), &huge).expect_err("the loss is infinite");
    assert!(matches!(&error, Error::NoLearningRate { n_steps: 0, first, .. } if first.is_infinite()), "{error}");
}

/// Rows of which none are left after some calls.
struct Shrinking {
    rows: Rows,
    n_calls: AtomicUsize,
    until: usize,
}

impl RowSource for Shrinking {
    type Feature = f32;
    type Error = LoaderError;
    fn layout(&self) -> Layout {
        let layout = self.rows.layout();
        if self.n_calls.fetch_add(1, Relaxed) < self.until { layout } else { Layout { n_rows: 0, ..layout } }
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), LoaderError> {
        into.check(&rows, &self.layout())?;
        self.rows.gather(rows, into)
    }
}

#[test]
fn a_source_that_loses_its_rows_is_an_error_wherever_that_happens() {
    for choice in [FeedChoice::Resident, FeedChoice::Streamed] {
        let feed = FeedConfig { choice, chunk_bytes: 1, ..FeedConfig::default() };
        let mut until = 0;
        while until < 400 {
            let train = Shrinking { rows: rows(0, 100), n_calls: AtomicUsize::new(0), until };
            let fitted = trainer().feed(&feed).fit(&mut mlp(1), &Binary::new(), &train, &rows(100, 50));
            match fitted {
                // It was not asked any more.
                Ok(_) => break,
                Err(error) => assert!(error.to_string().contains("row"), "{until}: {error}"),
            }
            until += 1;
        }
        assert!(until < 400, "{choice:?}: the run asks for the number of rows a few times");
    }
}

#[test]
fn settings_of_loaders_and_feeds_are_refused_or_have_the_right_value() -> Result<(), Error> {
    let data = rows(0, 100);
    let refused = |what: &str, result: Result<(), LoaderError>| assert!(result.is_err(), "{what}");
    refused("size", Loader::new(&data, Batching::of(0)).map(drop));
    refused("block_rows", Loader::new(&data, Batching::of(10).shuffled_blocks(1, 0, 1)).map(drop));
    refused("window_blocks", Loader::new(&data, Batching::of(10).shuffled_blocks(1, 1, 0)).map(drop));
    refused("fractions", split(&data, 1, [f64::NAN, 1.0]).map(drop));
    refused("fractions", split(&data, 1, [1.5, -0.5]).map(drop));
    refused("n_folds", k_fold(&data, 1, 1).map(drop));
    refused("n_folds", k_fold(&data, 1, 101).map(drop));
    refused("weights", WeightedDraws::new(&[f64::NAN], 1).map(drop));
    refused("weights", WeightedDraws::new(&[0.0], 1).map(drop));

    // More than an epoch has is as much as an epoch has.
    for ahead in [Ahead { depth: usize::MAX, workers: 1 }, Ahead { depth: 2, workers: usize::MAX }] {
        let loader = Loader::new(&data, Batching::of(30)).expect("a loader");
        let n_rows = std::thread::scope(|scope| {
            let mut ahead = loader.prefetch(scope, ahead);
            let (mut batches, mut n_rows) = (ahead.epoch(0), 0);
            while let Some(batch) = batches.next_batch().expect("a batch") {
                n_rows += batch.rows;
            }
            n_rows
        });
        assert_eq!(n_rows, 100, "{ahead:?}");
        let feed = FeedConfig { choice: FeedChoice::Streamed, chunk_bytes: 1, ahead, ..FeedConfig::default() };
        let expected = trainer().fit(&mut mlp(1), &Binary::new(), &data, &rows(100, 50))?;
        let streamed = trainer().feed(&feed).fit(&mut mlp(1), &Binary::new(), &data, &rows(100, 50))?;
        assert_eq!(streamed.history, expected.history, "{ahead:?}");
    }
    for choice in [FeedChoice::Resident, FeedChoice::Streamed] {
        let config = FeedConfig { choice, ..FeedConfig::default() };
        let error = Feed::new(&cpu(1), "train", &data, Order::Sequential, 0, &config).map(drop).expect_err("no batch");
        assert!(matches!(error, Error::Setting { name: "batch_rows", .. }), "{error}");
    }
    Ok(())
}
