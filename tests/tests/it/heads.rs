//! One model with several heads: losses, metrics and predictions of a class and a number.

use brisk_loader::{Order, RowSource, Rows};
use brisk_nn::{Activation, Linear, Mlp, MlpConfig, Schedule, Sgd};
use brisk_program::Device;
use brisk_tensor::{DType, Graph, Persistent, Reduction};
use brisk_train::{
    BatchTensors, Binary, Cell, Classification, DataParallelConfig, EarlyStopping, Error, FeedChoice, FeedConfig, Head, Heads,
    Model, MultiLabel, PartnerLabels, Predictor, Regression, Standardisation, Trainer, run_threads,
};

use crate::gpu::{cpu, gpu};
use crate::run::noise;

/// The largest of three columns, and a number of hundreds.
fn rows(n: usize, first: usize) -> Rows {
    let row = |row: usize| [0, 1, 2].map(|col| noise(first + row, col));
    let class = |x: [f32; 3]| (0..3).max_by(|&a, &b| x[a].total_cmp(&x[b])).unwrap_or(0) as f32;
    let labels = (0..n).flat_map(|i| [class(row(i)), 500.0 + 300.0 * (row(i)[0] - row(i)[2])]).collect();
    Rows::with_label_columns((0..n).flat_map(row).collect(), labels, 3, 2).expect("two labels per row")
}

fn task(rows: &Rows) -> Result<Heads, Error> {
    let scale = Standardisation::of_labels("train", rows, 1..2)?;
    let heads = [Head::new("kind", Classification::of(3)), Head::new("size", Regression::mse()).standardised(&scale).weight(0.3)];
    Ok(Heads::of(heads).watch("size_rmse"))
}

fn model() -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: 3, hidden: vec![32], n_outputs: 4, activation: Activation::tanh() };
    Model::new(7, |params| Mlp::new(params, &sizes))
}

#[test]
fn a_class_and_a_number_are_learned_together() -> Result<(), Error> {
    let (train, valid) = (rows(731, 0), rows(300, 731));
    let task = task(&train)?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = folder.path().join("report.html");
    let fit = |device: &Device, choice| {
        let mut model = model();
        let feed = FeedConfig { choice, chunk_bytes: 5_000, ..FeedConfig::default() };
        let mut trainer = Trainer::new(device).batch_rows(50).max_epochs(15).learning_rate(1e-2).feed(&feed).report(&page);
        let report = trainer.fit(&mut model, &task, &train, &valid)?;
        Ok::<_, Error>((report, model))
    };
    let (report, model) = fit(&cpu(2), FeedChoice::Resident)?;
    assert_eq!(report.watched, "valid_size_rmse");
    let text = std::fs::read_to_string(&page).expect("a report");
    assert!(text.contains("Loss of each batch") && !text.contains("Residuals"), "curves, but no charts of standardised outputs");
    let scores = model.evaluate(&task, &valid)?;
    let names: Vec<&str> = scores.values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["loss", "kind_accuracy", "kind_log_loss", "size_rmse", "size_mae", "size_r2"]);
    assert!(scores.get("kind_accuracy") > Some(0.9) && scores.get("size_r2") > Some(0.95), "{scores}");
    assert!((scores.get("size_rmse").unwrap_or(f64::NAN) - report.best_value).abs() < 1e-3, "{scores}: {}", report.best_value);

    // Outputs of the predictor, in the units of the labels.
    let outputs = Predictor::new(&cpu(1), &model, 3)?.predict(valid.features(), &[])?;
    let (classes, sizes) = (task.outputs_of("kind", &outputs)?, task.outputs_of("size", &outputs)?);
    assert_eq!((classes.len(), sizes.len()), (3 * 300, 300));
    let squares = sizes.iter().zip(valid.labels().chunks(2)).map(|(size, labels)| f64::from(size - labels[1]).powi(2));
    let rmse = (squares.sum::<f64>() / 300.0).sqrt();
    assert!((scores.get("size_rmse").unwrap_or(f64::NAN) - rmse).abs() < 1e-2, "{scores}: {rmse}");

    let (streamed, _) = fit(&cpu(2), FeedChoice::Streamed)?;
    assert_eq!(streamed.history, report.history);
    if let Some(gpu) = gpu() {
        let (on_gpu, _) = fit(&gpu, FeedChoice::Resident)?;
        assert!((on_gpu.best_value - report.best_value).abs() < 2.0, "{} and {}", on_gpu.best_value, report.best_value);
    }
    Ok(())
}

#[test]
fn steps_are_those_of_pytorch() -> Result<(), Error> {
    let (features, labels) =
        (vec![0.5, -1.0, 1.0, 2.0, -1.5, 0.25, 0.0, 0.75], vec![2.0, 10.0, 0.0, 30.0, 1.0, -20.0, 2.0, 40.0]);
    let rows = Rows::with_label_columns(features, labels, 2, 2).and_then(|rows| rows.with_weights(vec![1.0, 2.0, 0.5, 1.0]));
    let rows = rows.expect("two labels per row");
    let mut model = Model::new(1, |params| Linear::new(params, "line", 2, 4, Activation::identity()));
    for id in model.params().ids_where(|_| true) {
        let zeros = vec![0.0; model.params().entry(id).range.len()];
        model.params_mut().set_initial(id, &zeros).expect("as many values");
    }
    // Batches of three rows: the second has one, and padding.
    let feed = FeedConfig { order: Some(Order::Sequential), ..FeedConfig::default() };
    let trainer = Trainer::new(&cpu(1)).batch_rows(3).max_epochs(2).schedule(Schedule::constant(0.1)).optimizer(Sgd::new);
    let task = task(&rows)?;
    trainer.feed(&feed).standardisation(Standardisation::none(2)).fit(&mut model, &task, &rows, &rows)?;
    let values: Vec<f32> = model.params().ids_where(|_| true).into_iter().flat_map(|id| model.params().initial_of(id)).collect();
    let expected = [
        0.078060, 0.108176, -0.072708, -0.091805, -0.005352, -0.016371, 0.070779, 0.159965, -0.027738, -0.095899, 0.123638,
        0.120344,
    ];
    assert!(values.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 2e-6), "{values:?}");
    let scores = model.evaluate(&task, &rows)?;
    for (name, expected) in [("loss", 1.231_409_9), ("kind_accuracy", 0.75), ("size_rmse", 20.786_333)] {
        let found = scores.get(name).unwrap_or(f64::NAN);
        assert!((found - expected).abs() < 2e-5, "{name}: {found}, expected {expected}");
    }
    Ok(())
}

/// The loss of three rows, of which two are mixed with others and one has weight 0: `Σ w ((1 - s) l + s l')`, as in PyTorch.
#[test]
fn mixed_rows_have_the_loss_of_both() -> Result<(), Box<dyn std::error::Error>> {
    let task = Heads::of([Head::new("kind", Classification::of(3)), Head::new("size", Regression::l1()).weight(0.5)]);
    for (reduction, expected) in [(Reduction::Mean, 1.732_274_7), (Reduction::Sum, 5.196_824)] {
        for device in [Some(cpu(1)), gpu()].into_iter().flatten() {
            let graph = Graph::inference("mixed");
            let constant = |name, values: &[f32], shape: &[usize]| graph.constant(name, values, shape);
            let weights = constant("weights", &[1.0, 2.0, 0.0], &[3]);
            let partners = PartnerLabels {
                labels: constant("others", &[1.0, 0.0, 1.0, -1.0, 0.0, 5.0], &[3, 2]),
                shares: constant("shares", &[0.25, 0.5, 0.0], &[3]),
            };
            let batch = BatchTensors {
                x: constant("x", &[0.0; 3], &[3, 1]),
                categories: None,
                labels: constant("labels", &[2.0, 1.0, 0.0, 3.0, 1.0, -2.0], &[3, 2]),
                counts: weights.clone(),
                weights,
                partners: Some(partners),
            };
            let outputs = constant("outputs", &[0.5, -1.0, 0.25, 1.0, 1.0, 2.0, 0.0, -1.0, 0.3, 0.1, -0.7, 2.0], &[3, 4]);
            let (state, loss) = (Graph::state_buffer(), Persistent::new("loss", DType::F32, 1));
            graph.store(&batch.loss(&task, &outputs, reduction), &state, &loss);
            graph.compile(&device)?.run(1)?;
            let found = device.read::<f32>(&loss)?[0];
            assert!((found - expected).abs() < 1e-5, "{reduction:?}: {found}, expected {expected}");
        }
    }
    Ok(())
}

#[test]
fn replicas_train_as_one_device_does() -> Result<(), Error> {
    let (train, valid) = (rows(300, 0), rows(100, 300));
    let run = |n| {
        run_threads::<_, Error>(n, &DataParallelConfig::default(), |replicas| {
            let mut model = model();
            let trainer = Trainer::new(&cpu(1)).batch_rows(64).max_epochs(2).learning_rate(1e-2);
            let report = trainer.replicas(replicas).fit(&mut model, &task(&train)?, &train, &valid)?;
            Ok(report.history.last().expect("two epochs").values.clone())
        })
    };
    let (single, both) = (run(1)?.remove(0), run(2)?);
    assert_eq!(both[0], both[1], "bit-identical on both");
    for ((name, found), (_, expected)) in both[0].iter().zip(&single) {
        assert!((found - expected).abs() <= 1e-4 * expected.abs().max(1.0), "{name}: {found}, expected {expected}");
    }
    Ok(())
}

#[test]
fn faults_are_told_before_the_first_step() -> Result<(), Error> {
    let rows = rows(60, 0);
    #[track_caller]
    fn check(rows: &Rows, task: &Heads, expected: &[&str]) {
        let error = Trainer::new(&cpu(1)).max_epochs(1).fit(&mut model(), task, rows, rows).expect_err("refused").to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
    let kind = |n| Head::new("kind", Classification::of(n));
    let size = || Head::new("size", Regression::mse());
    check(&rows, &Heads::of([kind(3)]), &["train rows: 2 labels per row, expected 1"]);
    check(&rows, &Heads::of([kind(2), size()]), &["label 0 of row", "is 2, expected the number of a class, 0 to 1"]);
    check(&rows, &Heads::of([size(), kind(3)]), &["label 1 of row 0 is", "expected the number of a class, 0 to 2"]);
    check(&rows, &Heads::of([kind(4), size()]), &["the task takes 5 outputs for each row"]);
    check(&rows, &Heads::of([kind(3), size()]).watch("kind_acuracy"), &["did you mean `valid_kind_accuracy`?"]);
    check(&rows, &Heads::of([kind(3), Head::new("kind", Regression::mse())]), &["two heads of the name `kind`"]);
    for weight in [f32::NAN, -1.0] {
        check(&rows, &Heads::of([kind(3), size().weight(weight)]), &["of the head `size`", "not negative"]);
    }
    check(&rows, &Heads::of([]), &["no heads"]);
    let smoothed = Head::new("kind", Classification::of(3).label_smoothing(f32::NAN));
    check(&rows, &Heads::of([smoothed, size()]), &["label_smoothing", "NaN"]);
    let scale = Standardisation::none(2);
    check(&rows, &Heads::of([kind(3), size().standardised(&scale)]), &["2 columns for the 1 labels of the head `size`"]);
    check(&rows, &Heads::of([kind(3).standardised(&scale), size()]), &["standardised classes in the head `kind`"]);

    let mut labels = rows.labels().to_vec();
    labels[2 * 7 + 1] = f32::NAN;
    let missing = Rows::with_label_columns(rows.features().to_vec(), labels, 3, 2).expect("two labels per row");
    let error = Standardisation::of_labels("train", &missing, 1..2).expect_err("a label is missing");
    assert!(matches!(error, Error::Value { row: 7, cell: Cell::Label(Some(1)), .. }), "{error}");
    let error = Standardisation::of_labels("train", &rows, 1..3).expect_err("there are two labels");
    assert!(matches!(error, Error::RowLayout { what: "label", found: 2, expected: 3, .. }), "{error}");
    let error = task(&rows)?.outputs_of("sise", &[0.0; 8]).expect_err("no such head").to_string();
    assert!(error.contains("`sise`"), "{error}");
    Ok(())
}

/// Heads of several columns, one within another, and a head that takes half the precision.
#[test]
fn heads_take_several_columns() -> Result<(), Error> {
    let points = rows(400, 0);
    let labels =
        points.features().chunks(3).zip(points.labels().chunks(2)).flat_map(|(x, labels)| {
            [f32::from(u8::from(x[0] > 0.0)), f32::from(u8::from(x[1] > 0.0)), x[0] + x[1], x[2], labels[0]]
        });
    let rows =
        Rows::with_label_columns(points.features().to_vec(), labels.collect::<Vec<_>>(), 3, 5).expect("five labels per row");
    let signs = Heads::of([Head::new("signs", MultiLabel::of(2)), Head::new("sums", Regression::l1().targets(2))]);
    let task = Heads::of([Head::new("both", signs), Head::new("kind", Classification::of(3))]);
    let sizes = MlpConfig { n_inputs: 3, hidden: vec![32], n_outputs: 7, activation: Activation::tanh() };
    for precision in [brisk_tensor::Precision::F32, brisk_tensor::Precision::F16] {
        let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
        let mut trainer = Trainer::new(&cpu(2)).batch_rows(40).max_epochs(20).learning_rate(1e-2).precision(precision);
        trainer = trainer.early_stopping(EarlyStopping::on("valid_both_signs_f1_macro"));
        trainer.fit(&mut model, &task, &rows, &rows)?;
        let scores = model.evaluate(&task, &rows)?;
        let is_learned = scores.get("both_signs_auc") > Some(0.98) && scores.get("both_sums_mae") < Some(0.2);
        assert!(is_learned && scores.get("kind_accuracy") > Some(0.85), "{precision}: {scores}");
    }
    Ok(())
}

/// An area under a curve that does not exist for one head is not an area of another.
#[test]
fn a_metric_of_a_head_names_it() {
    let labels: Vec<f32> = (0..40).flat_map(|row| [0.0, row as f32]).collect();
    let rows = Rows::with_label_columns(vec![0.5; 40], labels, 1, 2).expect("two labels per row");
    let task = Heads::of([Head::new("side", Binary::new()), Head::new("size", Regression::mse())]);
    let model = Model::new(7, |params| Linear::new(params, "line", 1, 2, Activation::identity()));
    let scores = model.evaluate(&task, &rows).expect("an evaluation without it");
    let (name, reason) = &scores.undefined[0];
    assert_eq!((name.as_str(), scores.undefined.len()), ("side_auc", 1));
    assert!(reason.contains("side_auc") && reason.contains("all 40 labels are 0"), "{reason}");
    assert!(scores.get("size_rmse").is_some() && rows.n_labels() == 2, "{scores}");
}
