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
