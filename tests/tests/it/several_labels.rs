//! Rows with several labels, through every feed and on replicas, and the tasks that take them.

use brisk_loader::{RowSource, Rows, split};
use brisk_nn::tensor::program::Device;
use brisk_nn::{Activation, Linear, Mlp, MlpConfig, Schedule, Sgd};
use brisk_table::{ColumnOptions, CsvOptions, LabelKind, Schema, Table, TableWriter, import};
use brisk_tensor::{CrossEntropyOptions, Tensor};
use brisk_train::{
    Binary, Classification, DataParallelConfig, EpochMetrics, Error, FeedChoice, FeedConfig, FeedElement, LabelledRows, Labels,
    Model, MultiLabel, Regression, Standardisation, Task, Trainer, ZeroStage, run_threads,
};

use crate::gpu::{cpu, gpu};
use crate::run::noise;

/// Three columns and three labels: whether the first column is positive, whether the other two have the same sign, and whether
/// the sum is above 0.5.
fn points(n: usize, first: usize) -> Rows {
    let row = |row| [0, 1, 2].map(|col| noise(first + row, col));
    let labels = |[x, y, z]: [f32; 3]| [x > 0.0, y * z > 0.0, x + y + z > 0.5].map(|is| f32::from(u8::from(is)));
    let (features, labels): (Vec<_>, Vec<_>) = (0..n).map(|i| (row(i), labels(row(i)))).unzip();
    Rows::with_label_columns(features.concat(), labels.concat(), 3, 3).expect("three labels a row")
}

/// The same rows with weights from 0 to 2.
fn weighted(rows: Rows) -> Rows {
    let weights: Vec<f32> = (0..rows.n_rows()).map(|row| (row % 5) as f32 * 0.5).collect();
    rows.with_weights(weights).expect("a weight a row")
}

fn model(n_outputs: usize) -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: 3, hidden: vec![16], n_outputs, activation: Activation::tanh() };
    Model::new(3, |params| Mlp::new(params, &sizes))
}

fn streamed(chunk_bytes: usize) -> FeedConfig {
    FeedConfig { choice: FeedChoice::Streamed, chunk_bytes, ..FeedConfig::default() }
}

/// The metrics of each epoch and the trained model's outputs.
type Outcome = (Vec<EpochMetrics>, Vec<f32>);

fn fit<S: RowSource<Feature: FeedElement>>(
    device: &Device,
    feed: &FeedConfig,
    task: &dyn Task,
    [train, valid]: [&S; 2],
) -> Result<Outcome, Error> {
    let mut model = model(task.n_outputs());
    let report =
        Trainer::new(device).batch_rows(50).max_epochs(3).learning_rate(1e-2).feed(feed).fit(&mut model, task, train, valid)?;
    Ok((report.history, model.predict(valid)?))
}

#[track_caller]
fn check_close(found: &Outcome, expected: &Outcome, tolerance: f64) {
    for (found, expected) in found.0.iter().zip(&expected.0) {
        for ((name, found), (_, expected)) in found.values.iter().zip(&expected.values) {
            assert!((found - expected).abs() <= tolerance, "{name}: {found}, expected {expected}");
        }
    }
    for (found, expected) in found.1.iter().zip(&expected.1) {
        assert!(f64::from((found - expected).abs()) <= tolerance, "output {found}, expected {expected}");
    }
}

#[test]
fn resident_and_streamed_rows_train_alike() -> Result<(), Error> {
    let tasks: [Box<dyn Task>; 2] =
        [Box::new(MultiLabel::of(3).pos_weight([2.0, 1.0, 0.5])), Box::new(Regression::huber(0.5).targets(3))];
    for task in &tasks {
        for (train, valid) in [(points(731, 0), points(300, 731)), (weighted(points(731, 0)), weighted(points(300, 731)))] {
            let resident = FeedConfig { choice: FeedChoice::Resident, ..FeedConfig::default() };
            let expected = fit(&cpu(2), &resident, &**task, [&train, &valid])?;
            for chunk_bytes in [0, 7_000, 1 << 30] {
                let found = fit(&cpu(2), &streamed(chunk_bytes), &**task, [&train, &valid])?;
                assert!(found == expected, "{task:?} in chunks of {chunk_bytes} bytes");
            }
            if let Some(gpu) = gpu() {
                for feed in [resident, streamed(5_000)] {
                    check_close(&fit(&gpu, &feed, &**task, [&train, &valid])?, &expected, 2e-3);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn labels_are_learned_from_a_table() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("points.safetensors");
    let rows = points(1500, 0);
    let mut writer = TableWriter::create(&path, Schema { n_labels: 3, ..Schema::shaped(&[3]) })?;
    writer.push(rows.features(), rows.labels())?;
    writer.finish()?;

    let table = Table::open(&path)?;
    let [train, valid, test] = split(&table, 7, [0.8, 0.1, 0.1])?;
    let (mut model, task) = (model(3), MultiLabel::of(3));
    let mut trainer =
        Trainer::new(&cpu(2)).batch_rows(32).max_epochs(15).learning_rate(2e-2).report(folder.path().join("report.html"));
    let report = trainer.fit(&mut model, &task, &train, &valid)?;
    assert_eq!(report.watched, "valid_auc");
    let scores = model.evaluate(&task, &test)?;
    let names: Vec<&str> = scores.values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["loss", "auc", "subset_accuracy", "f1_macro", "f1_micro", "log_loss"]);
    assert!(scores.get("auc") > Some(0.97) && scores.get("subset_accuracy") > Some(0.75), "{scores}");
    let (loss, log_loss) = (scores.get("loss").unwrap_or(f64::NAN), scores.get("log_loss").unwrap_or(f64::NAN));
    assert!((loss - log_loss).abs() <= 1e-6, "the mean over rows and labels: {scores}");
    let page = std::fs::read_to_string(folder.path().join("report.html"))?;
    assert!(page.contains("ROC curves"), "the report has a chart of all labels");
    Ok(())
}

#[test]
fn replicas_train_as_one_device_does() -> Result<(), Error> {
    let (train, valid) = (weighted(points(500, 0)), points(200, 500));
    let tasks: [&(dyn Task + Sync); 2] = [&MultiLabel::of(3), &Regression::mse().targets(3)];
    for task in tasks {
        let run = |zero, n| {
            let config = DataParallelConfig { zero, ..DataParallelConfig::default() };
            run_threads::<_, Error>(n, &config, |replicas| {
                let mut model = model(3);
                let trainer = Trainer::new(&cpu(1)).batch_rows(64).max_epochs(2).learning_rate(1e-2);
                let report = trainer.replicas(replicas).fit(&mut model, task, &train, &valid)?;
                Ok((report.history, model.predict(&valid)?))
            })
        };
        let single = run(ZeroStage::Replicated, 1)?.remove(0);
        for zero in [ZeroStage::Replicated, ZeroStage::Parameters] {
            let both = run(zero, 2)?;
            assert_eq!(both[0], both[1], "{task:?}: bit-identical on both");
            check_close(&both[0], &single, 1e-4);
        }
    }
    Ok(())
}

/// Two steps of gradient descent on one batch from parameters of 0, as in PyTorch 2.15: `losses` are those before each of three
/// steps, `weight` and `bias` the parameters after the third.
#[track_caller]
fn check_descent(task: &dyn Task, labels: &[f32], lr: f64, losses: [f64; 3], weight: &[f32], bias: &[f32]) {
    let n = task.n_labels();
    let rows = Rows::with_label_columns(vec![0.5, -1.0, 1.0, 2.0, -1.5, 0.25, 0.0, 0.75], labels.to_vec(), 2, n)
        .and_then(|rows| rows.with_weights(vec![1.0, 2.0, 0.5, 1.0]))
        .expect("four rows");
    let mut model = Model::new(1, |params| Linear::new(params, "line", 2, n, Activation::identity()));
    for id in model.params().ids_where(|_| true) {
        let zeros = vec![0.0; model.params().entry(id).range.len()];
        model.params_mut().set_initial(id, &zeros).expect("as many values");
    }
    let mut trainer = Trainer::new(&cpu(1))
        .batch_rows(4)
        .max_epochs(3)
        .schedule(Schedule::constant(lr))
        .optimizer(Sgd::new)
        .standardisation(Standardisation::none(2));
    let report = trainer.fit(&mut model, task, &rows, &rows).expect("a run");
    for (epoch, expected) in report.history.iter().zip(losses) {
        let found = epoch.train_loss();
        assert!((found - expected).abs() <= 1e-6, "loss before step {}: {found}, expected {expected}", epoch.epoch);
    }
    assert_eq!(report.best_epoch, 3, "the parameters of the last epoch are kept");
    for (id, expected) in model.params().ids_where(|_| true).into_iter().zip([weight, bias]) {
        let found = model.params().initial_of(id);
        assert_eq!(found.len(), expected.len(), "parameters");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-6, "parameter {found}, expected {expected}");
        }
    }
}

#[test]
fn losses_and_gradients_are_those_of_pytorch() {
    let labels = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0];
    check_descent(
        &MultiLabel::of(3).without_auc(),
        &labels,
        1.0,
        [std::f64::consts::LN_2, 0.6028153129964406, 0.5449435940690815],
        &[-0.1984648, -0.5038277, -0.32226404, -0.16783455, 0.32226404, 0.16783455],
        &[-0.10873619, -0.12828907, 0.12828907],
    );
    check_descent(
        &MultiLabel::of(3).without_auc().pos_weight([3.0, 1.0, 0.5]),
        &labels,
        1.0,
        [0.7701635339554946, 0.6637486463724389, 0.5927869165585635],
        &[-0.25330097, -0.66006478, -0.32226404, -0.16783455, 0.21128299, 0.05709409],
        &[0.17633298, -0.12828907, -0.00477966],
    );
    let targets = [1.0, -2.0, 0.5, 3.0, -1.0, 0.0, 2.0, 2.0];
    check_descent(
        &Regression::mse().targets(2),
        &targets,
        0.1,
        [3.5555555555555554, 2.1819419528034976, 1.4730926509401279],
        &[0.12096735, 0.10006791, 0.22832126, 0.78083393],
        &[0.19423623, 0.27231522],
    );
    check_descent(
        &Regression::l1().targets(2),
        &targets,
        0.1,
        [1.6111111111111112, 1.5189236111111113, 1.4264467592592593],
        &[0.10833333, 0.12083333, 0.06666667, 0.18888889],
        &[0.11666667, 0.05555556],
    );
    check_descent(
        &Regression::huber(0.5).targets(2),
        &targets,
        0.1,
        [0.6875, 0.6649432314439729, 0.6447332922293748],
        &[0.04921193, 0.0505072, 0.02516392, 0.09580601],
        &[0.0533786, 0.03322405],
    );
}

/// Two class numbers per row, which the loss receives as u32.
#[derive(Debug)]
struct TwoClasses;

impl Task for TwoClasses {
    fn labels(&self) -> Labels {
        Labels::Classes { n_classes: 2 }
    }
    fn n_labels(&self) -> usize {
        2
    }
    fn n_outputs(&self) -> usize {
        4
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let n = rows.labels.n_elements();
        let weights = rows.weights.unsqueeze(1).expand(rows.labels.shape()).reshape(&[n]);
        let options = CrossEntropyOptions { reduction: rows.reduction, ..Default::default() };
        outputs.reshape(&[n, 2]).cross_entropy(&rows.labels.reshape(&[n]), &weights, options)
    }
}

#[test]
fn rows_have_several_class_numbers() -> Result<(), Error> {
    let points = points(400, 0);
    let labels = points.labels().chunks(3).flat_map(|labels| [labels[0], 1.0 - labels[0]]).collect::<Vec<f32>>();
    let rows = Rows::with_label_columns(points.features().to_vec(), labels, 3, 2).expect("two labels a row");
    let (history, outputs) = fit(&cpu(2), &FeedConfig::default(), &TwoClasses, [&rows, &rows])?;
    assert!(history[2].train_loss() < 0.5 * history[0].train_loss(), "{history:?}");
    let n_right = outputs.chunks(4).zip(rows.labels().chunks(2)).filter(|(outputs, labels)| {
        (outputs[1] > outputs[0]) == (labels[0] > 0.0) && (outputs[3] > outputs[2]) == (labels[1] > 0.0)
    });
    assert!(n_right.count() > 340, "most rows are right in both labels");
    Ok(())
}

#[test]
fn labels_that_do_not_suit_the_task_are_refused() {
    let message = |task: &dyn Task, train: &Rows, valid: &Rows| {
        let mut trainer = Trainer::new(&cpu(1)).max_epochs(1);
        trainer.fit(&mut model(task.n_outputs()), task, train, valid).expect_err("refused").to_string()
    };
    let (three, one) = (points(60, 0), Rows::new(vec![0.5; 60], vec![1.0; 20], 3).expect("a label a row"));
    let expected = "train rows: 3 labels per row, expected 1; choose as many label columns, or a task for 3";
    assert_eq!(message(&Binary::new(), &three, &three), expected);
    assert_eq!(message(&Classification::of(2), &three, &three), expected);
    let expected = "valid rows: 1 label per row, expected 3; choose as many label columns, or a task for 1";
    assert_eq!(message(&MultiLabel::of(3), &three, &one), expected);
    let error = model(2).evaluate(&Regression::mse().targets(2), &three).expect_err("three labels").to_string();
    assert_eq!(error, "test rows: 3 labels per row, expected 2; choose as many label columns, or a task for 3");
    for result in [
        Trainer::new(&cpu(1)).find_learning_rate(&model(1), &Binary::new(), &three).map(drop),
        Trainer::new(&cpu(1)).find_batch_rows(&model(1), &Binary::new(), &three, 1 << 20).map(drop),
    ] {
        assert!(matches!(result, Err(Error::RowLayout { set: "train", what: "label", found: 3, expected: 1, .. })), "{result:?}");
    }

    let mut labels = three.labels().to_vec();
    labels[3 * 7 + 2] = 0.5;
    let half = Rows::with_label_columns(three.features().to_vec(), labels, 3, 3).expect("three labels a row");
    let error = message(&MultiLabel::of(3), &half, &three);
    assert!(error.starts_with("train rows: label 2 of row 7 is 0.5, expected 0 or 1; "), "{error}");
    // The row of the data, rather than that of the split.
    let [part] = split(&half, 7, [1.0]).expect("a fraction");
    let mut trainer = Trainer::new(&cpu(1)).max_epochs(1);
    let error = trainer.fit(&mut model(3), &MultiLabel::of(3), &part, &part).expect_err("a half").to_string();
    assert!(error.starts_with("train rows: label 2 of row 7 is 0.5, expected 0 or 1; "), "{error}");

    let labels = three.labels().iter().enumerate().map(|(i, &label)| if i % 3 == 1 { 0.0 } else { label }).collect();
    let absent = Rows::with_label_columns(three.features().to_vec(), labels, 3, 3).expect("three labels a row");
    let error = message(&MultiLabel::of(3), &three, &absent);
    assert!(error.contains("60 of 120 rows are held out for validation, all of class 0 of label 1"), "{error}");
    let task = MultiLabel::of(3).without_auc();
    let report = Trainer::new(&cpu(1)).max_epochs(1).fit(&mut model(3), &task, &three, &absent).expect("a run without AUC");
    assert_eq!(report.watched, "valid_log_loss");
}

/// Text with two columns and three labels, imported and learned.
#[test]
fn labels_of_several_columns_are_imported_and_learned() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, path) = (folder.path().join("rows.csv"), folder.path().join("rows.safetensors"));
    let mut text = "both,x,sum,y,any\n".to_owned();
    for row in 0..400 {
        let [x, y] = [0.7549, 0.5698].map(|step| (row as f32 * step).fract());
        let [is_x, is_y] = [x > 0.5, y > 0.5];
        text += &format!("{},{x},{},{y},{}\n", u8::from(is_x && is_y), x + y, u8::from(is_x || is_y));
    }
    std::fs::write(&source, text).expect("written");
    let import = |labels: &[&str], label_kind, drop: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        let columns = ColumnOptions { labels: names(labels), label_kind, drop: names(drop), ..ColumnOptions::default() };
        import(&source, &path, &CsvOptions { columns, ..CsvOptions::default() }).expect("imported");
        Table::open(&path).expect("a table")
    };
    let sizes = |n_outputs| MlpConfig { n_inputs: 2, hidden: vec![16], n_outputs, activation: Activation::tanh() };
    let trainer = || Trainer::new(&cpu(1)).batch_rows(32).learning_rate(1e-2).max_epochs(20);

    let table = import(&["any", "both"], LabelKind::Binary, &["sum"]);
    let [train, valid] = split(&table, 1, [0.8, 0.2]).expect("shares");
    let mut model = Model::new(3, |params| Mlp::new(params, &sizes(2)));
    let report = trainer().fit(&mut model, &MultiLabel::of(2), &train, &valid)?;
    assert!(report.best_value > 0.9, "{report:?}");

    let table = import(&["sum", "any", "both"], LabelKind::Number, &[]);
    let [train, valid] = split(&table, 1, [0.8, 0.2]).expect("shares");
    let mut model = Model::new(3, |params| Mlp::new(params, &sizes(3)));
    trainer().fit(&mut model, &Regression::mse().targets(3), &train, &valid)?;
    let r2 = model.evaluate(&Regression::mse().targets(3), &valid)?.get("r2").expect("it has it");
    assert!(r2 > 0.6, "{r2}");
    let error = trainer().fit(&mut model, &Regression::mse(), &train, &valid).expect_err("three labels").to_string();
    assert!(error.contains("train rows: 3 labels per row, expected 1"), "{error}");
    Ok(())
}
