//! What a limit of time is for.

use std::cell::RefCell;
use std::time::Duration;

use brisk_loader::{Rows, k_fold, split};
use brisk_nn::tensor::program::{Device, Selection};
use brisk_tabular::{Columns, Error, Fitted, Fitting, ImportanceOptions, Network, Preprocessing, Recipe, Scaling, Target};

use crate::noise;

/// Networks that are trained on few rows, or on folds of them, with these settings.
fn fitted<'f>(n_folds: usize, change: impl FnOnce(Fitting<'f>) -> Fitting<'f>) -> Result<Fitted, Error> {
    let x: Vec<f32> = (0..600).map(|i| noise(i / 2, i % 2)).collect();
    let labels: Vec<f32> = x.chunks_exact(2).map(|x| x[0] - 2.0 * x[1]).collect();
    let rows = Rows::new(x, labels, 2).expect("rows");
    let columns = Columns::numbers(["a", "b"]);
    let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &rows)?;
    let rows = preprocessing.over(&columns, &rows)?.with_target(&target).to_rows("train")?;
    let recipe = Recipe { max_epochs: 3, ..Recipe::of_one(Network::Mlp { hidden: vec![8] }, 300) };
    let fitting = Fitting { importance: Some(ImportanceOptions::default()), ..Fitting::new(vec![recipe.clone(), recipe], 5) };
    let (fitting, device) = (change(fitting), Device::builder().selection(Selection::Cpu).threads(1).open()?);
    if n_folds > 1 {
        return fitting.fit_folds(&device, preprocessing, target, &k_fold(&rows, 7, n_folds).expect("folds"));
    }
    let [train, valid] = split(&rows, 7, [0.8, 0.2]).expect("fractions");
    fitting.fit(&device, preprocessing, target, &train, &valid)
}

#[test]
fn time_is_left_for_what_follows_the_networks() -> Result<(), Error> {
    let hour = Some(Duration::from_secs(3600));
    let enough = fitted(1, |fitting| Fitting { max_time: hour, rows_after: 1000, ..fitting })?;
    assert_eq!((enough.reports.len(), enough.reports[0].n_epochs, enough.model.importance().is_some()), (2, 3, true));
    // What follows takes longer than that: one network is trained for a moment, and importance is left out.
    let none = fitted(1, |fitting| Fitting { max_time: hour, rows_after: usize::MAX, ..fitting })?;
    assert_eq!((none.reports.len(), none.model.importance().is_some()), (1, false));
    Ok(())
}

#[test]
fn the_end_is_estimated_before_each_network() -> Result<(), Error> {
    for (n_folds, n_networks) in [(1, 2), (2, 4)] {
        let estimates = RefCell::new(Vec::new());
        let on_estimate = |to_go: Duration| estimates.borrow_mut().push(to_go);
        let fitted = fitted(n_folds, |fitting| Fitting { on_estimate: Some(Box::new(on_estimate)), ..fitting })?;
        let estimates = estimates.into_inner();
        assert_eq!((fitted.reports.len(), estimates.len()), (n_networks, n_networks));
        assert!(estimates.iter().all(|to_go| !to_go.is_zero()), "{estimates:?}");
    }
    Ok(())
}

#[test]
fn the_pace_is_measured_where_the_first_validation_rows_are_of_one_class() -> Result<(), Error> {
    let x: Vec<f32> = (0..600).map(|i| noise(i, 0)).collect();
    let rows = |labels: &dyn Fn(usize) -> f32| Rows::new(x.clone(), (0..600).map(labels).collect::<Vec<f32>>(), 1).expect("rows");
    let (columns, mixed) = (Columns::numbers(["a"]), rows(&|row| (row % 2) as f32));
    let preprocessing = Preprocessing::fit(&columns, &mixed, Scaling::Standard)?;
    let target = Target::detect("y", &[], None, &mixed)?;
    let of = |rows: &Rows| preprocessing.over(&columns, rows)?.with_target(&target).to_rows("train");
    let (train, valid) = (of(&mixed)?, of(&rows(&|row| f32::from(u8::from(row >= 300))))?);
    let recipe = Recipe { max_epochs: 1, batch_rows: 32, ..Recipe::of_one(Network::Mlp { hidden: vec![8] }, 600) };
    let fitting = Fitting { on_estimate: Some(Box::new(|_| ())), ..Fitting::new(vec![recipe], 5) };
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let fitted = fitting.fit(&device, preprocessing.clone(), target.clone(), &train, &valid)?;
    assert_eq!(fitted.report().watched, "valid_auc", "all validation rows are of both classes");
    Ok(())
}
