//! The calls that callbacks receive, and the limits of a run.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use brisk_nn::{Activation, Mlp, MlpConfig};
use brisk_tensor::Tensor;
use brisk_train::metrics::{self, Direction, Metric, MetricValue, Scored};
use brisk_train::{
    BatchesEnd, Binary, Callback, Checkpoint, EarlyStopping, Ended, Error, FeedChoice, FeedConfig, FitReport, LabelledRows,
    Labels, Limit, Model, RunView, Swa, Task, Trainable, Trainer, TrainerConfig, ValidationEnd,
};

use crate::gpu::cpu;
use crate::run::{N_COLS, Setting, into_folder, quiet, rows};

/// Records its calls.
#[derive(Clone, Default)]
struct Told {
    events: Rc<RefCell<Vec<String>>>,
    losses: Rc<RefCell<Vec<f32>>>,
    stop_after: Option<usize>,
}

impl Told {
    fn note(&self, event: String) {
        self.events.borrow_mut().push(event);
    }
}

impl Callback for Told {
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        self.note(format!("start at epoch {} of {}, {} batches", run.epoch, run.max_epochs, run.n_batches));
        Ok(())
    }
    fn on_epoch_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        self.note(format!("epoch {} after {} steps", run.epoch, run.n_steps));
        Ok(())
    }
    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        assert_eq!(batches.losses.len(), batches.learning_rates.len(), "a rate for each loss");
        self.losses.borrow_mut().extend(batches.losses);
        Ok(())
    }
    fn on_validation_end(&mut self, run: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        assert_eq!(validation.outputs.len(), validation.labels.len(), "an output for each row");
        self.note(format!("validated epoch {}", run.epoch));
        let stops = self.stop_after == Some(run.epoch);
        Ok(if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
    fn on_checkpoint(&mut self, _: &RunView<'_>, path: &Path) -> Result<(), Error> {
        self.note(format!("wrote {}", path.file_name().expect("a file").display()));
        Ok(())
    }
    fn on_exception(&mut self, _: &RunView<'_>, error: &Error) {
        self.note(format!("failed: {error}"));
    }
    fn on_fit_end(&mut self, _: &RunView<'_>, report: &FitReport) -> Result<(), Error> {
        self.note(format!("ended {} after {} epochs", report.ended, report.n_epochs));
        Ok(())
    }
}

#[test]
fn callbacks_are_told_in_order_and_can_end_the_run() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (ready, device) = (Setting::default().ready(), cpu(1));
    let training = ready.trainer(&device)?;
    let told = Told { stop_after: Some(2), ..Told::default() };
    let (mut outputs, _) = into_folder(root.path());
    outputs.callbacks.push(Box::new(told.clone()));
    let report = training.fit(&mut outputs)?;
    assert_eq!((report.ended, report.n_epochs), (Ended::Callback, 2));
    let events = told.events.borrow();
    let is_checkpoint = |event: &&str| event.starts_with("wrote");
    let (written, others): (Vec<&str>, Vec<&str>) = events.iter().map(String::as_str).partition(is_checkpoint);
    let expected = [
        "start at epoch 0 of 3, 8 batches",
        "epoch 1 after 0 steps",
        "validated epoch 1",
        "epoch 2 after 8 steps",
        "validated epoch 2",
        "ended by a callback after 2 epochs",
    ];
    assert_eq!(others, expected);
    assert_eq!(events.last().map(String::as_str), Some(expected[5]), "when all checkpoints are on disk");
    assert_eq!(written[..2], ["wrote best.safetensors", "wrote last.safetensors"], "the first epoch is the best so far");
    assert_eq!(written.iter().filter(|event| **event == "wrote last.safetensors").count(), 2);
    let losses = told.losses.borrow();
    assert_eq!(losses.len(), 16, "each batch once");
    // The last batch of 500 rows has 52 instead of 64.
    let sum = losses[..7].iter().map(|&loss| 64.0 * f64::from(loss)).sum::<f64>() + 52.0 * f64::from(losses[7]);
    let mean = sum / 500.0;
    assert!((mean - report.history[0].train_loss()).abs() < 1e-9);
    Ok(())
}

#[test]
fn a_failure_is_told() -> Result<(), Error> {
    let (mut setting, device) = (Setting::default(), cpu(1));
    setting.config.schedule = brisk_nn::Schedule::constant(1e30);
    let ready = setting.ready();
    let (told, mut outputs) = (Told::default(), quiet());
    outputs.callbacks.push(Box::new(told.clone()));
    let error = ready.trainer(&device)?.fit(&mut outputs).expect_err("it diverges");
    assert_eq!(told.events.borrow().last(), Some(&format!("failed: {error}")));
    Ok(())
}

/// A run with different limits.
fn limited(config: impl FnOnce(&mut TrainerConfig)) -> Result<FitReport, Error> {
    let mut setting = Setting::default();
    config(&mut setting.config);
    let (ready, device) = (setting.ready(), cpu(1));
    ready.trainer(&device)?.fit(&mut quiet())
}

#[test]
fn runs_end_at_their_limits() -> Result<(), Error> {
    let whole = limited(|_| ())?;
    let steps = limited(|config| config.max_steps = Some(12))?;
    assert_eq!((steps.ended, steps.n_epochs, steps.history.len()), (Ended::MaxSteps, 1, 2), "an epoch has 8 steps");
    assert_eq!(steps.history[0], whole.history[0], "as without the limit");
    let at_end = limited(|config| config.max_steps = Some(16))?;
    assert_eq!((at_end.n_epochs, &at_end.history[..]), (2, &whole.history[..2]));
    assert_eq!(at_end.ended, Ended::MaxSteps);
    let time = limited(|config| (config.max_time, config.max_epochs) = (Some(Duration::from_millis(1)), 1_000_000))?;
    assert_eq!(time.ended, Ended::MaxTime);
    assert!(time.best_value > 0.0, "it was validated");
    let batches = limited(|config| config.limit_train_batches = Some(Limit::Share(0.5)))?;
    assert_eq!(batches.history.len(), 3);
    assert_ne!(batches.history[0], whole.history[0], "fewer batches");
    let error =
        limited(|config| config.limit_train_batches = Some(Limit::Share(0.01))).expect_err("no batch is left").to_string();
    assert_eq!(error, "limit_train_batches: found Share(0.01) of 8 batches, which is none, expected at least one batch");
    let error = limited(|config| config.limit_valid_batches = Some(Limit::Share(0.01))).expect_err("no row is left").to_string();
    assert_eq!(error, "limit_valid_batches: found Share(0.01) of 4 batches, which is none, expected at least one batch");
    let patient = EarlyStopping::on("train_loss").patience(1).min_delta(10.0);
    let early = limited(|config| (config.early_stopping, config.max_epochs) = (Some(patient.clone()), 9))?;
    assert_eq!((early.n_epochs, early.watched.as_str()), (2, "train_loss"));
    let later = limited(|config| (config.early_stopping, config.max_epochs, config.min_epochs) = (Some(patient), 9, 5))?;
    assert_eq!(later.n_epochs, 5);
    let rare = limited(|config| (config.validate_every, config.max_epochs) = (2, 5))?;
    let validated: Vec<bool> = rare.history.iter().map(|epoch| epoch.get("valid_auc").is_some_and(|auc| !auc.is_nan())).collect();
    assert_eq!(validated, [false, true, false, true, true]);
    assert!(rare.history.iter().all(|epoch| epoch.train_loss().is_finite()));
    Ok(())
}

/// A metric that fails.
#[derive(Debug)]
struct Broken;

impl Metric for Broken {
    fn name(&self) -> &str {
        "broken"
    }
    fn direction(&self) -> Direction {
        Direction::Maximize
    }
    fn reset(&mut self) {}
    fn update(&mut self, rows: &Scored<'_>) -> Result<(), metrics::Error> {
        let cause = std::io::Error::other(format!("{} rows are too many", rows.labels.len())).into();
        Err(metrics::Error::Custom { metric: "broken".to_owned(), cause })
    }
    fn compute(&self) -> Result<MetricValue, metrics::Error> {
        Ok(MetricValue::Number(0.0))
    }
}

/// Two classes, evaluated by that metric too.
#[derive(Debug)]
struct Judged(Binary);

impl Task for Judged {
    fn labels(&self) -> Labels {
        self.0.labels()
    }
    fn n_outputs(&self) -> usize {
        self.0.n_outputs()
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        self.0.loss(outputs, rows)
    }
    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        self.0.metrics().into_iter().chain([Box::new(Broken) as Box<dyn Metric>]).collect()
    }
    fn watched(&self) -> &str {
        self.0.watched()
    }
}

#[test]
fn validation_uses_the_first_rows_up_to_its_limit() -> Result<(), Error> {
    let (setting, device) = (Setting::default(), cpu(1));
    for feed in [FeedChoice::Resident, FeedChoice::Streamed] {
        let fit = |config: TrainerConfig, n_valid: usize| {
            let ready = Setting { n_valid, config, ..setting.clone() }.ready();
            let feed = FeedConfig { choice: feed, chunk_bytes: 1, ..FeedConfig::default() };
            let trainable = Trainable::new(&ready.model, &ready.params, &ready.adam);
            let trainer = Trainer::new(&device).config(ready.config()).feed(&feed);
            trainer.prepare(trainable, &Binary::new(), &ready.train, &ready.valid)?.fit(&mut quiet())
        };
        // Batches of 64 rows; 3000 rows are scored in three batches, and 1100 in two.
        for (n_valid, n_batches) in [(200, 3), (3000, 17)] {
            let limit_valid_batches = Some(Limit::Batches(n_batches));
            let limited = fit(TrainerConfig { limit_valid_batches, ..setting.config.clone() }, n_valid)?;
            let expected = fit(setting.config.clone(), 64 * n_batches)?;
            assert_eq!(limited.history, expected.history, "{feed:?}: {n_batches} of {n_valid} rows");
        }
    }
    Ok(())
}

#[test]
fn sanity_validation_finds_an_error_before_the_first_step() -> Result<(), Error> {
    let (ready, device) = (Setting { n_valid: 2000, ..Setting::default() }.ready(), cpu(1));
    let task = Judged(Binary::new());
    let fit = |sanity_validation| {
        let config = TrainerConfig { sanity_validation, ..ready.config() };
        let trainable = Trainable::new(&ready.model, &ready.params, &ready.adam);
        let (told, mut outputs) = (Told::default(), quiet());
        outputs.callbacks.push(Box::new(told.clone()));
        let training = Trainer::new(&device).config(config).prepare(trainable, &task, &ready.train, &ready.valid)?;
        let error = training.fit(&mut outputs).expect_err("the metric fails").to_string();
        let n_epochs = told.events.borrow().iter().filter(|event| event.starts_with("epoch")).count();
        Ok::<_, Error>((error, n_epochs))
    };
    let (error, n_epochs) = fit(0)?;
    assert!(error.contains("2000 rows are too many") && n_epochs == 1, "{error} in epoch {n_epochs}");
    let (error, n_epochs) = fit(1)?;
    assert!(error.contains("1024 rows are too many") && n_epochs == 0, "{error} in epoch {n_epochs}");

    let expected = Setting::default().ready().trainer(&device)?.fit(&mut quiet())?;
    let checked = limited(|config| config.sanity_validation = 2)?;
    assert_eq!(checked.history, expected.history, "otherwise nothing changes");
    Ok(())
}

#[test]
fn a_run_that_ended_at_its_limit_resumes_as_if_there_had_been_none() -> Result<(), Error> {
    let (setting, device) = (Setting::default(), cpu(1));
    let root = tempfile::tempdir().expect("a temporary folder");
    let whole = setting.ready().trainer(&device)?.fit(&mut quiet())?;
    let (mut outputs, folder) = into_folder(root.path());
    let config = TrainerConfig { max_steps: Some(12), validate_every: 2, ..setting.config.clone() };
    let short = Setting { config, ..setting.clone() }.ready();
    assert_eq!(short.trainer(&device)?.fit(&mut outputs)?.ended, Ended::MaxSteps);
    let last = Checkpoint::load(folder.last())?;
    let report = setting.ready().trainer(&device)?.resume(&last, &mut quiet())?;
    assert_eq!(report.history, whole.history[1..], "bit for bit");
    Ok(())
}

#[test]
fn swa_averages_the_models_of_the_last_epochs() -> Result<(), Error> {
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![4], n_outputs: 1, activation: Activation::relu() };
    let (train, valid) = (rows(0, 300), rows(300, 100));
    let fit = |max_epochs, from_epoch: Option<usize>| {
        let mut model = Model::new(1, |params| Mlp::new(params, &sizes));
        let trainer = Trainer::new(&cpu(1)).batch_rows(50).max_epochs(max_epochs).learning_rate(1e-2);
        let early_stopping = EarlyStopping::on("train_loss").patience(99);
        let trainer = trainer.early_stopping(early_stopping);
        let mut trainer = match from_epoch {
            None => trainer,
            Some(epoch) => trainer.callback(Swa::from_epoch(epoch)),
        };
        trainer.fit(&mut model, &Binary::new(), &train, &valid)?;
        Ok::<_, Error>(model.params().initial())
    };
    // The training loss falls in each epoch, so that the best model is the last.
    let [second, third, averaged] = [fit(2, None)?, fit(3, None)?, fit(3, Some(2))?];
    for ((second, third), averaged) in second.iter().zip(&third).zip(&averaged) {
        assert!((0.5 * (second + third) - averaged).abs() < 1e-6);
    }
    Ok(())
}

#[test]
fn a_dev_run_and_overfitting_take_few_batches() -> Result<(), Error> {
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![64], n_outputs: 1, activation: Activation::relu() };
    let (train, valid) = (rows(0, 600), rows(600, 100));
    let model = || Model::new(1, |params| Mlp::new(params, &sizes));
    let report = Trainer::new(&cpu(1)).fast_dev_run(2).fit(&mut model(), &Binary::new(), &train, &valid)?;
    assert_eq!(report.n_epochs, 1);
    let trainer = Trainer::new(&cpu(1)).batch_rows(20).max_epochs(150).learning_rate(1e-2);
    let report = trainer.overfit_batches(2).fit(&mut model(), &Binary::new(), &train, &valid)?;
    let last = report.history.last().expect("it has epochs").train_loss();
    assert!(last < 0.02, "40 rows are learned by heart: {last}");
    Ok(())
}

#[test]
fn a_report_is_written_when_the_run_ends() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let path = root.path().join("rings/report.html");
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![8], n_outputs: 1, activation: Activation::relu() };
    let (train, valid) = (rows(0, 300), rows(300, 100));
    let fit = |lr| {
        let mut model = Model::new(1, |params| Mlp::new(params, &sizes));
        let trainer = Trainer::new(&cpu(1)).batch_rows(50).max_epochs(3).learning_rate(lr);
        trainer.report(&path).fit(&mut model, &Binary::new(), &train, &valid)
    };
    let report = fit(1e-2)?;
    let html = std::fs::read_to_string(&path).expect("it has been written");
    let best = format!("{:.4}", report.best_value);
    for expected in
        ["<title>rings", "ended after the last epoch", "ROC curve", "Learning rate", "batch_rows", best.as_str(), "Environment"]
    {
        assert!(html.contains(expected), "the report lacks {expected:?}");
    }
    // An error before the first validation leaves an existing report unchanged.
    fit(1e30).expect_err("it diverges");
    assert_eq!(std::fs::read_to_string(&path).expect("it is still there"), html);
    std::fs::write(root.path().join("file"), "").expect("writable");
    let mut model = Model::new(1, |params| Mlp::new(params, &sizes));
    let mut trainer = Trainer::new(&cpu(1)).report(root.path().join("file/report.html"));
    let error = trainer.fit(&mut model, &Binary::new(), &train, &valid).expect_err("no such folder").to_string();
    assert!(error.contains("cannot create the folder of the report"), "{error}");
    Ok(())
}
