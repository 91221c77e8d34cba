//! `Trainer::fit` and `Trainer::resume` of a `Model`: the results in the model, in the folder of the run, and in the report.

use brisk_loader::Rows;
use brisk_nn::{Activation, BatchNorm, BatchNormConfig, Linear, Mlp, MlpConfig, Sequential};
use brisk_table::{Schema, TableWriter};
use brisk_train::{
    BatchStatistics, Callback, Checkpoint, Classification, DataParallelConfig, Error, Model, Precision, Regression,
    ResumeMismatch, RunFolder, RunView, Trainer, Warning, run_threads,
};

use crate::gpu::cpu;

/// `y = 2 x` on a line.
fn rows(n: usize) -> Rows {
    let x: Vec<f32> = (0..n).map(|row| 2.0 * row as f32 / n as f32 - 1.0).collect();
    let labels = x.iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    Rows::new(x, labels, 1).expect("a label for each row")
}

fn sizes() -> MlpConfig {
    MlpConfig { n_inputs: 1, hidden: vec![8], n_outputs: 1, activation: Activation::tanh() }
}

fn model() -> Model<Mlp> {
    Model::new(7, |params| Mlp::new(params, &sizes()))
}

#[test]
fn a_resumed_model_is_that_of_a_run_without_interruption() -> Result<(), Error> {
    let (dir, rows, task) = (tempfile::tempdir().expect("a temporary folder"), rows(64), Regression::mse());
    let folder = RunFolder::create_at(&dir.path().join("run"))?;
    let trainer = |epochs| Trainer::new(&cpu(1)).batch_rows(16).learning_rate(1e-2).max_epochs(epochs);

    let mut whole = model();
    let expected = trainer(6).fit(&mut whole, &task, &rows, &rows)?;
    trainer(2).folder(&folder).fit(&mut model(), &task, &rows, &rows)?;
    assert_eq!(RunFolder::open(folder.path())?.path(), folder.path(), "the folder is known as that of a run");

    let mut resumed = model();
    let checkpoint = Checkpoint::load(folder.last())?;
    let report = trainer(6).folder(&folder).resume(&mut resumed, &checkpoint, &task, &rows, &rows)?;
    assert_eq!((report.n_epochs, report.best_value), (6, expected.best_value));
    assert_eq!(resumed.predict(&rows)?, whole.predict(&rows)?);

    let other = trainer(6).batch_rows(32).resume(&mut model(), &checkpoint, &task, &rows, &rows).expect_err("another batch size");
    assert!(matches!(other, Error::ResumeMismatch { .. }), "{other}");
    let found = other.to_string();
    for part in [
        "batch_rows: 16 in the checkpoint, 32 here",
        "batches per epoch: 4 in the checkpoint, 2 here",
        "`Trainer::resume_anyway`",
    ] {
        assert!(found.contains(part), "{found}");
    }
    let mut anyway = trainer(6).batch_rows(32).resume_anyway(&[ResumeMismatch::Settings]);
    assert_eq!(anyway.resume(&mut model(), &checkpoint, &task, &rows, &rows)?.n_epochs, 6, "it was allowed");
    Ok(())
}

#[test]
fn a_model_predicts_in_the_precision_of_its_training_after_it_was_saved() -> Result<(), Error> {
    let (dir, rows, task) = (tempfile::tempdir().expect("a temporary folder"), rows(64), Regression::mse());
    let path = dir.path().join("model.safetensors");
    for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
        let mut trained = model();
        Trainer::new(&cpu(1)).batch_rows(16).max_epochs(2).precision(precision).fit(&mut trained, &task, &rows, &rows)?;
        trained.save(&path)?;
        let loaded = Model::load(&path, |params| Mlp::new(params, &sizes()))?.on(&cpu(1));
        assert_eq!(loaded.predict(&rows)?, trained.predict(&rows)?, "{precision}");
    }
    let mut checkpoint = Checkpoint::load(&path)?;
    checkpoint.insert_metadata("precision", "f8");
    checkpoint.save(&path)?;
    let error = Model::load(&path, |params| Mlp::new(params, &sizes())).expect_err("no such precision").to_string();
    assert!(error.contains("precision") && error.contains("f32, f16 or bf16"), "{error}");
    Ok(())
}

/// Batch normalisation by parts of a batch is allowed, with a warning.
#[test]
fn statistics_of_each_replica_are_warned_of() -> Result<(), Error> {
    let rows = rows(64);
    for (batch_norm, n_warnings) in [(BatchStatistics::OfReplica, 1), (BatchStatistics::OfAll, 0)] {
        let config = DataParallelConfig { batch_norm, ..DataParallelConfig::default() };
        let reports = run_threads::<_, Error>(2, &config, |replicas| {
            let mut model = Model::new(7, |params| {
                let norm = BatchNorm::new(params, "norm", &BatchNormConfig::new(1));
                Sequential(vec![Box::new(norm), Box::new(Linear::new(params, "head", 1, 1, Activation::identity()))])
            });
            Trainer::new(&cpu(1)).batch_rows(16).max_epochs(1).replicas(replicas).fit(
                &mut model,
                &Regression::mse(),
                &rows,
                &rows,
            )
        })?;
        let is_of_statistics = |warning: &&Warning| matches!(warning, Warning::StatisticsOfReplica { n_replicas: 2 });
        assert_eq!(reports[0].warnings.iter().filter(is_of_statistics).count(), n_warnings, "{batch_norm:?}");
    }
    Ok(())
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_before_the_first_step() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut steps = 0;
    struct Count<'c>(&'c mut usize);
    impl Callback for Count<'_> {
        fn on_epoch_start(&mut self, _: &RunView<'_>) -> Result<(), Error> {
            *self.0 += 1;
            Ok(())
        }
    }
    let mut trainer = Trainer::new(&cpu(1)).max_epochs(1).report(dir.path()).callback(Count(&mut steps));
    let error = trainer.fit(&mut model(), &Regression::mse(), &rows(20), &rows(20)).expect_err("a folder is no file");
    let expected = format!("{}: names a folder, expected a file; add the name of a file in it", dir.path().display());
    assert_eq!(error.to_string(), expected);
    drop(trainer);
    assert_eq!(steps, 0, "nothing was trained");
    let error = model().save(dir.path().join("none").join("model.safetensors")).expect_err("no folder").to_string();
    assert!(error.contains("there is no folder") && error.ends_with("create it first, or write elsewhere"), "{error}");
}

#[test]
fn a_table_is_no_model() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("rows.safetensors");
    let mut writer = TableWriter::create(&path, Schema::named(["x"])).expect("a new file");
    writer.push(&[1.0_f32], &[2.0_f32]).expect("a row");
    writer.finish().expect("written");
    let sizes = MlpConfig { n_inputs: 1, hidden: vec![8], n_outputs: 1, activation: Activation::tanh() };
    let error = Model::load(&path, |params| Mlp::new(params, &sizes)).expect_err("rows").to_string();
    assert!(error.contains("found a table of rows; give the path of a model"), "{error}");
}

#[test]
fn warnings_about_settings_are_in_the_report() -> Result<(), Error> {
    let rows = rows(20);
    let mut trainer = Trainer::new(&cpu(1)).batch_rows(100).max_epochs(1);
    let report = trainer.fit(&mut model(), &Regression::mse(), &rows, &rows)?;
    assert_eq!(report.warnings, [Warning::BatchBeyondRows { batch_rows: 100, n_rows: 20 }]);
    Ok(())
}

/// The report of a resumed run has the warnings from before.
#[test]
fn warnings_from_before_a_resume_are_in_the_report() -> Result<(), Error> {
    let (dir, x) = (tempfile::tempdir().expect("a temporary folder"), [0.25, 0.5, 0.75, 1.0]);
    let rows = Rows::new(x.to_vec(), x.map(|x| 1e8 * x).to_vec(), 1).expect("a label for each row");
    let (folder, page) = (RunFolder::create_at(&dir.path().join("run"))?, dir.path().join("report.html"));
    let trainer = |epochs| Trainer::new(&cpu(1)).batch_rows(8).max_epochs(epochs).folder(&folder).report(&page);
    let first = trainer(1).fit(&mut model(), &Regression::mse(), &rows, &rows)?.warnings;
    let [Warning::BatchBeyondRows { .. }, Warning::LargeLoss { .. }] = first[..] else { panic!("{first:?}") };
    let last = Checkpoint::load(folder.last())?;
    let second = trainer(2).resume(&mut model(), &last, &Regression::mse(), &rows, &rows)?.warnings;
    assert_eq!(second, &first[..1], "only the first loss of the run is large");
    let html = std::fs::read_to_string(&page).expect("the report");
    for warning in &first {
        assert_eq!(html.matches(&warning.to_string()).count(), 1, "{warning}");
    }
    Ok(())
}

/// Weights of validation rows change nothing, and this is said.
#[test]
fn weights_of_validation_rows_are_warned_of() -> Result<(), Error> {
    let (train, valid) = (rows(20), rows(10));
    let weighted = valid.clone().with_weights((0..10).map(|row| row as f32).collect::<Vec<_>>()).expect("a weight a row");
    let fit =
        |valid: &Rows| Trainer::new(&cpu(1)).batch_rows(10).max_epochs(1).fit(&mut model(), &Regression::mse(), &train, valid);
    let (plain, weighted) = (fit(&valid)?, fit(&weighted)?);
    assert_eq!((plain.warnings, weighted.warnings), (vec![], vec![Warning::UnusedWeights { n_rows: 10 }]));
    assert_eq!(plain.best_value, weighted.best_value);
    Ok(())
}

#[test]
fn settings_with_which_nothing_is_trained_are_refused() {
    let rows = rows(20);
    let check = |trainer: Trainer<'_>, expected: &str| {
        let mut trainer = trainer;
        let error = trainer.fit(&mut model(), &Regression::mse(), &rows, &rows).expect_err("it trains nothing");
        assert_eq!(error.to_string(), expected);
    };
    let trainer = || Trainer::new(&cpu(1));
    check(trainer().batch_rows(0), "batch_rows: found 0, expected at least one row");
    check(trainer().max_epochs(0), "max_epochs: found 0, expected at least one epoch");
    check(trainer().accumulate(0), "accumulate: found 0, expected at least one batch per step, and fewer than 2^32");
}

#[test]
fn labels_that_are_not_classes_name_regression() {
    let rows = Rows::new(vec![0.5; 4], vec![0.0, 1.0, 1.5, 0.0], 1).expect("a label for each row");
    let sizes = MlpConfig { n_inputs: 1, hidden: vec![4], n_outputs: 2, activation: Activation::tanh() };
    let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
    let error = Trainer::new(&cpu(1)).fit(&mut model, &Classification::of(2), &rows, &rows).expect_err("1.5 is no class");
    let error = error.to_string();
    assert!(error.contains("the label of row 2 is 1.5") && error.contains("use `Regression`"), "{error}");
}
