//! The content of the event file after a run, decoded.

use std::fs;
use std::path::Path;

use brisk_loader::Rows;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Activation, Mlp, MlpConfig, Schedule};
use prost::Message as _;

use super::message::{Event, Value};
use super::{EventWriter, TensorBoard, histogram};
use crate::{Error, Model, Regression, Trainer, ValidationInterval};

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
    let n_values =
        |value: &Value| value.histo.as_ref().map_or_else(|| f64::from(value.simple_value.unwrap_or(f32::NAN)), |histo| histo.num);
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
    let expected = histogram::of(&model.params().initial_of(id));
    let found =
        values.iter().rfind(|(_, value)| value.tag == "parameters/layers.0.weight").and_then(|(_, value)| value.histo.clone());
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn metrics_are_at_the_last_batch_before_their_validation() -> Result<(), Error> {
    let (folder, rows) = (tempfile::tempdir().expect("a folder"), rows());
    let trainer =
        Trainer::new(&Device::cpu()?).batch_rows(16).max_epochs(2).validate_within_epoch(ValidationInterval::Batches(2));
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

#[test]
fn finite_values_are_in_buckets_and_others_are_not() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut events = EventWriter::create(folder.path())?;
    events.histogram("some", 3, &[0.5, f32::NAN, -0.25, f32::INFINITY, 0.0, f32::NEG_INFINITY])?;
    let [(3, value)] = &values(folder.path())[..] else { panic!("one value") };
    let histogram = value.histo.clone().expect("a histogram");
    assert_eq!((histogram.num, histogram.min, histogram.max, histogram.sum), (3.0, -0.25, 0.5, 0.25));
    assert_eq!(histogram.bucket.iter().sum::<f64>(), 3.0);
    assert_eq!(histogram.bucket.len(), histogram.bucket_limit.len());
    Ok(())
}
