//! The last batch of an epoch with fewer rows than the others: its padding counts as absent.

#![expect(clippy::excessive_precision, reason = "values as PyTorch prints them")]

use brisk_loader::{Order, Rows};
use brisk_nn::tensor::LossReduction;
use brisk_nn::{Activation, BatchNorm, BatchNormConfig, Linear, Parameters, ParametersBuilder, Schedule, Sequential, Sgd};
use brisk_program::Device;
use brisk_train::{
    BatchStatistics, BatchTensors, Checkpoint, DataParallel, DataParallelConfig, Error, Feed, FeedChoice, FeedConfig, Regression,
    RunFolder, Standardisation, Step, Trainable, Trainer, TrainerConfig, run_threads,
};

use crate::gpu::{cpu, gpu};
use crate::replicas::CONFIG;
use crate::run::into_folder;

/// Name, shape and values.
type Expected = (&'static str, &'static [usize], &'static [f32]);

/// PyTorch 2.15 after three epochs over 13 rows in batches of 8: `Linear(3, 4)`, `BatchNorm1d(4)`, ReLU and `Linear(4, 1)` with
/// SGD at a rate of 0.1.
const WHOLE: [Expected; 8] = [
    (
        "l1.weight",
        &[4, 3],
        &[
            -0.57072401,
            0.230978817,
            0.382078916,
            -0.049461629,
            0.427008688,
            -0.170152664,
            0.273889005,
            -0.373602688,
            0.131973341,
            -0.500918508,
            -0.08108037,
            -0.428961575,
        ],
    ),
    ("l1.bias", &[4], &[-0.5, -0.200000003, 0.099999994, 0.399999976]),
    ("norm.weight", &[4], &[1.009383202, 0.958185196, 1.152380705, 0.952859938]),
    ("norm.bias", &[4], &[0.006497188, -0.045943342, 0.085417062, -0.089219801]),
    ("norm.running_mean", &[4], &[-0.262586176, -0.099384807, 0.058123469, 0.18358013]),
    ("norm.running_var", &[4], &[0.646808684, 0.562523007, 0.57011205, 0.62847358]),
    ("l2.weight", &[1, 4], &[-0.51989454, -0.165522516, 0.713892102, 0.426400661]),
    ("l2.bias", &[1], &[-0.065562725]),
];

/// The same over 14 rows with ghost batches of 4, each through `batch_norm` of PyTorch: the last batch has one of 4 rows and one
/// of 2.
const GHOST: [Expected; 8] = [
    (
        "l1.weight",
        &[4, 3],
        &[
            -0.567068398,
            0.229668453,
            0.41560623,
            -0.074756674,
            0.41644302,
            -0.181542978,
            0.272575021,
            -0.370364428,
            0.123450443,
            -0.518958867,
            -0.067933798,
            -0.406973779,
        ],
    ),
    ("l1.bias", &[4], &[-0.5, -0.200000018, 0.099999994, 0.400000006]),
    ("norm.weight", &[4], &[0.987626076, 0.96378541, 1.092262268, 0.951605797]),
    ("norm.bias", &[4], &[-0.056602646, -0.041206408, 0.052345287, -0.084013581]),
    ("norm.running_mean", &[4], &[-0.198069587, -0.100508258, 0.040868662, 0.208121866]),
    ("norm.running_var", &[4], &[0.618380964, 0.564088285, 0.570431292, 0.647761464]),
    ("l2.weight", &[1, 4], &[-0.4858675, -0.165692776, 0.582177222, 0.423645318]),
    ("l2.bias", &[1], &[-0.095658503]),
];

/// The mean losses over the rows of the epochs.
const LOSSES: [f64; 3] = [2.832172595537626, 1.8157495535337007, 1.1826144686112037];

/// The network of the constants, with their initial values.
fn network(ghost_rows: Option<usize>) -> (Sequential, Parameters) {
    let mut builder = ParametersBuilder::new();
    let norm = BatchNormConfig { ghost_rows, activation: Activation::relu(), ..BatchNormConfig::new(4) };
    let layers = Sequential(vec![
        Box::new(Linear::new(&mut builder, "l1", 3, 4, Activation::identity())),
        Box::new(BatchNorm::new(&mut builder, "norm", &norm)),
        Box::new(Linear::new(&mut builder, "l2", 4, 1, Activation::identity())),
    ]);
    let mut params = builder.build(7);
    let factors = [("l1.weight", 5), ("l1.bias", 3), ("l2.weight", 7), ("l2.bias", 1)];
    for id in params.ids_where(|_| true) {
        let (name, len) = (params.entry(id).name.clone(), params.entry(id).range.len());
        if let Some((_, factor)) = factors.into_iter().find(|(found, _)| *found == name) {
            let values: Vec<f32> = (0..len).map(|i| (i * factor % 11) as f32 / 10.0 - 0.5).collect();
            params.set_initial(id, &values).expect("as many values");
        }
    }
    (layers, params)
}

fn rows(n: usize) -> Rows {
    let row = |i: usize| [0, 1, 2].map(|j| ((i * 7 + j * 3 + i * j) % 13) as f32 / 6.0 - 1.0);
    let labels = (0..n).map(row).map(|[a, b, c]| a - 2.0 * b + 0.5 * c * a);
    let labels: Vec<f32> = labels.collect();
    Rows::new((0..n).flat_map(row).collect::<Vec<f32>>(), labels, 3).expect("as many labels as rows")
}

/// Trains on rows in order; returns the checkpoint after the last epoch and the mean losses.
fn run(
    device: &Device,
    (ghost_rows, batch_rows): (Option<usize>, usize),
    train: &Rows,
    choice: FeedChoice,
    replica: Option<(&DataParallel, &RunFolder)>,
) -> Result<(Checkpoint, Vec<f64>), Error> {
    let (layers, params) = network(ghost_rows);
    let optimizer = Sgd::new(&params);
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let folder = replica.map_or(folder, |(_, folder)| folder.clone());
    outputs.folder = Some(folder.clone());
    let config = TrainerConfig { batch_rows, max_epochs: 3, schedule: Schedule::constant(0.1), ..TrainerConfig::default() };
    let feed = FeedConfig { order: Some(Order::Sequential), choice, chunk_bytes: 64, ..FeedConfig::default() };
    let trainer = Trainer::new(device).config(config).feed(&feed).standardisation(Standardisation::none(3));
    let trainer = match replica {
        None => trainer,
        Some((replica, _)) => trainer.replicas(replica),
    };
    let report =
        trainer.prepare(Trainable::new(&layers, &params, &optimizer), &Regression::mse(), train, &rows(5))?.fit(&mut outputs)?;
    let losses = report.history.iter().map(|epoch| epoch.train_loss()).collect();
    Ok((Checkpoint::load(folder.last())?, losses))
}

#[track_caller]
fn check(found: &Checkpoint, expected: &[Expected], tolerance: f32) {
    for (name, shape, expected) in expected {
        let found = found.f32(name, shape).expect("it is part of the model");
        let worst = found.iter().zip(*expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= tolerance, "`{name}` differs by {worst}: {found:?}, expected {expected:?}");
    }
}

fn check_on(device: &Device) -> Result<(), Error> {
    let (found, losses) = run(device, (None, 8), &rows(13), FeedChoice::Resident, None)?;
    check(&found, &WHOLE, 1e-6);
    for (found, expected) in losses.iter().zip(LOSSES) {
        assert!((found - expected).abs() < 1e-6, "a loss of {found}, expected {expected}");
    }
    check(&run(device, (Some(4), 8), &rows(14), FeedChoice::Resident, None)?.0, &GHOST, 1e-6);
    Ok(())
}

#[test]
fn a_short_batch_trains_as_in_pytorch() -> Result<(), Error> {
    check_on(&cpu(2))
}

#[test]
fn a_short_batch_trains_as_in_pytorch_on_a_gpu() -> Result<(), Error> {
    gpu().map_or(Ok(()), |device| check_on(&device))
}

#[test]
fn streamed_rows_are_padded_alike() -> Result<(), Error> {
    check(&run(&cpu(1), (None, 8), &rows(13), FeedChoice::Streamed, None)?.0, &WHOLE, 1e-6);
    Ok(())
}

/// Rows of weight 0 count as absent wherever they stand in a batch, and a common factor of all weights has no effect.
#[test]
fn rows_without_weight_are_absent() -> Result<(), Error> {
    let all = rows(13);
    // Batches of 10: 8 rows, of which the others are strewn in, then 5.
    let places: Vec<Option<usize>> =
        [0, 13, 1, 2, 3, 4, 13, 5, 6, 7, 8, 9, 10, 11, 12].into_iter().map(|row| (row < 13).then_some(row)).collect();
    let features = places.iter().flat_map(|row| row.map_or([9.0; 3], |row| [0, 1, 2].map(|j| all.features()[row * 3 + j])));
    let labels = places.iter().map(|row| row.map_or(-5.0, |row| all.labels()[row]));
    let weights = places.iter().map(|row| if row.is_some() { 0.5 } else { 0.0 });
    let (features, labels, weights): (Vec<f32>, Vec<f32>, Vec<f32>) = (features.collect(), labels.collect(), weights.collect());
    let weighted = Rows::new(features, labels, 3).and_then(|rows| rows.with_weights(weights)).expect("a weight a row");
    let (found, losses) = run(&cpu(1), (None, 10), &weighted, FeedChoice::Resident, None)?;
    check(&found, &WHOLE, 1e-6);
    for (found, expected) in losses.iter().zip(LOSSES) {
        assert!((found - expected).abs() < 1e-6, "a loss of {found}, expected {expected}");
    }
    Ok(())
}

/// Three replicas, the last of which has only padding in the last batch.
#[test]
fn replicas_with_shared_statistics_train_as_one_device() -> Result<(), Error> {
    for n in [2, 3] {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (_, folder) = into_folder(root.path());
        let config = DataParallelConfig { batch_norm: BatchStatistics::OfAll, ..CONFIG };
        let runs = run_threads(n, &config, |replica| {
            run(&cpu(1), (None, 8), &rows(13), FeedChoice::Resident, Some((replica, &folder)))
        })?;
        check(&runs[0].0, &WHOLE, 1e-5);
        for (found, expected) in runs[n - 1].1.iter().zip(LOSSES) {
            assert!((found - expected).abs() < 1e-5, "a loss of {found}, expected {expected}");
        }
    }
    Ok(())
}

#[track_caller]
fn check_refused(error: &Error, parts: &[&str]) {
    let message = error.to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn a_single_value_per_channel_is_refused_before_training() -> Result<(), Error> {
    let error = run(&cpu(1), (None, 64), &rows(65), FeedChoice::Resident, None).expect_err("no variance");
    check_refused(&error, &["batch_norm", "65", "64", "drop_last", "another batch size"]);
    let error = run(&cpu(1), (Some(4), 8), &rows(13), FeedChoice::Resident, None).expect_err("a ghost batch of one row");
    check_refused(&error, &["13", "8", "drop_last"]);
    let (layers, params) = network(None);
    let optimizer = Sgd::new(&params);
    let device = cpu(1);
    let trainer = Trainer::new(&device).batch_rows(64).configure(|config| config.drop_last = true);
    let (train, valid) = (rows(65), rows(5));
    let training = trainer.prepare(Trainable::new(&layers, &params, &optimizer), &Regression::mse(), &train, &valid)?;
    let report = training.fit(&mut crate::run::quiet())?;
    assert_eq!(report.history[0].batch, 1, "the batch of one row is left out");
    Ok(())
}

#[test]
fn a_loss_that_ignores_padding_is_refused() -> Result<(), Error> {
    let (device, rows) = (cpu(1), rows(13));
    let mut builder = ParametersBuilder::new();
    let line = Linear::new(&mut builder, "line", 3, 1, Activation::identity());
    let params = builder.build(7);
    let sgd = Sgd::new(&params);
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 8, &FeedConfig::default())?;
    let step = |feed: &Feed<'_>| {
        let builder = Step::over(&device, feed, &Standardisation::none(3)).train(&params, &sgd, &Schedule::constant(0.1));
        let losses = |batch: &BatchTensors, params: &[brisk_nn::Bound]| {
            line.forward(&params[0], &batch.x).squeeze(1).l1_loss(&batch.labels, LossReduction::Mean)
        };
        builder.record(losses)?.run_epoch(0).map(|losses| losses.batches.len())
    };
    check_refused(
        &step(&feed).expect_err("padding would count"),
        &["13 rows in batches of 8", "BatchTensors::mean", "drop_last"],
    );
    assert_eq!(step(&feed.drop_last())?, 1, "the short batch is left out");
    Ok(())
}

/// A batch counts in the loss of an epoch as much as its rows.
#[test]
fn the_loss_of_an_epoch_is_a_mean_over_rows() -> Result<(), Error> {
    let device = cpu(1);
    let values = |weights: Option<Vec<f32>>| {
        let labels = (0..9).map(|row| if row == 8 { 9.0 } else { 1.0 }).collect::<Vec<f32>>();
        let rows = Rows::new(vec![0.0; 9], labels, 1).expect("as many labels as rows");
        let rows = weights.map_or(Ok(rows.clone()), |weights| rows.with_weights(weights)).expect("a weight a row");
        let mut builder = ParametersBuilder::new();
        let line = Linear::new(&mut builder, "line", 1, 1, Activation::identity());
        let mut params = builder.build(7);
        for id in params.ids_where(|_| true) {
            params.set_initial(id, &[0.0])?;
        }
        let sgd = Sgd::new(&params);
        let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 4, &FeedConfig::default())?;
        let step = Step::over(&device, &feed, &Standardisation::none(1)).train(&params, &sgd, &Schedule::constant(0.0)).record(
            |batch, params| {
                batch.mean(&line.forward(&params[0], &batch.x).squeeze(1).l1_loss(&batch.labels, LossReduction::None))
            },
        )?;
        let losses = step.run_epoch(0)?;
        Ok::<_, Error>((losses.mean, losses.batches))
    };
    assert_eq!(values(None)?, (17.0 / 9.0, vec![1.0, 1.0, 9.0]));
    let weights = vec![0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 4.0];
    assert_eq!(values(Some(weights))?, (5.0, vec![0.0, 1.0, 9.0]), "a batch without weight counts nothing");
    Ok(())
}

/// A run with weights that is ended within its second epoch and resumed.
#[test]
fn the_mean_loss_of_a_resumed_epoch_is_that_of_the_whole_epoch() -> Result<(), Error> {
    let device = cpu(1);
    let train = rows(13).with_weights((0..13).map(|row| (row % 4) as f32).collect::<Vec<_>>()).expect("a weight a row");
    let valid = rows(5);
    let fit = |max_steps: Option<usize>, from: Option<&Checkpoint>| {
        let (layers, params) = network(None);
        let optimizer = Sgd::new(&params);
        let root = tempfile::tempdir().expect("a temporary folder");
        let (mut outputs, folder) = into_folder(root.path());
        let schedule = Schedule::constant(0.1);
        let config = TrainerConfig { batch_rows: 5, max_epochs: 2, max_steps, schedule, ..TrainerConfig::default() };
        let trainer = Trainer::new(&device).config(config);
        let training = trainer.prepare(Trainable::new(&layers, &params, &optimizer), &Regression::mse(), &train, &valid)?;
        let report = match from {
            None => training.fit(&mut outputs)?,
            Some(checkpoint) => training.resume(checkpoint, &mut crate::run::quiet())?,
        };
        let losses: Vec<f64> = report.history.iter().map(|epoch| epoch.train_loss()).collect();
        Ok::<_, Error>((losses, from.is_none().then(|| Checkpoint::load(folder.last())).transpose()?))
    };
    let (whole, _) = fit(None, None)?;
    let (_, checkpoint) = fit(Some(5), None)?;
    let (resumed, _) = fit(None, checkpoint.as_ref())?;
    assert_eq!(resumed, whole[1..], "the second epoch");
    Ok(())
}
