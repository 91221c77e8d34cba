//! Rows that a model has not converted, which would have scores, too.

use brisk_loader::{RowSource, Rows, split};
use brisk_nn::tensor::program::Device;
use brisk_tabular::{
    Columns, Error, Fitting, Network, Preprocessing, Recipe, Scaling, TabularModel, Target, TargetScale, ThresholdMetric,
};
use brisk_train::Trainer;

use crate::noise;

fn cpu() -> Device {
    Device::cpu().expect("a CPU")
}

fn columns() -> Columns {
    Columns::numbers(["x"])
}

fn numbers(n_rows: usize) -> Rows {
    let x: Vec<f32> = (0..n_rows).map(|row| 50.0 + 10.0 * noise(row, 0)).collect();
    let labels = x.iter().enumerate().map(|(row, x)| 3.0 * x + noise(row, 1)).collect::<Vec<f32>>();
    Rows::new(x, labels, 1).expect("a label a row")
}

fn model(rows: &Rows) -> Result<TabularModel, Error> {
    let preprocessing = Preprocessing::fit(&columns(), rows, Scaling::Standard)?;
    Ok(TabularModel::new(7, preprocessing, Target::numbers("y", "train", rows)?, Network::Mlp { hidden: vec![4] }))
}

#[test]
fn rows_that_the_model_has_not_converted_are_refused() -> Result<(), Error> {
    let raw = numbers(80);
    let mut model = model(&raw)?;
    let own = model.rows(&columns(), &raw)?;
    let in_memory = own.to_rows("train")?;
    let [part, _] = split(&in_memory, 3, [0.5, 0.5]).expect("shares");
    model.evaluate(&own)?;
    model.evaluate(&in_memory)?;
    model.evaluate(&part)?;

    let other = Preprocessing::fit(&columns(), &part, Scaling::Standard)?.over(&columns(), &raw)?.with_target(model.target());
    let unlabelled = model.preprocessing().over(&columns(), &raw)?;
    let logs = model.target().clone().with_scale(TargetScale::Log, &raw)?.fitted_to("train", &raw)?;
    let of_logs = model.preprocessing().over(&columns(), &raw)?.with_target(&logs);
    let recipes = vec![Recipe::of_one(Network::Mlp { hidden: vec![4] }, 80)];
    let others: [(&Rows, &str); 4] = [
        (&raw, "features that were not converted"),
        (&other.to_rows("other")?, "features that were converted in another way"),
        (&unlabelled.to_rows("unlabelled")?, "labels that were not converted"),
        (&of_logs.to_rows("logs")?, "labels that were converted in another way"),
    ];
    for (rows, expected) in others {
        let fitting = Fitting::new(recipes.clone(), 5);
        let (preprocessing, target) = (model.preprocessing().clone(), model.target().clone());
        let task = model.task();
        let mut trainer = Trainer::new(&cpu()).max_epochs(1);
        let errors = [
            model.evaluate(rows).err(),
            model.evaluate_constant(&in_memory, rows).err(),
            model.evaluate_constant(rows, &in_memory).err(),
            model.calibrate(&in_memory, rows).err(),
            model.choose_intervals(0.5, rows).err(),
            model.measure_importance(&cpu(), rows, &Default::default()).err(),
            fitting.fit(&cpu(), preprocessing.clone(), target.clone(), rows, &in_memory).err(),
            fitting.fit(&cpu(), preprocessing.clone(), target.clone(), &in_memory, rows).err(),
            fitting.choose_target_scale(&cpu(), &preprocessing, &target, &in_memory, rows).err(),
            trainer.fit(model.model_mut(), &*task, rows, rows).err().map(Into::into),
            trainer.fit(model.model_mut(), &*task, &in_memory, rows).err().map(Into::into),
            model.model().evaluate(&*task, rows).err().map(Into::into),
        ];
        for (nth, error) in errors.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("case {nth} with {expected}")).to_string();
            assert!(error.contains(expected) && error.contains("`TabularModel::rows`"), "case {nth}: {error}");
        }
    }
    // Labels do not matter to predictions.
    model.model().predict(&unlabelled)?;
    Ok(())
}

#[test]
fn rows_of_a_saved_model_are_its_rows() -> Result<(), Error> {
    let raw = numbers(80);
    let model = model(&raw)?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    model.save(folder.path())?;
    let loaded = TabularModel::load(folder.path())?;
    let (before, after) = (model.rows(&columns(), &raw)?, loaded.rows(&columns(), &raw)?);
    assert_eq!(before.names().encoding, after.names().encoding);
    assert_eq!(loaded.evaluate(&before)?, model.evaluate(&after)?);
    Ok(())
}

#[test]
fn a_calibration_keeps_what_was_chosen() -> Result<(), Error> {
    let raw = numbers(80);
    let mut of_numbers = model(&raw)?;
    let rows = of_numbers.rows(&columns(), &raw)?.to_rows("train")?;
    of_numbers.choose_intervals(0.8, &rows)?;
    of_numbers.calibrate(&rows, &rows)?;
    let intervals = of_numbers.intervals();
    assert_eq!(intervals.map(|intervals| intervals.coverage), Some(0.8));
    let calibrated = of_numbers.calibration().cloned();
    assert_eq!(Some(of_numbers.choose_intervals(0.8, &rows)?), intervals, "they are of calibrated predictions");
    let few = brisk_loader::Subset::of_rows(&rows, vec![0, 1, 2]).expect("rows");
    of_numbers.calibrate(&rows, &few).expect_err("too few rows for intervals");
    assert_eq!((of_numbers.intervals(), of_numbers.calibration()), (intervals, calibrated.as_ref()), "as before");

    let labels: Vec<f32> = (0..80).map(|row| f32::from(u8::from(row % 3 == 0))).collect();
    let classes = Rows::new(raw.features().to_vec(), labels, 1).expect("a label a row");
    let preprocessing = Preprocessing::fit(&columns(), &classes, Scaling::Standard)?;
    let target = Target::detect("y", &[], None, &classes)?;
    let mut of_classes = TabularModel::new(7, preprocessing, target, Network::Mlp { hidden: vec![4] });
    let rows = of_classes.rows(&columns(), &classes)?.to_rows("train")?;
    of_classes.choose_threshold(ThresholdMetric::F1, &rows)?;
    of_classes.calibrate(&rows, &rows)?;
    let threshold = of_classes.threshold();
    assert_eq!(threshold.map(|threshold| threshold.metric), Some(ThresholdMetric::F1));
    assert_eq!(Some(of_classes.choose_threshold(ThresholdMetric::F1, &rows)?), threshold);
    Ok(())
}
