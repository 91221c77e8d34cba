//! Tasks: what a trainer trains a model for, and what it refuses.

use brisk_loader::{Rows, split};
use brisk_nn::tensor::{LossReduction, Precision, Tensor};
use brisk_nn::{Activation, Adam, Mlp, MlpConfig, ParametersBuilder, Schedule};
use brisk_train::metrics::{self, MeanAbsoluteError, Metric};
use brisk_train::{
    Binary, Checkpoint, Classification, DataParallelConfig, EarlyStopping, Error, LabelledRows, Labels, Model, Regression, Task,
    Trainable, Trainer, ZeroStage, run_threads,
};

use crate::gpu::cpu;
use crate::run::noise;

/// Three columns; `label` receives their values, which are in -1..1.
fn rows(n: usize, label: impl Fn([f32; 3]) -> f32) -> Rows {
    let row = |row| [0, 1, 2].map(|col| noise(row, col));
    let labels = (0..n).map(|i| label(row(i))).collect();
    Rows::new((0..n).flat_map(row).collect::<Vec<f32>>(), labels, 3).expect("as many labels as rows")
}

/// Which column is the largest.
fn largest(x: [f32; 3]) -> f32 {
    let first = (0..3).fold(0, |best, col| if x[col] > x[best] { col } else { best });
    first as f32
}

fn model(seed: u64, n_outputs: usize) -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: 3, hidden: vec![32], n_outputs, activation: Activation::relu() };
    Model::new(seed, |params| Mlp::new(params, &sizes))
}

#[test]
fn classes_are_learned_in_each_precision() -> Result<(), Error> {
    let [train, valid, test] = split(rows(1500, largest), 7, [0.8, 0.1, 0.1]).expect("fractions");
    for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
        let mut model = model(7, 3);
        let task = Classification::of(3).label_smoothing(0.02).class_weights([1.0, 1.5, 1.0]);
        let report = Trainer::new(&cpu(2))
            .batch_rows(32)
            .max_epochs(12)
            .precision(precision)
            .learning_rate(1e-2)
            .early_stopping(EarlyStopping::on("valid_accuracy").patience(6))
            .fit(&mut model, &task, &train, &valid)?;
        assert_eq!(report.watched, "valid_accuracy");
        let scores = model.evaluate(&task, &test)?;
        assert!(scores.get("accuracy").is_some_and(|accuracy| accuracy > 0.9), "{precision}: {scores}");
    }
    Ok(())
}

#[test]
fn numbers_are_learned_by_each_loss() -> Result<(), Error> {
    let [train, valid, test] = split(rows(1500, |[x, y, z]| 2.0 * x - y * z), 7, [0.8, 0.1, 0.1]).expect("fractions");
    let losses = [Regression::mse(), Regression::l1(), Regression::huber(0.5), Regression::quantile(0.5)];
    for task in losses {
        let mut model = model(7, 1);
        Trainer::new(&cpu(2)).batch_rows(32).max_epochs(15).learning_rate(1e-2).fit(&mut model, &task, &train, &valid)?;
        let scores = model.evaluate(&task, &test)?;
        assert!(scores.get("r2").is_some_and(|r2| r2 > 0.95), "{task:?}: {scores}");
    }
    // The ninth decile of noise that is uniform in -1..1 is 0.8, whatever the columns are.
    let [train, valid] =
        split(rows(3000, |[x, y, z]| (x * 7919.0 + y * 104_729.0 + z * 1_299_709.0).sin()), 7, [0.9, 0.1]).expect("fractions");
    let mut model = model(7, 1);
    Trainer::new(&cpu(2)).batch_rows(100).max_epochs(6).learning_rate(3e-3).fit(
        &mut model,
        &Regression::quantile(0.9),
        &train,
        &valid,
    )?;
    let predictions = model.predict(&valid)?;
    let mean = predictions.iter().sum::<f32>() / predictions.len() as f32;
    // For a sine with a uniform phase it is sin(0.8 π / 2).
    assert!((mean - 0.951).abs() < 0.1, "the ninth decile is about 0.95, found {mean}");
    Ok(())
}

#[derive(Debug)]
struct Counts;

impl Task for Counts {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }
    fn n_outputs(&self) -> usize {
        1
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        rows.reduce(&outputs.poisson_nll_loss(&rows.labels.unsqueeze(1), LossReduction::None))
    }
    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        vec![Box::new(MeanAbsoluteError::default())]
    }
}

#[test]
fn a_custom_task_is_the_same_on_any_number_of_replicas() -> Result<(), Error> {
    let [train, valid] = split(rows(640, |[x, y, _]| (2.0 + x + y).round()), 7, [0.8, 0.2]).expect("fractions");
    let run = |zero, n_replicas| {
        let config = DataParallelConfig { zero, ..DataParallelConfig::default() };
        run_threads::<_, Error>(n_replicas, &config, |replicas| {
            let mut model = model(3, 1);
            let trainer = Trainer::new(&cpu(1)).batch_rows(64).max_epochs(2);
            let report = trainer.replicas(replicas).fit(&mut model, &Counts, &train, &valid)?;
            Ok((report.history, model.predict(&valid)?))
        })
    };
    let single = run(ZeroStage::Replicated, 1)?.remove(0);
    for zero in [ZeroStage::Replicated, ZeroStage::Parameters] {
        let both = run(zero, 2)?;
        assert_eq!(both[0], both[1], "the same bits on both");
        for (found, expected) in both[0].1.iter().zip(&single.1) {
            assert!((found - expected).abs() <= 1e-4, "{zero:?}: {found}, expected {expected}");
        }
        for (found, expected) in both[0].0.iter().zip(&single.0) {
            for ((name, found), (_, expected)) in found.values.iter().zip(&expected.values) {
                assert!((found - expected).abs() <= 1e-4, "{name}: {found}, expected {expected}");
            }
        }
    }
    Ok(())
}

#[test]
fn rows_with_weights_count_as_rows_that_are_repeated() -> Result<(), Error> {
    let (x, labels) = (vec![0.1, 0.7, 0.3, 0.9, 0.2, 0.5], vec![1.0, 3.0]);
    let weighted = Rows::new(x.clone(), labels, 3).and_then(|rows| rows.with_weights(vec![1.0, 2.0])).expect("rows");
    let repeated = Rows::new([&x[..], &x[3..]].concat(), vec![1.0, 3.0, 3.0], 3).expect("rows");
    for task in [Regression::mse(), Regression::l1()] {
        let loss = |rows: &Rows| {
            let mut model = model(1, 1);
            let scale = brisk_train::Standardisation::none(3);
            let mut trainer = Trainer::new(&cpu(1)).batch_rows(3).max_epochs(1).standardisation(scale);
            Ok::<_, Error>(trainer.fit(&mut model, &task, rows, &repeated)?.history[0].train_loss())
        };
        let (found, expected) = (loss(&weighted)?, loss(&repeated)?);
        assert!((found - expected).abs() <= 1e-6, "{task:?}: {found}, expected {expected}");
    }
    Ok(())
}

/// R² of labels that are all the same, and the area under the curve of one class.
#[test]
fn a_metric_that_does_not_exist_is_left_out() -> Result<(), Error> {
    let check = |task: &dyn Task, train: &Rows, name: &str, watched: &str| {
        let valid = rows(20, |_| 1.0);
        let watching = |metric: &str| {
            let mut model = model(1, 1);
            let early_stopping = EarlyStopping::on(format!("valid_{metric}"));
            let mut trainer = Trainer::new(&cpu(1)).batch_rows(16).max_epochs(2).early_stopping(early_stopping);
            trainer.fit(&mut model, task, train, &valid).map(|report| (model, report))
        };
        let (model, report) = watching(watched)?;
        assert_eq!(report.n_epochs, 2, "the run does not end");
        let warned =
            report.warnings.iter().filter(|warning| warning.to_string().contains(&format!("`valid_{name}` is left out")));
        assert_eq!(warned.count(), 1, "{:?}", report.warnings);
        assert!(report.history.iter().all(|epoch| epoch.get(&format!("valid_{name}")).is_none()));
        let scores = model.evaluate(task, &valid)?;
        assert_eq!((scores.get(name), &scores.undefined[0].0[..]), (None, name), "{scores}");
        let error = watching(name).expect_err("it is watched");
        assert!(
            matches!(error, Error::RowSet { set: "valid", .. } | Error::Metric(metrics::Error::ConstantLabel { .. })),
            "{error}"
        );
        Ok::<_, Error>(())
    };
    check(&Regression::mse(), &rows(40, |x| x[0]), "r2", "rmse")?;
    check(&Binary::new(), &rows(40, |x| f32::from(u8::from(x[0] > 0.0))), "auc", "loss")
}

#[test]
fn a_model_is_saved_loaded_and_trained_further() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    let [train, valid, test] = split(rows(900, largest), 7, [0.6, 0.2, 0.2]).expect("fractions");
    let (mut first, task) = (model(7, 3), Classification::of(3));
    let mut trainer = Trainer::new(&cpu(1)).batch_rows(32).max_epochs(3);
    trainer.fit(&mut first, &task, &train, &valid)?;
    first.save(&path)?;

    let sizes = MlpConfig { n_inputs: 3, hidden: vec![32], n_outputs: 3, activation: Activation::relu() };
    let mut again = Model::load(&path, |params| Mlp::new(params, &sizes))?;
    assert_eq!(again.predict(&test)?, first.predict(&test)?, "the same bits");
    let before = first.evaluate(&task, &valid)?.get("loss").expect("every evaluation has one");
    let report = trainer.fit(&mut again, &task, &train, &valid)?;
    let after = report.history[0].get("valid_loss").expect("every run has one");
    assert!(after < before, "it continues from where it was: {after} after {before}");

    let names: Vec<String> = Checkpoint::load(&path)?.tensors().map(|(name, ..)| name.to_owned()).collect();
    for name in ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "input.mean", "input.inv_std"] {
        assert!(names.iter().any(|found| found == name), "`{name}` is not in {names:?}");
    }
    let other = MlpConfig { hidden: vec![33], ..sizes };
    let error = Model::load(&path, |params| Mlp::new(params, &other)).expect_err("another model").to_string();
    assert!(error.contains("layers.0.weight"), "{error}");
    Ok(())
}

#[test]
fn what_does_not_suit_the_task_is_refused_by_name() {
    let fit = |task: &dyn Task, label: fn([f32; 3]) -> f32, n_outputs| {
        let rows = rows(40, label);
        let mut model = model(1, n_outputs);
        Trainer::new(&cpu(1)).max_epochs(1).fit(&mut model, task, &rows, &rows).expect_err("refused").to_string()
    };
    let error = fit(&Classification::of(2), largest, 2);
    assert!(error.contains(" is 2, expected the number of a class, 0 to 1; give the task more classes"), "{error}");
    let error = fit(&Classification::of(3), |x| largest(x) + 0.5, 3);
    assert!(error.contains("expected the number of a class, 0 to 2"), "{error}");
    let error = fit(&Regression::mse(), |x| if x[0] > 0.5 { f32::NAN } else { x[0] }, 1);
    assert!(error.contains(" is NaN, expected a finite number"), "{error}");
    let error = fit(&Binary::new(), largest, 1);
    assert!(error.contains(" is 2, expected 0 or 1"), "{error}");
    let error = fit(&Classification::of(3), largest, 5);
    assert!(error.contains("3 outputs for each row") && error.contains("[40, 5]"), "{error}");

    let rows = rows(40, largest);
    let watch = |metric: &str| {
        let mut trainer = Trainer::new(&cpu(1)).early_stopping(EarlyStopping::on(metric));
        trainer.fit(&mut model(1, 3), &Classification::of(3), &rows, &rows).expect_err("there is none").to_string()
    };
    let known = "expected one of valid_accuracy, valid_log_loss, train_loss, valid_loss";
    assert_eq!(watch("valid_auc"), format!("metric: found `valid_auc`, which the run does not have, {known}"));
    for near in ["valid_acuracy", "accuracy"] {
        let expected = format!("metric: found `{near}`, which the run does not have, {known}; did you mean `valid_accuracy`?");
        assert_eq!(watch(near), expected);
    }
}

#[test]
fn a_run_is_prepared_from_parts() -> Result<(), Error> {
    let rows = rows(200, largest);
    let mut builder = ParametersBuilder::new();
    let sizes = MlpConfig { n_inputs: 3, hidden: vec![8], n_outputs: 3, activation: Activation::relu() };
    let module = Mlp::new(&mut builder, &sizes);
    let params = builder.build(1);
    let adam = Adam::new(&params);
    let trainer = Trainer::new(&cpu(1)).batch_rows(50).max_epochs(2).schedule(Schedule::Constant { lr: 1e-2 });
    let training = trainer.prepare(Trainable::new(&module, &params, &adam), &Classification::of(3), &rows, &rows)?;
    assert!(training.memory()?.state() > 0 && training.warnings().is_empty());
    assert_eq!(training.fit(&mut Default::default())?.n_epochs, 2);
    Ok(())
}

#[test]
fn a_learning_rate_is_found_without_changing_the_model() -> Result<(), Error> {
    let rows = rows(1000, largest);
    for precision in [Precision::F32, Precision::F16] {
        let (model, task) = (model(7, 3), Classification::of(3));
        let before = model.predict(&rows)?;
        let found = Trainer::new(&cpu(1)).batch_rows(50).precision(precision).find_learning_rate(&model, &task, &rows)?;
        assert!(found.rates.len() > 60 && found.rates.len() <= 100, "{} steps", found.rates.len());
        assert!((found.rates[0] - 1e-7).abs() < 1e-12 && found.rates.is_sorted());
        let rate = found.suggestion.expect("the loss falls");
        assert!((1e-4..0.5).contains(&rate), "{precision}: {rate}");
        assert_eq!(model.predict(&rows)?, before);
    }
    Ok(())
}
