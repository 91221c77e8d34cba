//! Settings that cannot be right, from a file or from a program, and metrics with a known value.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use brisk_nn::{Activation, Adam, Schedule};
use brisk_tensor::Tensor;
use brisk_train::metrics::{
    self, Accuracy, Average, Direction, F1, Metric, MetricValue, Precision, Recall, Scored, log_loss, log_loss_binary, roc_auc,
};
use brisk_train::{
    Binary, Classification, EarlyStopping, GradientClip, LabelledRows, Labels, Limit, Regression, Task, Trainer, TrainerConfig,
    ValidationInterval,
};

use super::training::{class, fit, network, refused, rows as training_rows, trainer};
use super::{Row, within};

/// Two classes with metrics of the caller's.
#[derive(Debug)]
struct Judged {
    metrics: fn() -> Vec<Box<dyn Metric>>,
    watched: &'static str,
}

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
        (self.metrics)()
    }
    fn watched(&self) -> &str {
        self.watched
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

fn is_near(what: &str, found: f64, expected: f64) -> Result<()> {
    ensure!((found - expected).abs() < 1e-9, "{what} is {found}, expected {expected}");
    Ok(())
}

/// `f1_score(labels, predictions, average="macro", sample_weight=[1, 1, 0])` of scikit-learn, and so on: class 2 counts, with a
/// score of 0.
fn class_of_weight_0() -> Result<()> {
    let logits = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0];
    let rows = Scored::classes(&logits, 3, &[0.0, 1.0, 2.0]).with_weights(&[1.0, 1.0, 0.0]);
    let metrics: [Box<dyn Metric>; 3] =
        [Box::new(F1::new(Average::Macro)), Box::new(Precision::new(Average::Macro)), Box::new(Recall::new(Average::Macro))];
    for mut metric in metrics {
        metric.update(&rows)?;
        is_near(metric.name(), metric.compute()?.number().unwrap_or(f64::NAN), 2.0 / 3.0)?;
    }
    Ok(())
}

/// Probabilities are clipped by the epsilon of f64, as by scikit-learn.
fn log_loss_of_certain_mistakes() -> Result<()> {
    let most = -f64::EPSILON.ln();
    is_near("the loss of a mistake", log_loss_binary(&[1000.0], &[0.0])?, most)?;
    is_near("the loss of an infinite logit", log_loss_binary(&[f32::INFINITY], &[0.0])?, most)?;
    is_near("the loss of a class", log_loss(&[1000.0, 0.0], 2, &[1.0])?, most)?;
    ensure!(log_loss_binary(&[f32::NAN], &[0.0]).is_err(), "NaN has a loss");
    ensure!(roc_auc(&[f32::NAN, 1.0], &[0.0, 1.0]).is_err(), "NaN has a rank");
    Ok(())
}

/// Rows whose weights are not weights are refused by a metric.
fn weights_of_metrics() -> Result<()> {
    for weight in [-1.0, f32::NAN, f32::INFINITY] {
        let updated = F1::new(Average::Binary).update(&Scored::binary(&[1.0, -1.0], &[1.0, 0.0]).with_weights(&[1.0, weight]));
        ensure!(updated.is_err(), "a weight of {weight} is taken");
    }
    Ok(())
}

/// A second `fit` on rows of another scale: the standardisation is that of the rows, or it is an error.
fn second_fit_on_another_scale() -> Result<()> {
    let mut model = network(1, Activation::relu());
    let (train, valid) = (training_rows(200, class)?, training_rows(100, class)?);
    trainer()?.fit(&mut model, &Binary::new(), &train, &valid)?;
    let features = train.features().iter().map(|x| 1000.0 * x + 5000.0).collect::<Vec<_>>();
    let scaled = brisk_loader::Rows::new(features, train.labels().to_vec(), 2)?;
    let mut again = trainer()?.max_epochs(30);
    match again.fit(&mut model, &Binary::new(), &scaled, &scaled) {
        Err(error) => refused::<()>(Err(error.into()), &["standardis|scale"]),
        Ok(report) => {
            let is_said = report.warnings.iter().any(|warning| warning.to_string().contains("standardis"));
            ensure!(is_said || report.best_value > 0.9, "{} is {} and nothing is said", report.watched, report.best_value);
            Ok(())
        }
    }
}

type Change = fn(Trainer<'static>) -> Trainer<'static>;

pub(super) fn rows() -> Vec<Row> {
    const NAN: f64 = f64::NAN;
    let mut rows = vec![
        within("a class that occurs only in a row of weight 0", |_| class_of_weight_0()),
        within("the log loss of a mistake that is certain", |_| log_loss_of_certain_mistakes()),
        within("weights of a metric that are none", |_| weights_of_metrics()),
        within("a second fit on rows of another scale", |_| second_fit_on_another_scale()),
        within("a watched metric that is never a number", |_| {
            let task = Judged { metrics: || vec![Box::new(Undefined("agreement"))], watched: "agreement" };
            refused(fit(trainer()?, &task), &["agreement"])
        }),
        within("two metrics of one name", |_| {
            let task = Judged { metrics: || vec![Box::new(Accuracy::new()), Box::new(Accuracy::new())], watched: "loss" };
            refused(fit(trainer()?, &task), &["accuracy"])
        }),
        within("a metric whose name cannot head a column of CSV", |_| {
            let task = Judged { metrics: || vec![Box::new(Undefined("a,b"))], watched: "loss" };
            refused(fit(trainer()?, &task), &["a,b"])
        }),
        within("early stopping on the area under a curve of one class", |_| {
            let labels = training_rows(40, |_, _| 1.0)?;
            let mut model = network(1, Activation::relu());
            let fitted = trainer()?.fit(&mut model, &Binary::new(), &training_rows(100, class)?, &labels);
            refused(fitted.map_err(Into::into), &["auc|label|class"])
        }),
    ];
    let changes: [(&str, &str, Change); 14] = [
        ("lr", "-0.1", |t| t.learning_rate(-0.1)),
        ("max_epochs", "0", |t| t.max_epochs(0)),
        ("max_steps", "0", |t| t.max_steps(0)),
        ("validate_every", "0", |t| t.configure(|config| config.validate_every = 0)),
        ("limit_train_batches", "NaN", |t| t.configure(|config| config.limit_train_batches = Some(Limit::Share(NAN)))),
        ("limit_valid_batches", "0", |t| t.configure(|config| config.limit_valid_batches = Some(Limit::Batches(0)))),
        ("validate_within_epoch", "NaN", |t| {
            t.configure(|config| config.validate_within_epoch = Some(ValidationInterval::Share(NAN)))
        }),
        ("clip", "NaN", |t| t.clip(GradientClip::Norm(f32::NAN))),
        ("stopping_threshold", "NaN", |t| t.early_stopping(EarlyStopping::default().stopping_threshold(NAN))),
        ("beta2", "NaN", |t| t.optimizer(|params| Adam::new(params).betas(0.9, f32::NAN))),
        ("eps", "NaN", |t| t.optimizer(|params| Adam::new(params).eps(f32::NAN))),
        ("gamma", "NaN", |t| t.schedule(Schedule::step(0.1, 10, NAN))),
        ("milestones", "", |t| t.schedule(Schedule::multi_step(0.1, [8, 4], 0.1))),
        ("points", "", |t| t.schedule(Schedule::piecewise_linear([(8, 0.1), (4, 0.2)]))),
    ];
    rows.extend(changes.map(|(name, found, change)| {
        within(format!("a setting of a program: {name} {found}"), move |_| {
            refused(fit(change(trainer()?), &Binary::new()), &[name, found])
        })
    }));
    rows.push(within("a quantile that is none", |_| refused(fit(trainer()?, &Regression::quantile(f32::NAN)), &["quantile"])));
    // Settings of a file, which are refused when it is read or before the first step.
    let files: [(&str, &[&str]); 32] = [
        ("learning_rate = 0.1\n[schedule]\nname = \"cosine\"\nlr = 0.2", &["learning_rate", "schedule"]),
        ("clip = { norm = 1.0, value = 1.0 }", &["clip", "value"]),
        ("learning_rate = nan", &["lr|learning_rate", "nan|NaN"]),
        ("learning_rate = -0.1", &["lr|learning_rate", "-0.1"]),
        ("accumulate = 4294967297", &["accumulate", "4294967297"]),
        ("accumulate = 0", &["accumulate"]),
        ("batch_rows = 32\nbatch_rows = 64", &["batch_rows"]),
        ("batch_rows = 32.5", &["batch_rows", "32.5"]),
        ("max_epoch = 3", &["max_epoch", "max_epochs"]),
        ("clip = { norm = nan }", &["clip", "nan|NaN"]),
        ("clip = { value = -1 }", &["clip", "-1"]),
        ("clip = { norm = 1e39 }", &["clip"]),
        ("seed = -1", &["seed", "-1"]),
        ("max_skipped = 4294967296", &["max_skipped", "4294967296"]),
        ("precision = \"f64\"", &["precision", "f64"]),
        ("limit_train_batches = nan", &["limit_train_batches", "nan|NaN"]),
        ("limit_train_batches = 1.5", &["limit_train_batches", "1.5"]),
        ("limit_valid_batches = 0", &["limit_valid_batches"]),
        ("validate_within_epoch = 0.0", &["validate_within_epoch"]),
        ("max_time = 0", &["max_time"]),
        ("[ema]\ndecay = nan", &["ema.decay", "nan|NaN"]),
        ("[ema]\ndecay = 0.9\nstart = \"zero\"", &["start", "zero"]),
        ("[early_stopping]\nmin_delta = nan", &["min_delta", "nan|NaN"]),
        ("[reduce_lr_on_plateau]\nfactor = nan", &["factor", "nan|NaN"]),
        ("[early_stopping]\nmonitor = \"valid_acuracy\"", &["valid_acuracy"]),
        ("[schedule]\nname = \"cosine\"\nlr = 0.1\nwarmup = nan", &["warmup", "nan|NaN"]),
        ("[schedule]\nname = \"step\"\nlr = 0.1\nstep_size = 0", &["step_size"]),
        ("[schedule]\nname = \"multi_step\"\nlr = 0.1", &["milestones"]),
        ("[schedule]\nname = \"piecewise_linear\"", &["points"]),
        ("[schedule]\nname = \"exponential\"\nlr = 0.1\ngamma = nan", &["gamma", "nan|NaN"]),
        ("[schedule]\nname = \"one_cycle\"\nlr = 0.1", &["max_lr"]),
        ("[scaler]\ninit_scale = nan", &["init_scale", "nan|NaN"]),
    ];
    rows.extend(files.map(|(text, words)| {
        within(format!("a file of settings: {}", text.replace('\n', "; ")), move |_| {
            let fitted = TrainerConfig::from_toml(text).map_err(Into::into).and_then(|config| {
                // What the file says about the length of a run would make it long.
                fit(trainer()?.config(TrainerConfig { max_epochs: 2, ..config }), &Binary::new())
            });
            refused(fitted, words)
        })
    }));
    rows
}
