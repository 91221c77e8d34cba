//! Models of several targets of a table, in one folder.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_nn::tensor::program::{Device, Selection};
use brisk_tabular::{DetectOptions, Error, Network, Preprocessing, Scaling, TabularModel, TabularModels};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A file with a number, a category and two targets.
fn file(folder: &Path) -> Outcome<PathBuf> {
    let path = folder.join("rows.csv");
    let row = |row: usize| format!("{},{},{}.5,{}\n", row % 10, ["red", "blue"][row % 2], row, ["no", "yes"][row / 3 % 2]);
    fs::write(&path, "size,colour,price,sold\n".to_owned() + &(0..70).map(row).collect::<String>())?;
    Ok(path)
}

/// A model that was not trained.
fn model(file: &Path, target: &str, others: &[&str]) -> Outcome<TabularModel> {
    let other_targets = others.iter().map(|&name| name.to_owned()).collect();
    let options = DetectOptions { target: Some(target.to_owned()), other_targets, ..DetectOptions::default() };
    let detected = TabularModel::detect(file, &options)?;
    let preprocessing = Preprocessing::fit(&detected.columns, &detected.table, Scaling::Standard)?;
    let target = detected.target.fitted_to("train", &detected.table)?;
    Ok(TabularModel::new(3, preprocessing, target, Network::Mlp { hidden: vec![8] }))
}

fn models(file: &Path) -> Outcome<TabularModels> {
    Ok(TabularModels::new(vec![model(file, "price", &["sold"])?, model(file, "sold", &["price"])?])?)
}

#[test]
fn a_folder_of_several_models_predicts_as_each_of_them() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (file, out) = (file(folder.path())?, folder.path().join("models"));
    let models = models(&file)?;
    for model in models.models() {
        assert_eq!(model.preprocessing().columns().numbers, ["size"], "another target is no feature");
    }
    models.save(&out)?;
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let predicted = TabularModels::load(&out)?.predict_file(&device, &file)?;
    let singly = ["0", "1"].map(|name| TabularModel::load(out.join(name)).and_then(|model| model.predict_file(&device, &file)));
    let [price, sold] = singly;
    assert_eq!(predicted, [price?, sold?]);
    // A table of both is read once.
    let rows = TabularModels::load(&out)?.read_rows_with(&file, models.models()[0].text_options(), || ())?;
    assert!(std::sync::Arc::ptr_eq(&rows[0].table, &rows[1].table), "read once");
    Ok(())
}

#[test]
fn models_with_other_columns_read_the_file_again() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = file(folder.path())?;
    let models = TabularModels::new(vec![model(&file, "price", &["colour"])?, model(&file, "sold", &[])?])?;
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let predicted = models.predict_file(&device, &file)?;
    assert_eq!(predicted[1], models.models()[1].predict_file(&device, &file)?);
    Ok(())
}

#[test]
fn a_folder_whose_models_do_not_belong_together_is_refused() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (file, out) = (file(folder.path())?, folder.path().join("models"));
    models(&file)?.save(&out)?;
    let index = out.join("targets.json");
    let (text, refused) = (fs::read_to_string(&index)?, || TabularModels::load(&out).expect_err("it is refused").to_string());
    for (from, to, word) in [
        ("\"price\"", "\"cost\"", "the folder has the model `price`"),
        ("\"0\"", "\"../0\"", "the folder has the model `price` in `0`"),
        ("\"format\": 1", "\"format\": 2", "format 2"),
        ("\"targets\"", "\"target\"", "unknown field `target`"),
        ("{", "[", "is not JSON"),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&index, text.replacen(from, to, 1))?;
        assert!(refused().contains(word) && refused().contains("targets.json"), "{from}: {}", refused());
    }
    fs::write(&index, r#"{"format": 1, "brisk_version": "0.1.0", "targets": []}"#)?;
    assert!(refused().contains("targets.json: models of the targets []"), "{}", refused());
    fs::write(&index, &text)?;
    // One that was written again without the others.
    model(&file, "sold", &[])?.save(out.join("1"))?;
    assert!(refused().contains("names the model `sold` in `1` with checksum"), "{}", refused());
    models(&file)?.save(&out)?;
    assert!(matches!(TabularModel::load(&out), Err(Error::SeveralModels { .. })), "a model of one target");
    fs::remove_dir_all(out.join("1"))?;
    assert!(refused().contains("model.json: not found"), "{}", refused());
    Ok(())
}

#[test]
fn a_folder_has_the_models_that_were_saved_last() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (file, out) = (file(folder.path())?, folder.path().join("models"));
    model(&file, "price", &[])?.save(&out)?;
    let n_models = || TabularModels::load(&out).map(|models| models.models().len());
    assert_eq!(n_models()?, 1, "that of one target");
    models(&file)?.save(&out)?;
    assert_eq!((n_models()?, out.join("model.json").exists()), (2, false));
    model(&file, "price", &[])?.save(&out)?;
    assert_eq!((n_models()?, TabularModel::load(&out)?.target().name()), (1, "price"));
    Ok(())
}

#[test]
fn targets_are_different_columns() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = file(folder.path())?;
    let error = TabularModels::new(vec![model(&file, "sold", &[])?, model(&file, "sold", &[])?]).expect_err("twice");
    assert!(error.to_string().contains("\"sold\""), "{error}");
    assert!(matches!(TabularModels::new(Vec::new()), Err(Error::Targets { .. })), "none");
    let error = model(&file, "price", &["solt"]).expect_err("no column").to_string();
    assert!(error.contains("`solt` for the target"), "{error}");
    assert!(error.contains("`sold`") && error.contains("\"colour\""), "the columns are listed: {error}");
    assert!(model(&file, "price", &["price"]).expect_err("two roles").to_string().contains("`price` is given two roles"));
    Ok(())
}
