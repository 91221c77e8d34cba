//! A successful run, and what happens if the loss is not finite.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brisk_loader::Rows;
use brisk_nn::{Activation, Linear, Schedule};
use brisk_train::metrics::Scored;
use brisk_train::{
    BatchesEnd, Binary, Callback, Checkpoint, Error, FeedChoice, FeedConfig, GradientClip, Model, Outputs, Progress, Regression,
    RunView, Trainer, TrainerConfig, Warning,
};

use crate::gpu::{cpu, gpu};
use crate::run::{Before, N_COLS, Setting, history, into_folder, quiet, rows};

#[test]
fn a_network_learns() -> Result<(), Error> {
    let default = Setting::default();
    let setting = Setting { n_rows: 3000, config: TrainerConfig { max_epochs: 20, ..default.config.clone() }, ..default };
    let report = setting.ready().fit(&cpu(2))?.0;
    assert!(report.best_value > 0.9, "the classes can be told apart: {report:?}");
    let (first, last) = (history(&report)[0].0, history(&report)[19].0);
    assert!(last < 0.75 * first, "the loss falls: {report:?}");
    assert!(report.train_rows_per_s > 0.0 && report.train_seconds > 0.0, "the time was taken: {report:?}");
    Ok(())
}

/// The first epoch succeeds; in the second the rate is far too high.
fn diverging() -> Setting {
    let default = Setting::default();
    let n_batches = default.n_rows.div_ceil(default.config.batch_rows);
    let schedule = Schedule::step(1e-3, n_batches, 1e30);
    Setting { config: TrainerConfig { schedule, ..default.config.clone() }, ..default }
}

fn check_divergence(device: &brisk_program::Device) -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let ready = diverging().ready();
    let (mut outputs, folder) = into_folder(root.path());
    let error = ready.trainer(device)?.fit(&mut outputs).expect_err("such a rate leads nowhere");
    let Error::NonFiniteLoss { epoch: 2, step, loss } = error else { panic!("{error:?}") };
    assert!((2..=8).contains(&step), "the first step of the epoch still has the weights of the one before; got step {step}");
    assert!(!loss.is_finite(), "{loss}");
    let message = error.to_string();
    assert!(message.contains(&format!("epoch 2, step {step},")) && message.contains("lower the learning rate"), "{message}");

    let best = Checkpoint::load(folder.best())?;
    assert_eq!(best.metadata::<usize>("epoch", "an epoch")?, 1, "the best checkpoint is that of the first epoch");
    for entry in ready.params.entries() {
        let values = best.f32(&entry.name, &entry.shape)?;
        assert!(values.iter().all(|value| value.is_finite() && value.abs() < 10.0), "`{}` is whole", entry.name);
    }
    Ok(())
}

#[test]
fn a_loss_that_is_no_number_names_its_step_and_leaves_the_best_checkpoint() -> Result<(), Error> {
    check_divergence(&cpu(2))
}

#[test]
fn a_loss_that_is_no_number_is_seen_on_a_gpu_too() -> Result<(), Error> {
    gpu().map_or(Ok(()), |device| check_divergence(&device))
}

#[track_caller]
fn check_warnings(change: impl FnOnce(&mut TrainerConfig), expected: &[Warning]) -> Result<(), Error> {
    let mut setting = Setting::default();
    change(&mut setting.config);
    assert_eq!(setting.ready().trainer(&cpu(1))?.warnings(), expected, "of {:?}", setting.config);
    Ok(())
}

#[test]
fn settings_that_are_hardly_ever_meant_are_warned_of() -> Result<(), Error> {
    check_warnings(|_| {}, &[])?;
    check_warnings(|config| config.batch_rows = 500, &[])?;
    check_warnings(|config| config.batch_rows = 501, &[Warning::BatchBeyondRows { batch_rows: 501, n_rows: 500 }])?;
    for clip in [GradientClip::Norm(1e-300_f64 as f32), GradientClip::Norm(9e-7), GradientClip::Value(1e-20)] {
        check_warnings(|config| config.clip = Some(clip), &[Warning::TinyClip { clip }])?;
    }
    for clip in [GradientClip::Norm(1e-6), GradientClip::Value(0.1)] {
        check_warnings(|config| config.clip = Some(clip), &[])?;
    }
    Ok(())
}

/// Counts the batches that it is notified of.
struct Counts(Rc<Cell<usize>>);

impl Callback for Counts {
    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        self.0.set(self.0.get() + batches.losses.len());
        Ok(())
    }
}

/// With callbacks, which read the losses anyway, a run ends before the epoch does.
#[test]
fn a_loss_that_is_no_number_ends_a_long_epoch_early() -> Result<(), Error> {
    let reading = Mutex::new(());
    // A few rows at a time are read slowly.
    let train = Before(rows(0, 800), |rows| {
        if rows.len() <= 20 {
            let _reading = reading.lock().expect("no other call has panicked");
            std::thread::sleep(Duration::from_millis(30));
        }
        Ok(())
    });
    let mut model = Model::new(7, |params| Linear::new(params, "head", N_COLS, 1, Activation::identity()));
    let n_batches = Rc::new(Cell::new(0));
    let mut trainer = Trainer::new(&cpu(1))
        .batch_rows(20)
        .schedule(Schedule::step(1e-3, 1, 1e30))
        .feed(&FeedConfig { choice: FeedChoice::Streamed, chunk_bytes: 1, ..FeedConfig::default() })
        .callback(Counts(n_batches.clone()));
    let error = trainer.fit(&mut model, &Binary::new(), &train, &rows(800, 200)).expect_err("such a rate leads nowhere");
    let Error::NonFiniteLoss { epoch: 1, step, .. } = error else { panic!("{error:?}") };
    assert!(step <= 4 && (1..40).contains(&n_batches.get()), "step {step}, after {} of 40 batches", n_batches.get());
    Ok(())
}

/// The losses of training are finite, but those of validation are not.
#[test]
fn a_validation_loss_that_is_no_number_is_warned_of_once() -> Result<(), Error> {
    let train = rows(0, 64);
    let far = Rows::new(vec![0.5; 8 * N_COLS], [[1e25, -1e25]; 4].concat(), N_COLS).expect("a label a row");
    let root = tempfile::tempdir().expect("a folder for a while");
    let path = root.path().join("report.html");
    let mut model = Model::new(7, |params| Linear::new(params, "head", N_COLS, 1, Activation::identity()));
    let mut trainer = Trainer::new(&cpu(1)).max_epochs(3).batch_rows(32).report(&path);
    let report = trainer.fit(&mut model, &Regression::mse(), &train, &far)?;
    let expected = Warning::NonFiniteValidLoss { epoch: 1, batch: 2, loss: f64::INFINITY };
    assert_eq!(report.warnings, std::slice::from_ref(&expected));
    let html = std::fs::read_to_string(&path).expect("the report");
    assert!(html.contains(&expected.to_string()), "the report shows it");
    Ok(())
}

#[test]
fn a_report_that_cannot_be_written_does_not_cost_the_model() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let path = root.path().join("report.html");
    let train = rows(0, 64);
    let trained = |trainer: Trainer<'_>| {
        let mut model = Model::new(7, |params| Linear::new(params, "head", N_COLS, 1, Activation::identity()));
        let report = trainer.max_epochs(2).batch_rows(32).fit(&mut model, &Binary::new(), &train, &train)?;
        Ok::<_, Error>((report.warnings, model.params().newest()?))
    };
    let (_, expected) = trained(Trainer::new(&cpu(1)))?;
    // The path becomes a folder during the run, or a panel cannot be made.
    let unwritable = Trainer::new(&cpu(1)).report(&path).callback(MakesFolder(&path));
    let failed = |_: &Scored<'_>| Err(Error::NoEpoch { n_epochs: 0, checkpoint: None });
    let without_panel = Trainer::new(&cpu(1)).report(root.path().join("other.html")).report_panels(failed);
    for trainer in [unwritable, without_panel] {
        let (warnings, params) = trained(trainer)?;
        let [Warning::NoReport { reason }] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(!reason.is_empty() && params == expected, "the model is trained: {reason}");
    }
    Ok(())
}

/// Creates a folder of this name during a run.
struct MakesFolder<'p>(&'p Path);

impl Callback for MakesFolder<'_> {
    fn on_epoch_start(&mut self, _: &RunView<'_>) -> Result<(), Error> {
        std::fs::create_dir_all(self.0.join("in the way")).expect("there is no file yet");
        Ok(())
    }
}

/// The output of a progress of lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no other call has panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_first_loss_that_is_absurdly_large_is_warned_of() -> Result<(), Error> {
    let mut ready = Setting::default().ready();
    let bias = ready.params.id_of("layers.1.bias").expect("the last layer has a bias");
    ready.params.set_initial(bias, &[1e20])?;
    let lines = Lines::default();
    let mut outputs = Outputs { progress: Progress::lines(3, 500, lines.clone()), ..quiet() };
    let report = ready.trainer(&cpu(1))?.fit(&mut outputs)?;
    let [Warning::LargeLoss { loss }] = report.warnings[..] else { panic!("{report:?}") };
    assert!((1e19..1e21).contains(&loss), "{loss}");
    let shown = String::from_utf8(lines.0.lock().expect("no other call has panicked").clone()).expect("lines are text");
    let first = shown.lines().next().unwrap_or_default();
    assert!(first.starts_with("warning: the first loss is ") && first.contains("e19; look for"), "{shown}");
    assert!(Setting::default().ready().fit(&cpu(1))?.0.warnings.is_empty(), "a run that goes well has none");
    Ok(())
}
