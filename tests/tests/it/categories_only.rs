//! Rows of categories only, without columns of numbers.

use std::sync::Arc;

use brisk_loader::{Rows, split};
use brisk_nn::{Activation, CategoricalColumn, Mlp, MlpConfig, ResidualMlp, ResidualMlpConfig};
use brisk_program::Device;
use brisk_table::Dictionary;
use brisk_tabular::{Columns, Network, Preprocessing, Recipe, Scaling, TabularModel, Target};
use brisk_train::{
    Classification, DataParallelConfig, Error, FeedChoice, FeedConfig, FitReport, Model, Predictor, RowDigest, Standardisation,
    Trainer, run_threads,
};

use crate::gpu::{cpu, gpu};

/// Two columns of codes, and their sum modulo 4 as the class.
fn rows(n: u32) -> Rows {
    let codes = |row: u32| [row.wrapping_mul(2_654_435_761) >> 7 & 3, row.wrapping_mul(40_503) >> 5 & 7];
    let labels = (0..n).map(|row| (codes(row).iter().sum::<u32>() % 4) as f32).collect();
    let categories: Arc<[u32]> = (0..n).flat_map(codes).collect();
    Rows::new(Vec::new(), labels, 0).and_then(|rows| rows.with_categories(categories, 2)).expect("two codes per row")
}

fn model() -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: 0, hidden: vec![32], n_outputs: 4, activation: Activation::relu() };
    let columns = [CategoricalColumn { n_codes: 4, dim: 4 }, CategoricalColumn { n_codes: 8, dim: 4 }];
    Model::new(5, |params| Mlp::with_categories(params, &sizes, &columns))
}

fn fit(device: &Device, choice: FeedChoice) -> Result<(FitReport, Model<Mlp>), Error> {
    let [train, valid] = split(rows(777), 7, [0.8, 0.2]).expect("fractions");
    let feed = FeedConfig { choice, chunk_bytes: 2_000, ..FeedConfig::default() };
    let mut model = model();
    let mut trainer = Trainer::new(device).batch_rows(32).max_epochs(12).learning_rate(2e-2).feed(&feed);
    Ok((trainer.fit(&mut model, &Classification::of(4), &train, &valid)?, model))
}

#[test]
fn they_are_trained_evaluated_saved_and_predicted() -> Result<(), Error> {
    let (report, model) = fit(&cpu(2), FeedChoice::Resident)?;
    assert!(report.best_value > 0.95, "{}", report.best_value);
    assert_eq!(fit(&cpu(2), FeedChoice::Streamed)?.0.history, report.history);
    let all = rows(777);
    let (scores, outputs) = (model.evaluate(&Classification::of(4), &all)?, model.predict(&all)?);
    assert!(scores.get("accuracy") > Some(0.95), "{scores}");
    for n in [1, 20, 777] {
        let found = Predictor::new(&cpu(1), &model, 0)?.predict(&[], &all.categories()[..2 * n])?;
        assert!(found.len() == 4 * n && found.iter().zip(&outputs).all(|(a, b)| (a - b).abs() < 1e-4), "{n} rows");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    model.save(&path)?;
    let sizes = MlpConfig { n_inputs: 0, hidden: vec![32], n_outputs: 4, activation: Activation::relu() };
    let again = Model::load(&path, |params| Mlp::with_categories(params, &sizes, model.params().categorical_columns()))?;
    assert_eq!(again.predict(&all)?, outputs);
    assert_ne!(RowDigest::of("all", &all)?, RowDigest::of("all", &rows(776))?);
    assert!(Standardisation::of("all", &all)?.mean().is_empty());
    Ok(())
}

#[test]
fn a_table_of_them_is_trained_on_and_predicted() -> Result<(), brisk_tabular::Error> {
    let rows = rows(777);
    let dictionary =
        |name: &str, n: usize| Dictionary::new(name, (0..n).map(|i| format!("value {i}"))).expect("different values");
    let columns = Columns { categories: vec![dictionary("a", 3), dictionary("b", 7)], ..Columns::numbers(Vec::<String>::new()) };
    let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
    let target = Target::detect("sum", &[], None, &rows)?;
    let mut model = TabularModel::new(7, preprocessing.clone(), target.clone(), Network::Mlp { hidden: vec![32] });
    let (own, task) = (model.rows(&columns, &rows)?, model.task());
    let mut trainer = Trainer::new(&cpu(2)).batch_rows(32).max_epochs(12).learning_rate(2e-2);
    trainer.fit(model.model_mut(), &*task, &own, &own)?;
    assert!(model.evaluate(&own)?.get("accuracy") > Some(0.95));
    let outputs = model.predictor(&cpu(1))?.predict(&columns, &rows)?;
    assert_eq!(outputs.n_rows(), 777);

    let recipe = Recipe { max_epochs: 2, ..Recipe::real_mlp(&own.to_rows("own")?, &target) };
    let mut model = TabularModel::new(7, preprocessing, target, recipe.network.clone());
    recipe.trainer(&cpu(2)).fit(model.model_mut(), &*task, &own, &own)?;
    assert_eq!(model.predictor(&cpu(1))?.predict(&columns, &rows)?.n_rows(), 777);
    Ok(())
}

#[test]
fn gpus_and_replicas_train_alike() -> Result<(), Error> {
    let expected = fit(&cpu(2), FeedChoice::Resident)?.0.best_value;
    if let Some(gpu) = gpu() {
        for choice in [FeedChoice::Resident, FeedChoice::Streamed] {
            let (report, model) = fit(&gpu, choice)?;
            assert!((report.best_value - expected).abs() < 0.03, "{} and {expected}", report.best_value);
            assert_eq!(Predictor::new(&gpu, &model, 0)?.predict(&[], &[1, 2, 3, 4])?.len(), 8);
        }
    }
    let (train, valid) = (rows(200), rows(60));
    let run = |n| {
        run_threads::<_, Error>(n, &DataParallelConfig::default(), |replicas| {
            let mut model = model();
            let mut trainer = Trainer::new(&cpu(1)).batch_rows(32).max_epochs(2).replicas(replicas);
            trainer.fit(&mut model, &Classification::of(4), &train, &valid)?;
            model.predict(&valid)
        })
    };
    let (single, both) = (run(1)?.remove(0), run(2)?);
    assert_eq!(both[0], both[1], "bit-identical on both");
    assert!(both[0].iter().zip(&single).all(|(found, expected)| (found - expected).abs() < 1e-4));
    Ok(())
}

#[test]
fn other_modules_take_them() -> Result<(), Error> {
    let sizes = ResidualMlpConfig { n_inputs: 0, width: 16, hidden: 16, n_blocks: 1, n_outputs: 4 };
    let columns = [CategoricalColumn::of(4), CategoricalColumn::of(8)];
    let mut model = Model::new(5, |params| ResidualMlp::with_categories(params, &sizes, &columns));
    let rows = rows(320);
    Trainer::new(&cpu(1)).batch_rows(32).max_epochs(1).fit(&mut model, &Classification::of(4), &rows, &rows)?;
    assert_eq!(model.predict(&rows)?.len(), 4 * 320);
    // One that takes numbers, or rows of nothing.
    let mut other = Model::new(5, |params| {
        let sizes = MlpConfig { n_inputs: 3, hidden: vec![], n_outputs: 4, activation: Activation::relu() };
        Mlp::with_categories(params, &sizes, &columns)
    });
    let error = Trainer::new(&cpu(1)).fit(&mut other, &Classification::of(4), &rows, &rows).expect_err("no numbers");
    assert!(matches!(error, Error::RowLayout { what: "column", found: 0, expected: 3, .. }), "{error}");
    let nothing = Rows::new(Vec::<f32>::new(), vec![1.0; 9], 0).expect("rows of labels");
    let error = Trainer::new(&cpu(1)).fit(&mut other, &Classification::of(4), &nothing, &nothing).expect_err("nothing");
    assert!(matches!(&error, Error::RowSet { set: "train", found, .. } if found == "9 rows of 0 columns"), "{error}");
    Ok(())
}
