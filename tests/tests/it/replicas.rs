//! Several replicas compared with one device: the same rows, the same losses, the same weights.

use std::time::{Duration, Instant};

use brisk_loader::{Order, RowBuffers, RowSelection, RowSource, Rows};
use brisk_nn::{EmaConfig, Parameters, Placement, Schedule};
use brisk_program::Device;
use brisk_tensor::Precision;
use brisk_train::{
    BatchStatistics, BucketSizes, Checkpoint, CheckpointFiles, DataParallel, DataParallelConfig, Ended, Error, Feed, FeedConfig,
    FitReport, GradientClip, Outputs, Scorer, StopFlag, ThreadsConfig, TrainerConfig, Wire, ZeroStage, run_threads,
};

use crate::gpu::{cpu, first_adapter, gpu};
use crate::run::{Ready, Setting, after_each_epoch, history, into_folder, quiet, rows};

/// Buckets so small that each layer has one.
pub(crate) const CONFIG: DataParallelConfig = DataParallelConfig {
    buckets: BucketSizes { first_bytes: 64, bytes: 256 },
    wire: Wire::F32,
    zero: ZeroStage::Replicated,
    files: CheckpointFiles::One,
    batch_norm: BatchStatistics::OfReplica,
    uneven: None,
};

pub(crate) type Run = (FitReport, Vec<f32>);

pub(crate) fn replicated(
    n: usize,
    config: DataParallelConfig,
    device: impl Fn() -> Device + Sync,
    ready: impl Fn() -> Ready + Sync,
) -> Result<Vec<Run>, Error> {
    run_threads(n, &config, |replica| {
        let (device, ready) = (device(), ready().sharded(replica)?);
        let Ready { params, .. } = &ready;
        let trainer = ready.on_replica(&device, replica)?;
        let report = trainer.fit(&mut quiet())?;
        Ok((report, weights(&device, params, replica)?))
    })
}

/// All parameters, whatever part of them a replica keeps.
pub(crate) fn weights(device: &Device, params: &Parameters, replica: &DataParallel) -> Result<Vec<f32>, Error> {
    let held: Vec<f32> = device.read(params.values())?;
    let keeps_own = params.sharding().is_some_and(|sharding| sharding.values == Placement::Sharded);
    if keeps_own { replica.whole(params, &held) } else { Ok(held) }
}

#[track_caller]
pub(crate) fn check_same_bits(runs: &[Run]) {
    for (report, weights) in runs {
        assert!(*weights == runs[0].1, "replicas hold the same weights, bit for bit");
        assert_eq!(report.history, runs[0].0.history, "the same losses and scores");
    }
}

#[track_caller]
pub(crate) fn check_alike(single: &Run, run: &Run, tolerance: f64) {
    for ((loss, auc), (expected_loss, expected_auc)) in history(&run.0).iter().zip(&history(&single.0)) {
        assert!((loss - expected_loss).abs() <= tolerance * expected_loss, "loss {loss}, on one device {expected_loss}");
        assert!((auc - expected_auc).abs() <= 20.0 * tolerance, "AUC {auc}, on one device {expected_auc}");
    }
    assert_eq!(run.0.history.len(), single.0.history.len(), "as many epochs");
    let worst = run.1.iter().zip(&single.1).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(f64::from(worst) <= 50.0 * tolerance, "weights differ by {worst}");
}

/// 500 rows in batches of 64: the last has 52, and three replicas have different numbers of rows.
fn check(setting: &Setting, weights: Option<&[f32]>, tolerance: f64) -> Result<(), Error> {
    let ready = || {
        let mut ready = setting.ready();
        if let Some(weights) = weights {
            ready.train = weighted(&ready.train, weights);
        }
        ready
    };
    let single = ready().fit(&cpu(2))?;
    for n in [1, 2, 3, 4] {
        let runs = replicated(n, CONFIG, || cpu(1), ready)?;
        check_same_bits(&runs);
        check_alike(&single, &runs[0], tolerance);
        assert_eq!(runs, forget_time(replicated(n, CONFIG, || cpu(1), ready)?, &runs), "{n} replicas: a run repeats");
    }
    Ok(())
}

/// The runs with their times replaced by those of `others`.
fn forget_time(mut runs: Vec<Run>, others: &[Run]) -> Vec<Run> {
    for (run, other) in runs.iter_mut().zip(others) {
        (run.0.train_seconds, run.0.train_rows_per_s) = (other.0.train_seconds, other.0.train_rows_per_s);
        run.0.waited = other.0.waited.clone();
    }
    runs
}

fn weighted(rows: &Rows, weights: &[f32]) -> Rows {
    let n = rows.n_rows();
    let (mut features, mut labels) = (vec![0.0; n * rows.n_cols()], vec![0.0; n]);
    rows.gather(RowSelection::Numbers(&(0..n as u32).collect::<Vec<_>>()), RowBuffers::new(&mut features, &mut labels))
        .expect("rows in memory");
    let weights: Vec<f32> = (0..n).map(|row| weights[row % weights.len()]).collect();
    Rows::new(features, labels, rows.n_cols()).and_then(|rows| rows.with_weights(weights)).expect("a weight a row")
}

#[test]
fn replicas_train_as_one_device_does() -> Result<(), Error> {
    check(&Setting::default(), None, 1e-5)
}

#[test]
fn replicas_keep_the_average_of_one_device() -> Result<(), Error> {
    let default = Setting::default();
    let config = TrainerConfig { ema: Some(EmaConfig::new(0.9).every(3)), ..default.config.clone() };
    check(&Setting { config, ..default }, None, 1e-5)
}

#[test]
fn rows_weigh_what_they_weigh_on_any_replica() -> Result<(), Error> {
    check(&Setting::default(), Some(&[1.0, 0.0, 3.5, 0.25, 0.0, 0.0, 2.0]), 1e-5)
}

#[test]
fn batches_are_accumulated_before_they_are_reduced() -> Result<(), Error> {
    let default = Setting::default();
    let config = TrainerConfig { accumulate: 3, clip: Some(GradientClip::Norm(0.1)), ..default.config.clone() };
    check(&Setting { config, ..default }, None, 1e-5)
}

#[test]
fn an_overflow_skips_the_step_of_all() -> Result<(), Error> {
    let default = Setting::default();
    let config = TrainerConfig { precision: Precision::F16, max_epochs: 2, ..default.config.clone() };
    let setting = Setting { config, ..default };
    let runs = replicated(2, CONFIG, || cpu(1), || setting.ready())?;
    check_same_bits(&runs);
    let single = setting.ready().fit(&cpu(2))?;
    assert_eq!(runs[0].0.scaler, single.0.scaler, "the scale goes the same way");
    check_alike(&single, &runs[0], 2e-3);
    Ok(())
}

#[test]
fn gradients_travel_in_half_the_bytes() -> Result<(), Error> {
    let single = Setting::default().ready().fit(&cpu(2))?;
    for wire in [Wire::Bf16, Wire::F16] {
        let runs = replicated(2, DataParallelConfig { wire, ..CONFIG }, || cpu(1), || Setting::default().ready())?;
        check_same_bits(&runs);
        check_alike(&single, &runs[0], 1e-2);
    }
    Ok(())
}

#[test]
fn replicas_are_devices_of_one_adapter() -> Result<(), Error> {
    if gpu().is_none() {
        return Ok(());
    }
    let default = Setting::default();
    let setting = Setting { config: TrainerConfig { max_epochs: 1, ..default.config.clone() }, n_rows: 200, ..default };
    let runs = replicated(2, CONFIG, first_adapter, || setting.ready())?;
    check_same_bits(&runs);
    check_alike(&setting.ready().fit(&cpu(2))?, &runs[0], 1e-4);
    Ok(())
}

#[test]
fn whichever_is_asked_to_stop_all_do() -> Result<(), Error> {
    let default = Setting::default();
    let setting = Setting { config: TrainerConfig { max_epochs: 1000, ..default.config.clone() }, ..default };
    let reports = run_threads(3, &CONFIG, |replica| {
        let ready = setting.ready();
        let device = cpu(1);
        let trainer = ready.on_replica(&device, replica)?;
        let mut outputs = quiet();
        let stop = outputs.stop.clone();
        if replica.rank() == 1 {
            let since = Instant::now();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300).saturating_sub(since.elapsed()));
                stop.request();
            });
        }
        trainer.fit(&mut outputs)
    })?;
    assert!(reports.iter().all(|report| report.ended == brisk_train::Ended::Stopped), "{:?}", reports[0].ended);
    assert!(reports.iter().all(|report| report.n_epochs == reports[0].n_epochs), "all at the same step");
    Ok(())
}

#[test]
fn a_replica_that_fails_ends_the_others_with_its_error() {
    let started = Instant::now();
    let error = run_threads(3, &CONFIG, |replica| {
        let ready = Setting::default().ready();
        let device = cpu(1);
        let trainer = ready.on_replica(&device, replica)?;
        let mut outputs = quiet();
        if replica.rank() == 0 {
            outputs.progress = after_each_epoch(|| panic!("the disk is on fire"));
        }
        trainer.fit(&mut outputs)
    });
    let error = error.expect_err("one of them failed").to_string();
    assert_eq!(error, "rank 0 failed: the disk is on fire; the run ends, start again from the last checkpoint");
    assert!(started.elapsed() < Duration::from_secs(60), "no replica hangs");
}

#[test]
fn replicas_that_differ_are_found_before_anything_is_averaged() {
    let differing = |setting: fn(usize) -> Setting| {
        let error = run_threads(2, &CONFIG, |replica| {
            let ready = setting(replica.rank()).ready();
            let device = cpu(1);
            ready.on_replica(&device, replica).map(|_| ())
        });
        error.expect_err("they differ").to_string()
    };
    let hidden = differing(|rank| Setting { hidden: vec![24 + rank], ..Setting::default() });
    assert!(hidden.contains("`layers.0.weight` differs between rank 0 and rank 1: [24, 5] f32 against [25, 5] f32"), "{hidden}");
    let rows = differing(|rank| Setting { n_rows: 500 + rank, ..Setting::default() });
    assert!(rows.contains("`train rows` differs between rank 0 and rank 1: 500 rows of 5 columns with digest "), "{rows}");
    let batch = differing(|rank| {
        let default = Setting::default();
        Setting { config: TrainerConfig { batch_rows: 64 + rank, ..default.config.clone() }, ..default }
    });
    assert!(
        batch.starts_with("`batch_rows` differs between rank 0 and rank 1: 64 against 65; start all ranks with the same"),
        "{batch}"
    );
    let clip = differing(|rank| {
        let default = Setting::default();
        let clip = (rank == 1).then_some(GradientClip::Norm(0.5));
        Setting { config: TrainerConfig { clip, ..default.config.clone() }, ..default }
    });
    assert!(clip.starts_with("`clip` differs between rank 0 and rank 1: none against norm; start"), "{clip}");
    let lr = differing(|rank| {
        let default = Setting::default();
        let schedule = Schedule::Constant { lr: if rank == 1 { 0.5 } else { 0.25 } };
        Setting { config: TrainerConfig { schedule, ..default.config.clone() }, ..default }
    });
    assert!(lr.starts_with("`schedule.lr` differs between rank 0 and rank 1: 0.25 against 0.5; start"), "{lr}");
}

#[test]
fn a_setting_of_replicas_that_differs_is_named() {
    let groups = brisk_replicate::Threads::group(ThreadsConfig::new(2));
    let ends: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = groups
            .into_iter()
            .zip([Wire::F32, Wire::Bf16])
            .map(|(handle, wire)| {
                scope.spawn(move || {
                    let replica = DataParallel::new(Box::new(handle), DataParallelConfig { wire, ..CONFIG });
                    let Ready { params, adam, .. } = Setting::default().ready();
                    replica.agree_on_model(&params, &adam).expect_err("they differ").to_string()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for end in ends {
        assert!(end.starts_with("`wire` differs between rank 0 and rank 1: f32 against bf16; start"), "{end}");
    }
}

/// The error of replica 2 of 3, whose rows are changed.
fn refused_rows(change: impl Fn(&mut Ready) + Sync) -> String {
    let error = run_threads(3, &CONFIG, |replica| {
        let mut ready = Setting::default().ready();
        if replica.rank() == 2 {
            change(&mut ready);
        }
        let device = cpu(1);
        ready.on_replica(&device, replica).map(|_| ())
    });
    error.expect_err("the rows differ").to_string()
}

fn changed(rows: &Rows, change: impl FnOnce(&mut Vec<f32>, &mut Vec<f32>)) -> Rows {
    let (mut features, mut labels) = (rows.features().to_vec(), rows.labels().to_vec());
    change(&mut features, &mut labels);
    Rows::new(features, labels, rows.n_cols()).expect("as many labels as rows")
}

#[test]
fn other_rows_of_the_same_shape_are_refused_before_training() {
    let flip = |value: &mut f32| *value = f32::from_bits(value.to_bits() ^ 1);
    let bit = refused_rows(|ready| ready.train = changed(&ready.train, |features, _| flip(&mut features[1234])));
    assert!(bit.starts_with("`train rows` differs between rank 0 and rank 2: 500 rows of 5 columns with digest "), "{bit}");
    let labels = refused_rows(|ready| {
        ready.train = changed(&ready.train, |_, labels| labels.iter_mut().for_each(|label| *label = 1.0 - *label));
    });
    assert!(labels.starts_with("`train rows` differs between rank 0 and rank 2: "), "{labels}");
    let valid = refused_rows(|ready| ready.valid = changed(&ready.valid, |features, _| flip(&mut features[0])));
    assert!(valid.starts_with("`valid rows` differs between rank 0 and rank 2: 200 rows of 5 columns with digest "), "{valid}");
    let weights = refused_rows(|ready| ready.train = weighted(&ready.train, &[1.0, 2.0]));
    assert!(weights.starts_with("`train rows` differs between rank 0 and rank 2: "), "{weights}");
    let order = refused_rows(|ready| {
        ready.train = changed(&ready.train, |features, labels| {
            features.rotate_left(5);
            labels.rotate_left(1);
        });
    });
    assert!(order.starts_with("`train rows` differs between rank 0 and rank 2: "), "{order}");
}

#[test]
fn other_test_rows_are_refused_before_training() {
    for n_more in [0, 1] {
        let error = run_threads(2, &CONFIG, |replica| {
            let ready = Setting::default().ready();
            let Ready { model, params, .. } = &ready;
            let (device, feed) = (cpu(1), FeedConfig::default());
            let trainer = ready.on_replica(&device, replica)?;
            // The same number of different rows, or one more.
            let rank = replica.rank();
            let test = rows(1000 + rank * (1 - n_more), 100 + rank * n_more);
            let test_rows = Feed::new(&device, "test", &test, Order::Sequential, 64, &feed)?;
            Scorer::with_replicas(&device, model, params, &test_rows, trainer.scale(), Precision::F32, replica).map(|_| ())
        });
        let error = error.expect_err("the rows differ").to_string();
        let found = "`test rows` differs between rank 0 and rank 1: 100 rows of 5 columns with digest ";
        assert!(error.starts_with(found), "{error}");
    }
}

#[test]
fn a_batch_that_leaves_a_replica_without_rows_is_refused() {
    let default = Setting::default();
    let setting = Setting { config: TrainerConfig { batch_rows: 2, ..default.config.clone() }, ..default };
    let error = replicated(3, CONFIG, || cpu(1), || setting.ready()).expect_err("two rows for three");
    assert_eq!(
        error.to_string(),
        "batch_rows: found 2 rows for 3 replicas, expected at least one row for each; use larger batches or fewer replicas"
    );
}

/// Three epochs in one run with two replicas, compared with one epoch with two replicas and two more with three, from the
/// checkpoint.
#[test]
fn a_run_goes_on_with_another_number_of_replicas() -> Result<(), Error> {
    let setting = |max_epochs| {
        let default = Setting::default();
        Setting { config: TrainerConfig { max_epochs, ..default.config.clone() }, ..default }
    };
    let whole = replicated(2, CONFIG, || cpu(1), || setting(3).ready())?;
    let root = tempfile::tempdir().expect("a folder for a while");
    let last = run_threads(2, &CONFIG, |replica| {
        let ready = setting(1).ready();
        let device = cpu(1);
        let trainer = ready.on_replica(&device, replica)?;
        // Each names the folder, but only the first writes to it.
        let (mut outputs, folder) = into_folder(&root.path().join(replica.rank().to_string()));
        trainer.fit(&mut outputs)?;
        Ok::<_, Error>(folder.last())
    })?;
    assert!(last[0].exists() && !last[1].exists(), "replica 0 writes");
    let checkpoint = Checkpoint::load(&last[0])?;
    let runs = run_threads(3, &CONFIG, |replica| {
        let ready = setting(3).ready();
        let Ready { params, .. } = &ready;
        let device = cpu(1);
        let trainer = ready.on_replica(&device, replica)?;
        let report = trainer.resume(&checkpoint, &mut quiet())?;
        Ok::<_, Error>((report, device.read(params.values())?))
    })?;
    check_same_bits(&runs);
    let expected = (FitReport { history: whole[0].0.history[1..].to_vec(), ..whole[0].0.clone() }, whole[0].1.clone());
    check_alike(&expected, &runs[0], 1e-5);
    Ok(())
}

/// Epochs of one batch: any step at which they agree to stop is the last of its epoch.
#[test]
fn a_wish_to_stop_in_the_last_step_of_an_epoch_ends_the_run_after_it() -> Result<(), Error> {
    let default = Setting::default();
    let setting = Setting { config: TrainerConfig { batch_rows: default.n_rows, ..default.config.clone() }, ..default };
    let whole = replicated(2, CONFIG, || cpu(1), || setting.ready())?;
    let root = tempfile::tempdir().expect("a folder for a while");
    let stopped = run_threads(2, &CONFIG, |replica| {
        let (device, ready) = (cpu(1), setting.ready());
        let trainer = ready.on_replica(&device, replica)?;
        let (outputs, folder) = into_folder(&root.path().join(replica.rank().to_string()));
        let stop = StopFlag::new();
        let asked = stop.clone();
        // Only the first replica shows progress, and requests the stop after the first epoch, that is, during the second.
        let progress = after_each_epoch(move || asked.request());
        let report = trainer.fit(&mut Outputs { progress, stop, ..outputs })?;
        Ok::<_, Error>((report, folder.last()))
    })?;
    for (report, _) in &stopped {
        assert_eq!((report.ended, report.n_epochs), (Ended::Stopped, 2), "the epoch of the step in which they agreed");
    }
    let checkpoint = Checkpoint::load(&stopped[0].1)?;
    let runs = run_threads(2, &CONFIG, |replica| {
        let (device, ready) = (cpu(1), setting.ready());
        let report = ready.on_replica(&device, replica)?.resume(&checkpoint, &mut quiet())?;
        Ok::<_, Error>((report, device.read::<f32>(ready.params.values())?))
    })?;
    assert_eq!(runs[0].1, whole[0].1, "the weights of a run that was not stopped");
    Ok(())
}

#[test]
fn a_loss_that_is_no_number_ends_all_of_them() {
    let default = Setting::default();
    let setting = Setting { n_rows: 500, ..default };
    let error = replicated(
        2,
        CONFIG,
        || cpu(1),
        || {
            let mut ready = setting.ready();
            // Beyond the range of a standardised column.
            ready
                .params
                .set_initial(ready.params.id_of("layers.0.bias").expect("a bias"), &[f32::INFINITY; 24])
                .expect("24 of them");
            ready
        },
    );
    assert!(matches!(error, Err(Error::NonFiniteLoss { epoch: 1, step: 1, .. })), "{error:?}");
}

/// Rows that the tests above do not use: two full batches, so that a replica's part of the last is whole.
#[test]
fn parts_cover_each_batch_once() -> Result<(), Error> {
    let setting = Setting { n_rows: 128, ..Setting::default() };
    check(&setting, None, 1e-5)
}
