//! Training runs whose result is easily wrong without a word, made in this process.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use brisk_loader::{Order, Rows};
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, Bound, Dropout, Linear, Parameters, ParametersBuilder, Schedule, Sequential,
    Sgd, WeightDecay,
};
use brisk_program::{Device, Selection};
use brisk_tensor::{DType, Graph, Persistent, Tensor};
use brisk_train::{
    BatchTensors, Binary, Checkpoint, Classification, EarlyStopping, Feed, FeedConfig, FitReport, Model, Predictor, Regression,
    RunFolder, Standardisation, Step, StepLog, Task, Trainer,
};

use super::tables::part;
use super::{Row, within};

const N_COLS: usize = 2;

/// Rows of two features, and labels computed from the row's number and its first feature.
pub(super) fn rows(n: usize, label: impl Fn(usize, f32) -> f32) -> Result<Rows> {
    let features: Vec<f32> = (0..n * N_COLS).map(|i| part(i / N_COLS, i % N_COLS) as f32).collect();
    let labels = (0..n).map(|row| label(row, features[row * N_COLS])).collect();
    Ok(Rows::new(features, labels, N_COLS)?)
}

pub(super) fn class(_: usize, x: f32) -> f32 {
    f32::from(x > 0.5)
}

fn line(_: usize, x: f32) -> f32 {
    3.0 - 2.0 * x
}

/// A network of one hidden layer.
pub(super) fn network(n_outputs: usize, activation: Activation) -> Model<Sequential> {
    Model::new(7, |params| {
        let hidden = Linear::new(params, "hidden", N_COLS, 8, activation);
        Sequential(vec![Box::new(hidden), Box::new(Linear::new(params, "head", 8, n_outputs, Activation::identity()))])
    })
}

fn with_norm(params: &mut ParametersBuilder) -> Sequential {
    let hidden = Linear::new(params, "hidden", N_COLS, 8, Activation::relu());
    Sequential(vec![Box::new(hidden), Box::new(BatchNorm::new(params, "norm", &BatchNormConfig::new(8)))])
}

fn one_thread() -> Result<Device> {
    Ok(Device::builder().selection(Selection::Cpu).threads(1).open()?)
}

/// A trainer on one thread.
pub(super) fn trainer<'a>() -> Result<Trainer<'a>> {
    Ok(Trainer::new(&one_thread()?).batch_rows(20).max_epochs(2).learning_rate(0.01))
}

pub(super) fn fit(trainer: Trainer<'_>, task: &dyn Task) -> Result<FitReport> {
    let mut trainer = trainer;
    let mut model = network(task.n_outputs(), Activation::relu());
    Ok(trainer.fit(&mut model, task, &rows(100, class)?, &rows(40, class)?)?)
}

/// The outcome is an error that has all of these words.
pub(super) fn refused<T>(outcome: Result<T>, words: &[&str]) -> Result<()> {
    let error = match outcome {
        Ok(_) => anyhow::bail!("it is not refused"),
        Err(error) => format!("{error:#}"),
    };
    let missing = words.iter().find(|word| !word.split('|').any(|word| error.contains(word)));
    ensure!(missing.is_none(), "`{}` is not said: {error}", missing.unwrap_or(&""));
    Ok(())
}

fn loss(logits: &Tensor, batch: &BatchTensors) -> Tensor {
    logits.squeeze(1).mse_loss(&batch.labels, &batch.weights, Default::default())
}

/// The losses of the batches of six epochs of a step.
fn losses(schedule: &Schedule, n_epochs: Option<usize>) -> Result<Vec<f32>> {
    let (device, rows) = (one_thread()?, rows(64, line)?);
    let mut builder = ParametersBuilder::new();
    let layers = Sequential(vec![
        Box::new(Linear::new(&mut builder, "hidden", N_COLS, 16, Activation::relu())),
        Box::new(Dropout::new(0.5)),
        Box::new(Linear::new(&mut builder, "head", 16, 1, Activation::identity())),
    ]);
    let params = builder.build(1);
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 64, &FeedConfig::default())?;
    let sgd = Sgd::new(&params);
    let scale = Standardisation::none(N_COLS);
    let step = Step::over(&device, &feed, &scale).train(&params, &sgd, schedule);
    let step = match n_epochs {
        Some(n_epochs) => step.epochs(n_epochs),
        None => step,
    };
    let step = step.record(|batch, params| loss(&layers.forward(&params[0], &batch.x), batch))?;
    (0..6).map(|epoch| Ok(step.run_epoch(epoch)?.batches[0])).collect()
}

fn dropout_masks_differ() -> Result<()> {
    let mut losses = losses(&Schedule::constant(0.0), Some(6))?;
    losses.sort_by(f32::total_cmp);
    losses.dedup();
    ensure!(losses.len() == 6, "six steps at a rate of 0 have the losses {losses:?}");
    Ok(())
}

fn epochs_are_required() -> Result<()> {
    refused(losses(&Schedule::one_cycle(0.1), None), &["epochs"])?;
    refused(losses(&Schedule::one_cycle(0.1), Some(2)), &["epoch|step"])
}

fn predictor_has_what_a_step_trained() -> Result<()> {
    let (device, rows) = (one_thread()?, rows(64, line)?);
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 16, &FeedConfig::default())?;
    let mut builder = ParametersBuilder::new();
    let (layer, params) = (Linear::new(&mut builder, "line", N_COLS, 1, Activation::identity()), builder.build(7));
    let adam = Adam::new(&params);
    let scale = Standardisation::none(N_COLS);
    let step = Step::over(&device, &feed, &scale)
        .train(&params, &adam, &Schedule::constant(0.05))
        .record(|batch, params: &[Bound]| loss(&layer.forward(&params[0], &batch.x), batch))?;
    for epoch in 0..150 {
        step.run_epoch(epoch)?;
    }
    let inputs = brisk_train::PredictorInputs::numbers(N_COLS);
    let predictor = Predictor::record(&device, &params, &inputs, |params, x| vec![layer.forward(params, x)])?;
    let found = predictor.predict(rows.features(), &[])?;
    let largest = found.iter().zip(rows.labels()).map(|(found, label)| (found - label).abs()).fold(0.0, f32::max);
    ensure!(largest < 0.1, "predictions after training are up to {largest} off");
    Ok(())
}

/// Batch normalisation over one real row has no variance.
fn one_row_in_the_last_batch() -> Result<()> {
    let fit = |drop_last: bool| -> Result<FitReport> {
        let mut model = Model::new(7, |params| {
            let mut layers = with_norm(params);
            layers.0.push(Box::new(Linear::new(params, "head", 8, 1, Activation::identity())));
            layers
        });
        let trainer = trainer()?.batch_rows(64);
        let mut trainer = if drop_last { trainer.configure(|config| config.drop_last = true) } else { trainer };
        Ok(trainer.fit(&mut model, &Regression::mse(), &rows(65, line)?, &rows(40, line)?)?)
    };
    refused(fit(false), &["65", "drop_last"])?;
    fit(true).map(drop)
}

/// At a rate of 0, the loss of an epoch does not depend on the size of the batches.
fn train_loss_is_over_rows() -> Result<()> {
    let loss = |batch_rows: usize| -> Result<f64> {
        let mut model = network(1, Activation::relu());
        let mut trainer = trainer()?.batch_rows(batch_rows).max_epochs(1).learning_rate(0.0);
        let report = trainer.fit(&mut model, &Regression::mse(), &rows(9, line)?, &rows(9, line)?)?;
        Ok(report.history[0].train_loss())
    };
    let (short, whole) = (loss(8)?, loss(9)?);
    ensure!((short - whole).abs() < 1e-5 * whole, "the loss is {short} in batches of 8 and {whole} in one of 9");
    Ok(())
}

fn frozen_backbone_keeps_its_statistics() -> Result<()> {
    let (device, rows) = (one_thread()?, rows(64, line)?);
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 16, &FeedConfig::default())?;
    let mut builder = ParametersBuilder::new();
    let (backbone, frozen): (_, Parameters) = (with_norm(&mut builder), builder.build(1));
    let mut builder = ParametersBuilder::new();
    let (head, params) = (Linear::new(&mut builder, "head", 8, 1, Activation::identity()), builder.build(2));
    frozen.write_initial(&device)?;
    let (adam, scale) = (Adam::new(&params), Standardisation::none(N_COLS));
    let step = Step::over(&device, &feed, &scale)
        .train(&params, &adam, &Schedule::constant(0.01))
        .freeze(&frozen)
        .record(|batch, params| loss(&head.forward(&params[0], &backbone.forward(&params[1], &batch.x)), batch))?;
    step.run_epoch(0)?;
    for buffer in frozen.buffers() {
        ensure!(device.read::<f32>(buffer.values())? == buffer.initial(), "`{}` has changed", buffer.name());
    }
    Ok(())
}

fn gradients_at_constants(f: fn(&Tensor) -> Tensor) -> Result<()> {
    let device = one_thread()?;
    let [values, grads] = ["values", "grads"].map(|name| Persistent::new(name, DType::F32, 6));
    let graph = Graph::training("constant");
    let y = f(&graph.parameter(&values, &grads, 0..6, &[2, 3]));
    graph.backward_from(&y, &graph.constant("upstream", &vec![1.0; y.n_elements()], y.shape()))?;
    device.write(&values, &[2.0_f32; 6])?;
    graph.compile(&device)?.run(1)?;
    let found = device.read::<f32>(&grads)?;
    ensure!(found == [0.0; 6], "the gradient is {found:?}, PyTorch's is 0");
    Ok(())
}

fn constant_validation_labels() -> Result<()> {
    let mut model = network(1, Activation::relu());
    let report = trainer()?.fit(&mut model, &Regression::mse(), &rows(100, line)?, &rows(20, |_, _| 0.7)?);
    match report {
        Ok(report) => ensure!(report.n_epochs == 2, "the run ended after {} epochs", report.n_epochs),
        Err(error) => refused::<()>(Err(error.into()), &["label"])?,
    }
    Ok(())
}

fn loss_of_other_shapes() -> Result<()> {
    let (device, rows) = (one_thread()?, rows(64, line)?);
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 16, &FeedConfig::default())?;
    let mut builder = ParametersBuilder::new();
    let (layer, params) = (Linear::new(&mut builder, "line", N_COLS, 1, Activation::identity()), builder.build(7));
    let (sgd, scale) = (Sgd::new(&params), Standardisation::none(N_COLS));
    let step = Step::over(&device, &feed, &scale)
        .train(&params, &sgd, &Schedule::constant(0.05))
        .record(|batch, params| layer.forward(&params[0], &batch.x).l1_loss(&batch.labels, Default::default()));
    refused(step.map(drop).map_err(Into::into), &["shape|["])
}

/// What a run computes.
struct Run {
    activation: Activation,
    task: Box<dyn Task>,
    adam: fn(Adam) -> Adam,
    scale: Option<Standardisation>,
    schedule: Schedule,
    n_epochs: usize,
}

impl Run {
    fn new() -> Self {
        let task = Box::new(Binary::new());
        let schedule = Schedule::constant(1e-3);
        Self { activation: Activation::relu(), task, adam: |adam| adam, scale: None, schedule, n_epochs: 1 }
    }

    fn train(&self, folder: &RunFolder, from: Option<&Checkpoint>) -> Result<FitReport> {
        let adam = self.adam;
        let mut trainer = trainer()?.max_epochs(self.n_epochs).schedule(self.schedule.clone()).folder(folder);
        trainer = trainer.optimizer(move |params| adam(Adam::new(params)));
        if let Some(scale) = &self.scale {
            trainer = trainer.standardisation(scale.clone());
        }
        let (mut model, train, valid) =
            (network(self.task.n_outputs(), self.activation.clone()), rows(100, class)?, rows(40, class)?);
        Ok(match from {
            None => trainer.fit(&mut model, &*self.task, &train, &valid)?,
            Some(from) => trainer.resume(&mut model, from, &*self.task, &train, &valid)?,
        })
    }
}

/// A run that is changed in this way is not resumed.
fn resumed(name: &str, run: fn() -> Run, change: fn(&mut Run)) -> Row {
    within(format!("a run that is resumed with {name}"), move |dir| {
        let folder = RunFolder::create_at(&dir.join("run"))?;
        run().train(&folder, None)?;
        let last = Checkpoint::load(folder.last())?;
        let mut changed = Run { n_epochs: 2, ..run() };
        change(&mut changed);
        refused(changed.train(&folder, Some(&last)), &["differs|differ"])
    })
}

/// The log of an interrupted and resumed run is that of a run without interruption.
fn log_without_holes(dir: &Path) -> Result<()> {
    let log = |name: &str, stops: &[Option<usize>]| -> Result<String> {
        let folder = RunFolder::create_at(&dir.join(name))?;
        let path = dir.join(format!("{name}.csv"));
        for (i, stop) in stops.iter().enumerate() {
            let mut trainer = trainer()?.folder(&folder).callback(StepLog::new(&path));
            if let Some(n_steps) = *stop {
                trainer = trainer.max_steps(n_steps);
            }
            let mut model = network(1, Activation::relu());
            let (train, valid) = (rows(100, class)?, rows(40, class)?);
            if i == 0 {
                trainer.fit(&mut model, &Binary::new(), &train, &valid)?;
            } else {
                trainer.resume(&mut model, &Checkpoint::load(folder.last())?, &Binary::new(), &train, &valid)?;
            }
        }
        Ok(std::fs::read_to_string(path)?)
    };
    let (whole, parts) = (log("whole", &[None])?, log("parts", &[Some(3), None])?);
    ensure!(whole == parts, "the log of the resumed run is\n{parts}\nexpected\n{whole}");
    Ok(())
}

/// A log that is another file is not replaced when a run resumes.
fn log_over_another_file(dir: &Path) -> Result<()> {
    let (folder, path) = (RunFolder::create_at(&dir.join("run"))?, dir.join("batches.csv"));
    Run::new().train(&folder, None)?;
    std::fs::write(&path, "x,y\n1,2\n")?;
    let mut model = network(1, Activation::relu());
    let mut trainer = trainer()?.callback(StepLog::new(&path));
    trainer = trainer.optimizer(Adam::new).schedule(Schedule::constant(1e-3));
    let last = Checkpoint::load(folder.last())?;
    let resumed = trainer.resume(&mut model, &last, &Binary::new(), &rows(100, class)?, &rows(40, class)?);
    refused(resumed.map_err(Into::into), &["batches.csv"])?;
    ensure!(std::fs::read_to_string(&path)? == "x,y\n1,2\n", "the file has changed");
    Ok(())
}

/// Resuming a run that has ended leaves its report as it is.
fn report_of_a_finished_run(dir: &Path) -> Result<()> {
    let (folder, path) = (RunFolder::create_at(&dir.join("run"))?, dir.join("report.html"));
    let n_bytes = |resumes: bool| -> Result<u64> {
        let mut trainer = trainer()?.folder(&folder).report(&path);
        let (mut model, train, valid) = (network(1, Activation::relu()), rows(100, class)?, rows(40, class)?);
        if resumes {
            trainer.resume(&mut model, &Checkpoint::load(folder.last())?, &Binary::new(), &train, &valid)?;
        } else {
            trainer.fit(&mut model, &Binary::new(), &train, &valid)?;
        }
        Ok(std::fs::metadata(&path).context("there is no report")?.len())
    };
    let (first, again) = (n_bytes(false)?, n_bytes(true)?);
    ensure!(10 * again >= 9 * first, "the report has {again} bytes, {first} before");
    Ok(())
}

type Change = fn(Trainer<'static>) -> Trainer<'static>;

pub(super) fn rows_of_the_table() -> Vec<Row> {
    const NAN: f32 = f32::NAN;
    let mut rows = vec![
        within("dropout over several steps", |_| dropout_masks_differ()),
        within("a one-cycle schedule without the number of epochs", |_| epochs_are_required()),
        within("a predictor after a step", |_| predictor_has_what_a_step_trained()),
        within("65 rows in batches of 64 with batch normalisation", |_| one_row_in_the_last_batch()),
        within("9 rows in batches of 8", |_| train_loss_is_over_rows()),
        within("a frozen backbone with batch normalisation", |_| frozen_backbone_keeps_its_statistics()),
        within("the gradient of std at constants", |_| gradients_at_constants(|x| x.std(1, 1))),
        within("the gradient of var at constants", |_| gradients_at_constants(|x| x.var(1, 1))),
        within("validation labels that are all the same", |_| constant_validation_labels()),
        within("a loss of [n, 1] and [n]", |_| loss_of_other_shapes()),
        within("the log of a run that is resumed within an epoch", log_without_holes),
        within("a log over another file", log_over_another_file),
        within("the report of a finished run that is resumed", report_of_a_finished_run),
        resumed("another activation", Run::new, |run| run.activation = Activation::tanh()),
        resumed("a weight of positives", Run::new, |run| run.task = Box::new(Binary::new().pos_weight(2.0))),
        resumed("label smoothing", Run::new, |run| run.task = Box::new(Binary::new().label_smoothing(0.1))),
        resumed("another beta of Adam", Run::new, |run| run.adam = |adam| adam.betas(0.8, 0.999)),
        resumed("another eps of Adam", Run::new, |run| run.adam = |adam| adam.eps(1e-6)),
        resumed("weight decay", Run::new, |run| run.adam = |adam| adam.weight_decay(WeightDecay::Decoupled(0.1))),
        resumed("no standardisation", Run::new, |run| run.scale = Some(Standardisation::none(N_COLS))),
        resumed("more epochs of a one-cycle schedule", || Run { schedule: Schedule::one_cycle(0.1), ..Run::new() }, |_| ()),
    ];
    let settings: [(&str, &str, Change); 9] = [
        ("min_delta", "NaN", |t| t.early_stopping(EarlyStopping::default().min_delta(f64::NAN))),
        ("warmup", "NaN", |t| t.schedule(Schedule::constant(0.1).warmup(f64::NAN))),
        ("points", "NaN", |t| t.schedule(Schedule::piecewise_linear([(0, f64::NAN)]))),
        ("step_size", "NaN", |t| t.schedule(Schedule::step(0.1, f64::NAN, 0.1))),
        ("accumulate", "4294967297", |t| t.accumulate((1 << 32) + 1)),
        ("lr", "NaN", |t| t.learning_rate(f64::NAN)),
        ("ema.decay", "NaN", |t| t.ema(NAN)),
        ("batch_rows", "0", |t| t.batch_rows(0)),
        ("valid_nosuch", "expected one of", |t| t.early_stopping(EarlyStopping::on("valid_nosuch"))),
    ];
    rows.extend(settings.map(|(name, found, change)| {
        within(format!("a setting: {name} {found}"), move |_| refused(fit(change(trainer()?), &Binary::new()), &[name, found]))
    }));
    type MakeTask = fn() -> Box<dyn Task>;
    let tasks: [(&str, &str, MakeTask); 7] = [
        ("pos_weight", "NaN", || Box::new(Binary::new().pos_weight(NAN))),
        ("pos_weight", "-1", || Box::new(Binary::new().pos_weight(-1.0))),
        ("label_smoothing", "NaN", || Box::new(Binary::new().label_smoothing(NAN))),
        ("class_weights", "NaN", || Box::new(Classification::of(2).class_weights([1.0, NAN]))),
        ("class_weights", "0", || Box::new(Classification::of(2).class_weights([0.0, 0.0]))),
        ("delta", "-1", || Box::new(Regression::huber(-1.0))),
        ("class", "1", || Box::new(Classification::of(1))),
    ];
    rows.extend(tasks.map(|(name, found, task)| {
        within(format!("a task: {name} {found}"), move |_| refused(fit(trainer()?, &*task()), &[name, found]))
    }));
    rows
}
