//! A run that is interrupted resumes from its last checkpoint, bit-identically, or returns an error that says why it cannot.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brisk_loader::{Order, RowSource, Rows};
use brisk_nn::{EmaConfig, Schedule};
use brisk_program::Device;
use brisk_tensor::Precision;
use brisk_train::{
    Binary, Checkpoint, DataParallelConfig, EarlyStopping, Ended, Error, FeedChoice, FeedConfig, FitReport, Outputs, StopFlag,
    Trainable, Trainer, TrainerConfig, run_threads,
};

use crate::gpu::cpu;
use crate::run::{Before, Ready, Setting, after_each_epoch, history, into_folder, quiet};

/// Rows whose source fails when none of these gathers is left; `stop` is requested by then.
fn failing<'a>(rows: &'a Rows, left: &'a AtomicUsize, stop: StopFlag) -> impl RowSource<Feature = f32> + 'a {
    Before(rows, move |_| {
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Ok(());
        }
        // Until the steps of the rows before have been done.
        std::thread::sleep(Duration::from_millis(300));
        stop.request();
        Err(brisk_loader::Error::Decode { row: 0, cause: "the network is down".into() })
    })
}

fn setting(config: TrainerConfig) -> Setting {
    Setting { config: TrainerConfig { max_epochs: 3, ..config }, ..Setting::default() }
}

/// Chunks of one batch, so that the source fails at a known batch.
fn feed() -> FeedConfig {
    FeedConfig { choice: FeedChoice::Streamed, chunk_bytes: 1, ..FeedConfig::default() }
}

fn fit<S: RowSource<Feature = f32>>(
    device: &Device,
    ready: &Ready,
    train: &S,
    outputs: &mut Outputs,
    from: Option<&Checkpoint>,
) -> Result<(FitReport, Vec<f32>), Error> {
    let Ready { model, params, adam, valid, .. } = ready;
    let trainer = Trainer::new(device).config(ready.config()).feed(&feed()).prepare(
        Trainable::new(model, params, adam),
        &Binary::new(),
        train,
        valid,
    )?;
    let report = match from {
        None => trainer.fit(outputs)?,
        Some(checkpoint) => trainer.resume(checkpoint, outputs)?,
    };
    Ok((report, device.read(params.values())?))
}

/// A run whose source fails after `after` gathers is resumed from its checkpoint.
fn check(config: &TrainerConfig, after: usize, expected_epoch: usize, expected_batch: usize) -> Result<(), Error> {
    let ready = setting(config.clone()).ready();
    let (whole_root, root) = (tempfile::tempdir().expect("a temporary folder"), tempfile::tempdir().expect("a temporary folder"));
    let (mut outputs, whole_folder) = into_folder(whole_root.path());
    let expected = fit(&cpu(2), &ready, &ready.train, &mut outputs, None)?;

    let (mut outputs, folder) = into_folder(root.path());
    let left = AtomicUsize::new(usize::MAX);
    let failing = failing(&ready.train, &left, StopFlag::new());
    let n_before = {
        // The rows are also read before the run starts; only the run's own gathers count.
        let Ready { model, params, adam, valid, .. } = &ready;
        let device = cpu(2);
        let trainer = Trainer::new(&device).config(ready.config()).feed(&feed()).prepare(
            Trainable::new(model, params, adam),
            &Binary::new(),
            &failing,
            valid,
        )?;
        left.store(after, Ordering::Relaxed);
        let error = trainer.fit(&mut outputs).expect_err("the source fails");
        assert!(matches!(error, Error::Stream { .. }), "{error}");
        after
    };
    let last = Checkpoint::load(folder.last())?;
    let epoch: usize = last.metadata("epoch", "a number of epochs")?;
    let batch: usize = if expected_batch == 0 { 0 } else { last.metadata("batch", "a number of batches")? };
    assert_eq!((epoch, batch), (expected_epoch, expected_batch), "{config:?}, {n_before} gathers");

    let found = fit(&cpu(1), &ready, &ready.train, &mut outputs, Some(&last))?;
    assert!(found.1 == expected.1, "{config:?}: the same weights, bit for bit");
    assert_eq!(
        found.0.history,
        expected.0.history[epoch..],
        "{config:?}: and the same losses, including those before the checkpoint"
    );
    let [found, expected] = [&folder, &whole_folder].map(|folder| std::fs::read_to_string(folder.metrics_csv()));
    assert_eq!(found.expect("a log"), expected.expect("a log"), "{config:?}: the log is continued");
    Ok(())
}

#[test]
fn a_run_that_is_to_stop_does_not_need_the_rows_of_its_next_step() -> Result<(), Error> {
    let ready = setting(Setting::default().config).ready();
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let left = AtomicUsize::new(usize::MAX);
    let failing = failing(&ready.train, &left, outputs.stop.clone());
    let Ready { model, params, adam, valid, .. } = &ready;
    let (device, trainable) = (cpu(2), Trainable::new(model, params, adam));
    let trainer =
        Trainer::new(&device).config(ready.config()).feed(&feed()).prepare(trainable, &Binary::new(), &failing, valid)?;
    left.store(8 + 5, Ordering::Relaxed);
    let report = trainer.fit(&mut outputs)?;
    assert_eq!(report.ended, Ended::Stopped);
    let last = Checkpoint::load(folder.last())?;
    assert_eq!(last.metadata::<usize>("epoch", "a number of epochs")?, 1);

    outputs.stop.clear();
    let found = fit(&cpu(1), &ready, &ready.train, &mut outputs, Some(&last))?;
    let expected = fit(&cpu(2), &ready, &ready.train, &mut quiet(), None)?;
    assert!(found.1 == expected.1, "the same weights as without the stop, bit for bit");
    Ok(())
}

/// 500 rows in batches of 64 are eight batches per epoch.
#[test]
fn a_run_resumes_within_an_epoch() -> Result<(), Error> {
    let config = TrainerConfig { checkpoint_every: 3, ..Setting::default().config };
    // The threads gather some chunks in advance, so the source fails late enough.
    check(&config, 8 + 5, 1, 3)?;
    check(&config, 8 + 8 + 7, 2, 6)
}

#[test]
fn a_run_with_averaged_parameters_resumes_within_an_epoch() -> Result<(), Error> {
    let ema = Some(EmaConfig::new(0.9).every(2).from_initial());
    check(&TrainerConfig { checkpoint_every: 3, ema, ..Setting::default().config }, 8 + 8 + 7, 2, 6)?;
    // The same with an average that starts late, and with skipped steps.
    let ema = Some(EmaConfig::new(0.9).first_step(12));
    let config = TrainerConfig { checkpoint_every: 1, accumulate: 3, precision: Precision::F16, ..Setting::default().config };
    check(&TrainerConfig { ema, ..config }, 8 + 5, 1, 3)
}

#[test]
fn a_checkpoint_written_on_an_error_resumes_within_an_epoch() -> Result<(), Error> {
    let config = TrainerConfig { checkpoint_on_error: true, ..Setting::default().config };
    check(&config, 8 + 5, 1, 5)
}

#[test]
fn a_run_without_checkpoints_within_an_epoch_resumes_after_the_last_one() -> Result<(), Error> {
    check(&Setting::default().config, 8 + 5, 1, 0)
}

#[test]
fn checkpoints_never_split_a_step_of_several_batches() -> Result<(), Error> {
    let config = TrainerConfig { checkpoint_every: 1, accumulate: 3, precision: Precision::F16, ..Setting::default().config };
    check(&config, 8 + 5, 1, 3)
}

#[test]
fn a_stopped_run_resumes_with_the_next_batch() -> Result<(), Error> {
    let default = Setting { n_rows: 20_000, ..Setting::default() };
    let setting =
        Setting { config: TrainerConfig { batch_rows: 50, max_epochs: 4, accumulate: 3, ..default.config.clone() }, ..default };
    let ready = setting.ready();
    let expected = ready.fit(&cpu(2))?;
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let stop = outputs.stop.clone();
    // Within one of the epochs after the first, however fast they are.
    outputs.progress = after_each_epoch(move || {
        let stop = stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            stop.request();
        });
    });
    let device = cpu(1);
    let stopped = ready.trainer(&device)?.fit(&mut outputs);
    let last = Checkpoint::load(folder.last())?;
    let n_before: usize = last.metadata("epoch", "a number of epochs")?;
    assert!(n_before < 4 && stopped.as_ref().map_or(true, |report| report.ended == Ended::Stopped), "{stopped:?}");
    let report = ready.trainer(&device)?.resume(&last, &mut quiet())?;
    assert_eq!(report.history, expected.0.history[n_before..], "as without the interruption");
    assert!(device.read::<f32>(ready.params.values())? == expected.1, "bit for bit");
    Ok(())
}

#[test]
fn another_number_of_replicas_resumes_within_an_epoch() -> Result<(), Error> {
    let config = TrainerConfig { checkpoint_every: 3, ..Setting::default().config };
    let whole = setting(config.clone()).ready().fit(&cpu(2))?;
    let root = tempfile::tempdir().expect("a temporary folder");
    // The order of a single replica.
    let feed = FeedConfig { order: Some(Order::Shuffled { seed: 1 }), ..feed() };
    let run = |replicas: &brisk_train::DataParallel, outputs: &mut Outputs, dies: bool, from: Option<&Checkpoint>| {
        let (ready, device) = (setting(config.clone()).ready(), cpu(1));
        let Ready { model, params, adam, train, valid, .. } = &ready;
        let left = AtomicUsize::new(usize::MAX);
        let failing = failing(train, &left, StopFlag::new());
        let trainer = Trainer::new(&device).config(ready.config()).feed(&feed).replicas(replicas).prepare(
            Trainable::new(model, params, adam),
            &Binary::new(),
            &failing,
            valid,
        )?;
        if dies {
            left.store(8 + 5, Ordering::Relaxed);
        }
        let report = match from {
            None => trainer.fit(outputs)?,
            Some(checkpoint) => trainer.resume(checkpoint, outputs)?,
        };
        Ok::<_, Error>((report, device.read::<f32>(params.values())?))
    };
    let (_, folder) = into_folder(root.path());
    let died = run_threads(3, &DataParallelConfig::default(), |replicas| {
        let mut outputs = Outputs { folder: Some(folder.clone()), ..quiet() };
        run(replicas, &mut outputs, replicas.rank() == 2, None)
    });
    assert!(matches!(died, Err(Error::Stream { .. })), "{died:?}");
    let last = Checkpoint::load(folder.last())?;
    assert_eq!(last.metadata::<usize>("epoch", "a number")?, 1, "the first epoch was done");
    for n in [2, 1, 4] {
        let resumed = run_threads(n, &DataParallelConfig::default(), |replicas| run(replicas, &mut quiet(), false, Some(&last)))?;
        for (report, weights) in &resumed {
            let worst = weights.iter().zip(&whole.1).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-4, "{n} replicas: weights differ by {worst}");
            let (loss, expected) = (history(report)[0].0, history(&whole.0)[1].0);
            assert!((loss - expected).abs() < 1e-5, "{n} replicas: the loss of the epoch is {loss}, of one device {expected}");
        }
    }
    Ok(())
}

/// A run may be killed after the checkpoint of its best epoch and before that of its last step, if both belong to the last epoch.
#[test]
fn a_run_that_had_ended_ends_again() -> Result<(), Error> {
    // Weights that do not change do not improve either.
    let schedule = Schedule::Constant { lr: 1e-12 };
    let ended_early = TrainerConfig {
        max_epochs: 20,
        early_stopping: Some(EarlyStopping::default().patience(1)),
        schedule,
        ..Setting::default().config
    };
    for config in [TrainerConfig { max_epochs: 1, ..Setting::default().config }, ended_early] {
        let ready = Setting { config: config.clone(), ..Setting::default() }.ready();
        let root = tempfile::tempdir().expect("a temporary folder");
        let (mut outputs, folder) = into_folder(root.path());
        let (expected, weights) = fit(&cpu(2), &ready, &ready.train, &mut outputs, None)?;
        let last = std::fs::read(folder.last()).expect("a checkpoint");
        let is_early = matches!(expected.ended, Ended::Early(_));
        assert_eq!(is_early, config.early_stopping.is_some(), "{:?}", expected.ended);
        let checkpoint = Checkpoint::load(if is_early { folder.last() } else { folder.best() })?;
        std::fs::remove_file(folder.last()).expect("it was there");

        let (found, found_weights) = fit(&cpu(2), &ready, &ready.train, &mut outputs, Some(&checkpoint))?;
        assert_eq!((found.ended, found.n_epochs, found.best_epoch), (expected.ended, expected.n_epochs, expected.best_epoch));
        assert!(found_weights == weights, "the weights of the best epoch");
        assert!(std::fs::read(folder.last()).expect("it is written again") == last, "{:?}: the same checkpoint", found.ended);
    }
    Ok(())
}
