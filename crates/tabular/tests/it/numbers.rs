//! Regressions: calibration.

use std::fs;

use brisk_loader::{Rows, split};
use brisk_nn::tensor::program::{Device, Selection};
use brisk_tabular::{
    Calibration, Columns, Error, Fitted, Fitting, Network, NumberCalibration, Predictions, Preprocessing, Recipe, Scaling,
    TabularModel, Target,
};

use crate::noise;

fn cpu() -> Device {
    Device::builder().selection(Selection::Cpu).threads(2).open().expect("threads can be started")
}

/// Rows of one number, whose label is a function of it and the row.
fn rows(n_rows: usize, label: impl Fn(f32, usize) -> f32) -> Rows {
    let x: Vec<f32> = (0..n_rows).map(|row| noise(row, 0)).collect();
    let labels = x.iter().enumerate().map(|(row, &x)| label(x, row)).collect::<Vec<f32>>();
    Rows::new(x, labels, 1).expect("a label for each row")
}

fn columns() -> Columns {
    Columns::numbers(["x"])
}

/// A model for 70 % of the rows, with a recipe that `change` changes, and the rows that it was validated by.
fn fitted(rows: &Rows, change: impl Fn(Recipe) -> Recipe) -> Result<(Fitted, Rows), Error> {
    let [train, valid] = split(rows, 3, [0.7, 0.3]).expect("fractions");
    let preprocessing = Preprocessing::fit(&columns(), &train, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &train)?;
    let over = |rows, set| preprocessing.over(&columns(), rows)?.with_target(&target).to_rows(set);
    let (train, valid) = (over(&train, "train")?, over(&valid, "valid")?);
    let recipe = Recipe { max_epochs: 20, lr: 1e-2, ..Recipe::of_one(Network::Mlp { hidden: vec![16] }, 500) };
    let fitting = Fitting::new(vec![change(recipe)], 5);
    Ok((fitting.fit(&cpu(), preprocessing, target, &train, &valid)?, valid))
}

fn predictions(model: &TabularModel, rows: &Rows) -> Result<Predictions, Error> {
    model.predictor(&cpu())?.predict(&columns(), rows)
}

fn number_calibration(model: &TabularModel) -> NumberCalibration {
    model.calibration().and_then(Calibration::number).expect("a number")
}

#[test]
fn numbers_that_cannot_be_known_are_predicted_by_their_mean() -> Result<(), Error> {
    let rows = rows(600, |_, row| 7.0 + noise(row, 2));
    let (Fitted { model, .. }, valid) = fitted(&rows, |recipe| Recipe { max_epochs: 10, ..recipe })?;
    let calibration = number_calibration(&model);
    // Of all epochs, the best on the validation rows may be a little better by chance.
    assert!(!calibration.is_better_than_constant() && calibration.gain >= 0.0, "{calibration:?}");
    let (scores, constant) = (model.evaluate(&valid)?, model.evaluate_constant(&valid, &valid)?);
    let [rmse, of_constant] = [&scores, &constant].map(|scores| scores.get("rmse").expect("a number"));
    assert!((rmse / of_constant - 1.0).abs() < 0.05, "{rmse}, {of_constant}");
    // A rate that is far too high.
    let (Fitted { model, .. }, _) = fitted(&rows, |recipe| Recipe { max_epochs: 1, lr: 30.0, ..recipe })?;
    let calibration = number_calibration(&model);
    assert!(calibration.is_constant() && (calibration.intercept - 7.0).abs() < 0.2, "{calibration:?}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    model.save(folder.path())?;
    let found = predictions(&TabularModel::load(folder.path())?, &rows)?;
    assert!(found.numbers().iter().all(|number| (number - calibration.intercept).abs() < 1e-5), "{found:?}");
    Ok(())
}

#[test]
fn numbers_of_a_network_that_has_not_finished_are_corrected() -> Result<(), Error> {
    let rows = rows(900, |x, row| 100.0 + 30.0 * x + noise(row, 1));
    // A few steps of a small rate: the network knows the direction, but not yet the size.
    let (Fitted { mut model, .. }, valid) = fitted(&rows, |recipe| Recipe { max_epochs: 1, lr: 2e-3, ..recipe })?;
    let calibration = number_calibration(&model);
    assert!(calibration.slope > 1.1, "{calibration:?}");
    let calibrated = model.evaluate(&valid)?.get("rmse").expect("a number");
    let folder = tempfile::tempdir().expect("a temporary folder");
    model.save(folder.path())?;
    let loaded = TabularModel::load(folder.path())?;
    assert_eq!((loaded.calibration(), predictions(&loaded, &rows)?), (model.calibration(), predictions(&model, &rows)?));
    let raw = TabularModel::joined(vec![model], &valid)?.0;
    assert_eq!(raw.calibration(), None);
    let uncalibrated = raw.evaluate(&valid)?.get("rmse").expect("a number");
    assert!(calibrated < 0.9 * uncalibrated, "{calibrated}, {uncalibrated}");
    // A calibration that does not belong to the target is refused by its place.
    model = loaded;
    let path = folder.path().join("model.json");
    let text = fs::read_to_string(&path).expect("it was written");
    for (from, to, place) in
        [("\"kind\": \"number\"", "\"kind\": \"classes\"", "`calibration"), ("\"slope\": ", "\"slope\": -", "calibration.slope")]
    {
        assert!(text.contains(from), "{text}");
        let at = text.find("\"calibration\"").expect("it is calibrated");
        fs::write(&path, text[..at].to_owned() + &text[at..].replacen(from, to, 1)).expect("the folder can be written to");
        let error = TabularModel::load(folder.path()).expect_err("it is damaged").to_string();
        assert!(error.contains(place), "{error}");
    }
    assert_eq!(number_calibration(&model), calibration);
    Ok(())
}
