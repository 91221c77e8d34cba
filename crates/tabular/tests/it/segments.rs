//! Where a model is worse.

use brisk_loader::{Rows, split};
use brisk_nn::tensor::program::Device;
use brisk_table::Dictionary;
use brisk_tabular::{Columns, Error, Network, Preprocessing, Scaling, SegmentOptions, SegmentValues, TabularModel, Target};
use brisk_train::Trainer;

use crate::noise;

#[test]
fn rows_with_other_values_are_predicted_worse() -> Result<(), Error> {
    // `y` is `3 a`, except in green rows, which only occur after training, and in those without `a`.
    let row = |row: usize, is_green: bool| {
        let is_missing = row.is_multiple_of(8);
        let a = if is_missing { f32::NAN } else { noise(row, 0) };
        let y = if is_missing { 6.0 * noise(row, 1) } else { 3.0 * noise(row, 0) };
        (a, if is_green { y + 5.0 } else { y }, if is_green { 3 } else { 1 + (row % 3 / 2) as u32 })
    };
    let rows = |n: usize, green_from: usize| {
        let all: Vec<_> = (0..n).map(|i| row(i, i >= green_from)).collect();
        let [features, labels]: [Vec<f32>; 2] = [all.iter().map(|row| row.0).collect(), all.iter().map(|row| row.1).collect()];
        let codes: Vec<u32> = all.iter().map(|row| row.2).collect();
        Rows::new(features, labels, 1).and_then(|rows| rows.with_categories(codes, 1)).expect("whole rows")
    };
    let colours = ["red", "blue", "green"].map(str::to_owned).to_vec();
    let dictionary = Dictionary::new("colour", colours).expect("different values");
    let columns = Columns { categories: vec![dictionary], ..Columns::numbers(["a"]) };
    let known = rows(1500, 1500);
    let [train, valid] = split(&known, 3, [0.8, 0.2]).expect("fractions");
    let preprocessing = Preprocessing::fit(&columns, &train, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &train)?;
    let mut model = TabularModel::new(5, preprocessing, target, Network::Mlp { hidden: vec![16] });
    let [train, valid] = [model.rows(&columns, &train)?.to_rows("train")?, model.rows(&columns, &valid)?.to_rows("valid")?];
    let task = model.task();
    Trainer::new(&Device::cpu().expect("a CPU")).batch_rows(32).max_epochs(15).learning_rate(1e-2).fit(
        model.model_mut(),
        &*task,
        &train,
        &valid,
    )?;

    let test = rows(1000, 900);
    let found = model.segment_errors(&columns, &test, &SegmentOptions::default())?.expect("finite predictions");
    let rmse = model.evaluate(&model.rows(&columns, &test)?)?.get("rmse").expect("a number");
    assert!((found.all.value - rmse).abs() < 1e-4 * rmse && found.all.n_rows == 1000, "{found:?}, {rmse}");
    let worse: Vec<_> = found.worse().map(|segment| (segment.column.as_str(), &segment.values)).collect();
    assert_eq!(worse, [("colour", &SegmentValues::Unseen), ("a", &SegmentValues::Missing)], "{found:?}");
    let [unseen, missing] = [0, 1].map(|at| found.segments[at].score);
    assert!(unseen.n_rows == 100 && unseen.bias.is_some_and(|bias| bias < -3.0), "{unseen:?}");
    assert!(missing.n_rows == 125 && missing.value > 0.9 * missing.constant, "nothing is known of them: {missing:?}");
    // Five ranges, the rows without a number, two known colours and the unseen one.
    assert_eq!(found.segments.len(), 9);
    Ok(())
}
