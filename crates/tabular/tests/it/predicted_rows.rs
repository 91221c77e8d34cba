//! Predictions in one call.

use std::fs;
use std::path::PathBuf;

use brisk_nn::tensor::program::{Device, Selection};
use brisk_tabular::{DetectOptions, Network, Preprocessing, Scaling, TabularModel};
use tempfile::TempDir;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A model of a number and a category that was not trained, and a file with these rows to predict.
fn model_and_file(rows: &str) -> Outcome<(TempDir, Device, TabularModel, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let [of_training, new] = ["rows.csv", "new.csv"].map(|name| folder.path().join(name));
    let row = |row: usize| format!("{},{},{}\n", row % 10, ["red", "blue"][row % 2], row as f32 + 0.5);
    fs::write(&of_training, "size,colour,y\n".to_owned() + &(0..70).map(row).collect::<String>())?;
    fs::write(&new, rows)?;
    let detected = TabularModel::detect(&of_training, &DetectOptions::default())?;
    let preprocessing = Preprocessing::fit(&detected.columns, &detected.table, Scaling::Standard)?;
    let target = detected.target.fitted_to("train", &detected.table)?;
    let model = TabularModel::new(3, preprocessing, target, Network::Mlp { hidden: vec![8] });
    Ok((folder, Device::builder().selection(Selection::Cpu).threads(1).open()?, model, new))
}

#[test]
fn a_file_and_its_rows_are_predicted_in_one_call() -> Outcome {
    let (_folder, device, model, path) = model_and_file("colour,id,size\nred,a,4\npink,b,?\nblue,c,5000\n")?;
    let predicted = model.predict_file(&device, &path)?;
    let rows = model.read_rows(&path)?;
    assert_eq!(predicted.predictions, model.predictor(&device)?.predict(&rows.columns, &rows.table)?);
    assert_eq!(predicted.predictions.n_rows(), 3);
    let unseen: Vec<_> = predicted.unfamiliar.unseen.iter().map(|unseen| (unseen.column.as_str(), unseen.n_rows)).collect();
    let far: Vec<_> = predicted.unfamiliar.far.iter().map(|far| (far.column.as_str(), far.n_rows)).collect();
    assert_eq!((unseen, far), (vec![("colour", 1)], vec![("size", 1)]), "what the model does not know is named");
    let missing: Vec<_> = predicted.unfamiliar.missing.iter().map(ToString::to_string).collect();
    let expected = "column `size`: 1 of 3 values are missing, although none was in training: the mean of training replaces them";
    assert_eq!(missing, [expected], "a category that is missing is a value of its own");
    assert_eq!(model.predict_rows(&device, &rows.columns, &rows.table)?, predicted);
    Ok(())
}

#[test]
fn a_file_without_a_column_is_refused() -> Outcome {
    let (_folder, device, model, path) = model_and_file("colour,length\nred,4\n")?;
    let error = model.predict_file(&device, &path).expect_err("there is no size").to_string();
    assert!(error.contains("size") && error.contains("new.csv"), "{error}");
    Ok(())
}

#[test]
fn predictions_are_scored_by_the_target_that_a_file_has() -> Outcome {
    let (_folder, device, model, path) = model_and_file("y,colour,size\n1.5,red,4\n,red,1\n-2,blue,7\n")?;
    let text = model.text_options();
    let known = model.read_target(&path, text, || ())?.ok_or("the file has the target")?;
    assert_eq!((known.n_missing, known.unknown_classes.len()), (1, 0));
    let predictions = model.predict_file(&device, &path)?.predictions;
    let scored = model.score_predictions(&predictions, &known)?.ok_or("two rows have a target")?;
    let of = |row: usize, label: f64| (predictions.numbers()[row] - label).powi(2);
    let expected = f64::midpoint(of(0, 1.5), of(2, -2.0)).sqrt();
    assert!((scored.scores.get("rmse").ok_or("rmse")? - expected).abs() < 1e-4 * expected, "{scored:?}, {expected}");
    assert_eq!((scored.n_rows, scored.constant.get("rmse"), scored.constant.get("r2")), (2, Some(1.75), Some(0.0)));
    fs::write(&path, "colour,size\nred,4\n")?;
    assert_eq!(model.read_target(&path, text, || ())?, None);
    fs::write(&path, "colour,size,y\nred,4,much\n")?;
    let error = model.read_target(&path, text, || ()).expect_err("it is no number").to_string();
    assert!(error.contains("much") && error.contains("line 2"), "{error}");
    Ok(())
}
