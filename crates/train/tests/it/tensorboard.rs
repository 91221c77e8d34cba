//! The content of the event files that `TensorBoard` writes, decoded.

use std::fs;
use std::path::Path;

use brisk_loader::Rows;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Activation, Mlp, MlpConfig, Schedule};
use brisk_train::report::EventWriter;
use brisk_train::{Error, Model, Regression, TensorBoard, Trainer, ValidationInterval};
use prost::Message as _;

/// The parts of an event of `event.proto` that are compared.
#[derive(Clone, PartialEq, prost::Message)]
struct Event {
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "5")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Histogram {
    #[prost(double, tag = "3")]
    n_values: f64,
    #[prost(double, repeated, tag = "6")]
    limits: Vec<f64>,
    #[prost(double, repeated, tag = "7")]
    counts: Vec<f64>,
}

/// The values of all event files of a folder with their steps.
fn values(folder: &Path) -> Vec<(i64, Value)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let bytes = fs::read(entry.expect("an entry").path()).expect("a file");
        let mut rest = &bytes[..];
        while let Some((length, after)) = rest.split_first_chunk::<8>() {
            let end = 4 + u64::from_le_bytes(*length) as usize;
            let Event { step, summary, .. } = Event::decode(&after[4..end]).expect("an event");
            found.extend(summary.into_iter().flat_map(|summary| summary.value).map(|value| (step, value)));
            rest = &after[end + 4..];
        }
    }
    found
}

/// The steps of the histograms, or else the scalars, of a tag, and how many values they have.
fn of_tag(values: &[(i64, Value)], tag: &str) -> Vec<(i64, f64)> {
    let of_tag = values.iter().filter(|(_, value)| value.tag == tag);
    let n_values = |value: &Value| match &value.histogram {
        Some(histogram) => histogram.n_values,
        None => f64::from(value.simple_value.unwrap_or(f32::NAN)),
    };
    of_tag.map(|(step, value)| (*step, n_values(value))).collect()
}

fn rows() -> Rows {
    let x: Vec<f32> = (0..80).map(|row| row as f32 / 40.0 - 1.0).collect();
    let labels = x.iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    Rows::new(x, labels, 1).expect("a label for each row")
}

fn model() -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: 1, hidden: vec![8], n_outputs: 1, activation: Activation::tanh() };
    Model::new(7, |params| Mlp::new(params, &sizes))
}

#[test]
fn histograms_of_every_second_epoch() -> Result<(), Error> {
    let (folder, rows, mut model) = (tempfile::tempdir().expect("a folder"), rows(), model());
    let callback = TensorBoard::new(folder.path()).histograms(2);
    // Five batches an epoch; the model of the last epoch is the best one.
    let mut trainer = Trainer::new(&Device::cpu()?).batch_rows(16).max_epochs(4).learning_rate(1e-2).callback(callback);
    let report = trainer.fit(&mut model, &Regression::mse(), &rows, &rows)?;
    drop(trainer);
    let values = values(folder.path());
    for group in ["parameters", "gradients"] {
        assert_eq!(of_tag(&values, &format!("{group}/layers.0.weight")), [(9, 8.0), (19, 8.0)], "{group}");
        assert_eq!(of_tag(&values, &format!("{group}/layers.1.bias")), [(9, 1.0), (19, 1.0)], "{group}");
    }
    assert!(!values.iter().any(|(_, value)| value.tag.starts_with("not_finite")), "all values are finite");
    assert_eq!(of_tag(&values, "loss/batch").len(), 20, "beside the scalars");
    // The distribution is that of the values.
    assert_eq!(report.best_epoch, 4);
    let id = model.params().id_of("layers.0.weight").expect("the first layer");
    let histogram = |values: &[(i64, Value)]| {
        values.iter().rfind(|(_, value)| value.tag == "parameters/layers.0.weight").and_then(|(_, value)| value.histogram.clone())
    };
    let expected = tempfile::tempdir().expect("a folder");
    EventWriter::create(expected.path())?.histogram("parameters/layers.0.weight", 19, &model.params().initial_of(id))?;
    let (found, expected) = (histogram(&values), histogram(&self::values(expected.path())));
    assert!(found.is_some(), "there is one");
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn metrics_are_at_the_last_batch_before_their_validation() -> Result<(), Error> {
    let (folder, rows) = (tempfile::tempdir().expect("a folder"), rows());
    let trainer = Trainer::new(&Device::cpu()?)
        .batch_rows(16)
        .max_epochs(2)
        .configure(|config| config.validate_within_epoch = Some(ValidationInterval::Batches(2)));
    { trainer.callback(TensorBoard::new(folder.path())) }.fit(&mut model(), &Regression::mse(), &rows, &rows)?;
    let values = values(folder.path());
    let steps: Vec<i64> = values.iter().filter(|(_, value)| value.tag == "loss/valid").map(|&(step, _)| step).collect();
    assert_eq!(steps, [1, 3, 4, 6, 8, 9], "five batches an epoch");
    Ok(())
}

#[test]
fn values_that_are_not_finite_are_counted() -> Result<(), Error> {
    let (folder, rows) = (tempfile::tempdir().expect("a folder"), rows());
    let mut trainer = Trainer::new(&Device::cpu()?)
        .batch_rows(16)
        .schedule(Schedule::constant(1e38))
        .optimizer(brisk_nn::Sgd::new)
        .callback(TensorBoard::new(folder.path()).histograms(1));
    let error = trainer.fit(&mut model(), &Regression::mse(), &rows, &rows).expect_err("it diverges");
    assert!(matches!(error, Error::NonFiniteLoss { .. }), "{error}");
    let values = values(folder.path());
    assert_eq!(of_tag(&values, "not_finite/parameters/layers.0.weight"), [(4, 8.0)]);
    assert_eq!(of_tag(&values, "parameters/layers.0.weight"), [], "no value is finite");
    Ok(())
}
