//! Tasks that see the input: an autoencoder of rows without labels; and losses that a task must not return.

use brisk_loader::{Order, Rows, split};
use brisk_nn::{Activation, Linear, Mlp, MlpConfig, Schedule, Sgd};
use brisk_program::Device;
use brisk_tensor::{LossReduction, Tensor};
use brisk_train::{
    Binary, Classification, DataParallelConfig, Error, FeedChoice, FeedConfig, LabelledRows, Labels, Model, Predictor,
    Regression, Standardisation, Task, Trainer, run_threads,
};

use crate::gpu::{cpu, gpu};
use crate::run::noise;

/// The model returns its input.
#[derive(Debug)]
struct Reconstruction(usize);

impl Task for Reconstruction {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }
    fn n_labels(&self) -> usize {
        0
    }
    fn n_outputs(&self) -> usize {
        self.0
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let difference = outputs - &rows.x;
        rows.reduce(&(&difference * &difference))
    }
}

/// Four columns that depend on two numbers.
fn rows(n: usize) -> Rows {
    let row = |row: usize| {
        let [a, b] = [0, 1].map(|col| noise(row, col));
        [a, b, 10.0 * a + b, 5.0 - 3.0 * b]
    };
    Rows::without_labels((0..n).flat_map(row).collect(), 4).expect("whole rows")
}

fn autoencoder() -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: 4, hidden: vec![2], n_outputs: 4, activation: Activation::identity() };
    Model::new(3, |params| Mlp::new(params, &sizes))
}

#[test]
fn an_autoencoder_learns_rows_without_labels() -> Result<(), Error> {
    let [train, valid] = split(rows(731), 7, [0.8, 0.2]).expect("fractions");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fit = |device: &Device, choice| {
        let mut model = autoencoder();
        let feed = FeedConfig { choice, chunk_bytes: 3_000, ..FeedConfig::default() };
        let trainer = Trainer::new(device).batch_rows(50).max_epochs(30).schedule(Schedule::constant(0.02)).feed(&feed);
        let mut trainer = trainer.report(folder.path().join("report.html"));
        let report = trainer.fit(&mut model, &Reconstruction(4), &train, &valid)?;
        Ok::<_, Error>((report, model))
    };
    let (report, model) = fit(&cpu(2), FeedChoice::Resident)?;
    assert_eq!((report.watched.as_str(), report.best_value < 0.01), ("valid_loss", true), "{}", report.best_value);
    let scores = model.evaluate(&Reconstruction(4), &valid)?;
    assert!((scores.get("loss").unwrap_or(f64::NAN) - report.best_value).abs() < 1e-6, "{scores}");
    // The target is the standardised input, so that is what the model returns.
    let (outputs, scale) = (model.predict(&valid)?, model.standardisation().expect("a trained model has one"));
    let inputs = scale.rows("valid", &valid, 0..10)?;
    assert!(outputs.iter().zip(&inputs).all(|(output, input)| (output - input).abs() < 0.5), "{outputs:?}");
    assert_eq!(Predictor::new(&cpu(1), &model, 4)?.predict(&[0.5; 8], &[])?.len(), 8);

    assert_eq!(fit(&cpu(2), FeedChoice::Streamed)?.0.history, report.history);
    if let Some(gpu) = gpu() {
        let found = fit(&gpu, FeedChoice::Streamed)?.0.best_value;
        assert!((found - report.best_value).abs() < 1e-3, "{found}, expected {}", report.best_value);
    }
    // The learning rate finder and the batch finder take such rows, too.
    let trainer = Trainer::new(&cpu(1)).batch_rows(50);
    assert!(trainer.find_learning_rate(&autoencoder(), &Reconstruction(4), &train)?.suggestion.is_some());
    assert!(trainer.find_batch_rows(&autoencoder(), &Reconstruction(4), &train, 1 << 20)? > 1);
    Ok(())
}

#[test]
fn replicas_reconstruct_as_one_device_does() -> Result<(), Error> {
    let (train, valid) = (rows(300), rows(50));
    let run = |n| {
        run_threads::<_, Error>(n, &DataParallelConfig::default(), |replicas| {
            let mut model = autoencoder();
            let mut trainer = Trainer::new(&cpu(1)).batch_rows(64).max_epochs(2).replicas(replicas);
            trainer.fit(&mut model, &Reconstruction(4), &train, &valid)?;
            model.predict(&valid)
        })
    };
    let (single, both) = (run(1)?.remove(0), run(2)?);
    assert_eq!(both[0], both[1], "bit-identical on both");
    assert!(both[0].iter().zip(&single).all(|(found, expected)| (found - expected).abs() < 1e-4), "{both:?}");
    Ok(())
}

/// Two epochs of a batch of three rows and one of two with padding, as in PyTorch; labels of the rows are ignored.
#[test]
fn steps_are_those_of_pytorch() -> Result<(), Error> {
    let features = vec![0.5, -1.0, 1.0, 2.0, -1.5, 0.25, 0.0, 0.75, 2.0, -0.5];
    let unlabelled = Rows::without_labels(features.clone(), 2).expect("five rows");
    let labelled = Rows::new(features, vec![f32::NAN; 5], 2).expect("five rows");
    for rows in [&unlabelled, &labelled] {
        let mut model = Model::new(1, |params| Linear::new(params, "line", 2, 2, Activation::identity()));
        let ids = model.params().ids_where(|_| true);
        for (&id, values) in ids.iter().zip([&[0.5, 0.25, -0.25, 0.5][..], &[0.0, 0.0]]) {
            model.params_mut().set_initial(id, values).expect("as many values");
        }
        let feed = FeedConfig { order: Some(Order::Sequential), ..FeedConfig::default() };
        let trainer = Trainer::new(&cpu(1)).batch_rows(3).max_epochs(2).schedule(Schedule::constant(0.1)).optimizer(Sgd::new);
        trainer.feed(&feed).standardisation(Standardisation::none(2)).fit(&mut model, &Reconstruction(2), rows, rows)?;
        let found: Vec<f32> = ids.iter().flat_map(|&id| model.params().initial_of(id)).collect();
        let expected = [0.754443, 0.150655, -0.140074, 0.677698, 0.048677, 0.069526];
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 2e-6), "{found:?}");
        let loss = model.evaluate(&Reconstruction(2), rows)?.get("loss").unwrap_or(f64::NAN);
        assert!((loss - 0.124_908_66).abs() < 1e-6, "{loss}");
    }
    Ok(())
}

#[test]
fn a_task_that_needs_labels_says_that_there_are_none() {
    let rows = rows(60);
    for task in [&Binary::new() as &dyn Task, &Classification::of(2), &Regression::mse()] {
        let expected = "train rows: 0 labels per row, expected 1; give the rows 1 label, or train a task that takes none";
        let error = Trainer::new(&cpu(1)).fit(&mut autoencoder(), task, &rows, &rows).expect_err("no labels").to_string();
        assert_eq!(error, expected);
        let error = autoencoder().evaluate(task, &rows).expect_err("no labels");
        assert!(matches!(error, Error::RowLayout { set: "test", what: "label", found: 0, expected: 1, .. }), "{error}");
    }
}

/// Takes its loss from a function.
#[derive(Debug)]
struct Own(fn(&Tensor, &LabelledRows) -> Tensor);

impl Task for Own {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }
    fn n_outputs(&self) -> usize {
        1
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        (self.0)(outputs, rows)
    }
}

#[test]
fn a_loss_that_cannot_be_trained_on_is_refused() {
    #[track_caller]
    fn check(loss: fn(&Tensor, &LabelledRows) -> Tensor, expected: &[&str]) {
        let rows = Rows::new((0..50).map(|x| x as f32).collect::<Vec<_>>(), vec![0.5; 50], 1).expect("rows");
        let mut model = Model::new(3, |params| Linear::new(params, "line", 1, 1, Activation::identity()));
        let mut trainer = Trainer::new(&cpu(1)).batch_rows(20).max_epochs(1);
        let error = trainer.fit(&mut model, &Own(loss), &rows, &rows).expect_err("refused").to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
        let error = model.evaluate(&Own(loss), &rows).expect_err("refused").to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
    fn losses(outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        outputs.squeeze(1).l1_loss(&rows.labels, LossReduction::None)
    }
    check(losses, &["a loss of shape [", "one number for the batch", "LabelledRows::reduce"]);
    check(|outputs, rows| losses(outputs, rows).mean(0), &["a loss of shape []", "weighted by the rows' `weights`", "padding"]);
}
