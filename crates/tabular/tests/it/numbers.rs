//! Regressions: calibration, logarithms of the target, and intervals.

use std::fs;

use brisk_loader::{Rows, labels_of, split};
use brisk_nn::tensor::program::{Device, Selection};
use brisk_tabular::{
    Calibration, Columns, Error, Fitted, Fitting, Network, NumberCalibration, Predictions, Preprocessing, Recipe, Scaling,
    TabularModel, Target, TargetScale, TargetScaleReason,
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
    let [mut outputs, mut labels] = [model.model().predict(&valid)?, labels_of(&valid).expect("they have labels")];
    model.target().restore(&mut outputs);
    model.target().restore(&mut labels);
    let errors = outputs.iter().zip(&labels).map(|(output, label)| f64::from(output - label).powi(2));
    let uncalibrated = (errors.sum::<f64>() / labels.len() as f64).sqrt();
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

/// Positive numbers with a long tail, whose errors are shares of them.
fn prices() -> Rows {
    rows(1500, |x, row| 1000.0 * (1.5 * x + 0.3 * noise(row, 1)).exp())
}

fn recipe() -> Recipe {
    Recipe { max_epochs: 16, lr: 1e-2, ..Recipe::of_one(Network::Mlp { hidden: vec![16] }, 500) }
}

fn chosen(rows: &Rows) -> Result<(TargetScale, TargetScaleReason), Error> {
    let [train, valid] = split(rows, 3, [0.7, 0.3]).expect("fractions");
    let preprocessing = Preprocessing::fit(&columns(), &train, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &train)?;
    let over = |rows, set| preprocessing.over(&columns(), rows)?.with_target(&target).to_rows(set);
    let (train, valid) = (over(&train, "train")?, over(&valid, "valid")?);
    Fitting::new(vec![recipe()], 5).choose_target_scale(&cpu(), &preprocessing, &target, &train, &valid)
}

#[test]
fn the_scale_of_a_target_is_chosen_by_validation_rows() -> Result<(), Error> {
    let (scale, reason) = chosen(&prices())?;
    let TargetScaleReason::Validated { standard, log } = reason else { panic!("{reason}") };
    assert!(scale == TargetScale::Log && log < standard, "{reason}");
    // Of these numbers the logarithm is a function with a pole.
    let (scale, reason) = chosen(&rows(1500, |x, _| 1e-6 + (x.max(0.0)).powi(3)))?;
    assert!(matches!(reason, TargetScaleReason::Validated { .. }) && scale == TargetScale::Standard, "{scale}: {reason}");
    let (scale, reason) = chosen(&rows(300, |x, _| 10.0 + x))?;
    assert!(matches!(reason, TargetScaleReason::NotSkewed { .. }) && scale == TargetScale::Standard, "{reason}");
    let (scale, reason) = chosen(&rows(300, |x, row| if row == 17 { 0.0 } else { (3.0 * x).exp() }))?;
    assert_eq!((scale, reason), (TargetScale::Standard, TargetScaleReason::NotPositive { smallest: 0.0 }));
    Ok(())
}

#[test]
fn a_logarithm_is_learned_and_predicted_in_the_unit_of_the_target() -> Result<(), Error> {
    let rows = prices();
    let [train, valid] = split(&rows, 3, [0.7, 0.3]).expect("fractions");
    let preprocessing = Preprocessing::fit(&columns(), &train, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &train)?.with_scale(TargetScale::Log, &rows)?.fitted_to("train", &train)?;
    let mut restored = [target.label(1234.5), target.label(1e-3)];
    target.restore(&mut restored);
    assert!((restored[0] - 1234.5).abs() < 0.01 && (restored[1] - 1e-3).abs() < 1e-7, "{restored:?}");
    // A label from which an offset was subtracted has the same logarithm.
    let one = |label: f32| Rows::new(vec![0.0; 2], vec![label, 3.0 * label + 500.0], 1).expect("two rows");
    let plain =
        Target::numbers("y", "train", &one(250.0))?.with_scale(TargetScale::Log, &one(250.0))?.fitted_to("train", &one(250.0))?;
    let less = Rows::new(vec![0.0; 2], vec![-750.0, 250.0], 1).expect("two rows");
    let shifted = Target::numbers("y", "train", &less)?
        .shifted_by(1000.0)
        .with_scale(TargetScale::Log, &less)?
        .fitted_to("train", &less)?;
    assert!((plain.label(500.0) - shifted.label(-500.0)).abs() < 1e-6, "{plain:?}, {shifted:?}");
    let over = |rows, set| preprocessing.over(&columns(), rows)?.with_target(&target).to_rows(set);
    let (train, valid) = (over(&train, "train")?, over(&valid, "valid")?);
    let fitting = Fitting::new(vec![recipe()], 5);
    let Fitted { model, .. } = fitting.fit(&cpu(), preprocessing.clone(), target.clone(), &train, &valid)?;
    // E[exp(0.3 u)] = 1.015 for u between -1 and 1.
    let calibration = number_calibration(&model);
    assert!(calibration.intercept == 0.0 && (0.95..1.1).contains(&calibration.slope), "{calibration:?}");
    let found = predictions(&model, &rows)?;
    assert!(found.numbers().iter().all(|number| *number > 0.0), "prices are positive");
    let (scores, constant) = (model.evaluate(&valid)?, model.evaluate_constant(&train, &valid)?);
    let [rmse, of_constant] = [&scores, &constant].map(|scores| scores.get("rmse").expect("a number"));
    assert!(rmse < 0.35 * of_constant && of_constant > 500.0, "{rmse}, {of_constant}");
    // The constant is the mean of the numbers, not of their logarithms.
    assert!(constant.get("r2").is_some_and(|r2| r2.abs() < 0.02), "{constant}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    model.save(folder.path())?;
    let loaded = TabularModel::load(folder.path())?;
    assert_eq!((loaded.target(), predictions(&loaded, &rows)?), (&target, found));
    Ok(())
}

#[test]
fn numbers_without_a_logarithm_are_named() {
    let rows = rows(50, |x, row| if row == 31 { -4.5 } else { x.abs() + 1.0 });
    let target = Target::numbers("price", "train", &rows).expect("different numbers");
    let error = target.with_scale(TargetScale::Log, &rows).expect_err("one is negative");
    assert!(matches!(&error, Error::NotPositive { target, row: 31, number: -4.5 } if target == "price"), "{error}");
    let classes =
        Target::detect("kind", &["a".into(), "b".into()], None, &self::rows(50, |_, row| (row % 2) as f32)).expect("classes");
    let error = classes.with_scale(TargetScale::Standard, &rows).expect_err("classes have no scale");
    assert!(matches!(&error, Error::NotNumber { n_classes: 2, .. }), "{error}");
}

#[test]
fn intervals_hold_their_share_of_new_numbers() -> Result<(), Error> {
    const COVERAGE: f64 = 0.9;
    // Errors that are skewed, and in one table a share of the number.
    let skewed = |row: usize| noise(row, 1).abs().powi(2);
    let plain = rows(6000, |x, row| 5.0 * x + skewed(row));
    let positive = rows(6000, |x, row| (2.0 * x + skewed(row)).exp());
    for (rows, scale) in [(plain, TargetScale::Standard), (positive, TargetScale::Log)] {
        let [train, valid, test] = split(&rows, 3, [0.3, 0.3, 0.4]).expect("fractions");
        let preprocessing = Preprocessing::fit(&columns(), &train, Scaling::Standard)?;
        let target = Target::numbers("y", "train", &train)?.with_scale(scale, &rows)?.fitted_to("train", &train)?;
        let over = |rows, set| preprocessing.over(&columns(), rows)?.with_target(&target).to_rows(set);
        let [train, valid, test_rows] = [over(&train, "train")?, over(&valid, "valid")?, over(&test, "test")?];
        let fitting = Fitting { intervals: Some(COVERAGE), ..Fitting::new(vec![recipe()], 5) };
        let Fitted { model, .. } = fitting.fit(&cpu(), preprocessing, target.clone(), &train, &valid)?;
        let intervals = model.intervals().expect("they were asked for");
        assert_eq!((intervals.coverage, intervals.n_rows), (COVERAGE, 1800));
        let found = model.predictor(&cpu())?.predict(&columns(), &test)?;
        let labels = labels_of(&test).expect("labels in memory");
        let below = found.intervals().iter().zip(&labels).filter(|([lower, _], label)| f64::from(**label) < *lower).count();
        let above = found.intervals().iter().zip(&labels).filter(|([_, upper], label)| f64::from(**label) > *upper).count();
        // Each side is missed by 5 % of 2400 rows: a binomial deviation of 10.7, and as much again for the 1800 rows that the
        // bounds are from (12.3); four of both together.
        let n = labels.len() as f64;
        for outside in [below, above] {
            assert!((outside as f64 - 0.05 * n).abs() < 4.0 * 16.3, "{scale}: {below} below, {above} above of {n}");
        }
        let score = model.interval_score(&test_rows)?.expect("intervals");
        assert!((score.coverage - (1.0 - (below + above) as f64 / n)).abs() < 2.0 / n, "{score:?}, {below}, {above}");
        let widths = found.intervals().iter().map(|[lower, upper]| upper - lower);
        assert!((score.mean_width / (widths.sum::<f64>() / n) - 1.0).abs() < 1e-3, "{score:?}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        model.save(folder.path())?;
        let loaded = TabularModel::load(folder.path())?;
        assert_eq!((loaded.intervals(), loaded.predictor(&cpu())?.predict(&columns(), &test)?), (Some(intervals), found));
    }
    Ok(())
}

#[test]
fn intervals_that_cannot_be_are_refused_before_training() {
    let fit = |rows: &Rows, coverage: f64| -> Error {
        let preprocessing = Preprocessing::fit(&columns(), rows, Scaling::Standard).expect("numbers");
        let target = Target::detect("y", &[], None, rows).and_then(|target| target.fitted_to("train", rows)).expect("labels");
        let rows =
            preprocessing.over(&columns(), rows).and_then(|over| over.with_target(&target).to_rows("train")).expect("rows");
        // Had training begun, its error would be another one.
        let no_recipe = Fitting { intervals: Some(coverage), ..Fitting::new(Vec::new(), 5) };
        no_recipe.fit(&cpu(), preprocessing, target, &rows, &rows).expect_err("it is refused")
    };
    let error = fit(&rows(30, |x, _| x), 0.95);
    assert!(matches!(error, Error::FewIntervalRows { n_rows: 30, needed: 39, .. }), "{error}");
    let error = fit(&rows(30, |x, _| x), 1.0);
    assert!(matches!(error, Error::Coverage { coverage: 1.0 }), "{error}");
    let error = fit(&rows(60, |_, row| (row % 3) as f32), 0.9);
    assert!(matches!(error, Error::NotNumber { n_classes: 3, .. }), "{error}");
}
