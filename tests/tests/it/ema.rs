//! An average of parameters and buffers, which is validated and kept.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use brisk_nn::{Activation, BatchNorm, BatchNormConfig, EmaConfig, Linear, Sequential};
use brisk_program::Device;
use brisk_train::{
    Binary, Callback, Checkpoint, DataParallelConfig, Error, FitReport, Model, ResumeMismatch, RunView, Trainer, TrainerConfig,
    ValidationEnd, ZeroStage, run_threads,
};

use crate::gpu::{cpu, gpu};
use crate::run::{N_COLS, Setting, into_folder, quiet, rows};

/// A model with running statistics.
fn model() -> Model<Sequential> {
    let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(8) };
    Model::new(3, |params| {
        Sequential(vec![
            Box::new(Linear::new(params, "0", N_COLS, 8, Activation::identity())),
            Box::new(BatchNorm::new(params, "1", &norm)),
            Box::new(Linear::new(params, "2", 8, 1, Activation::identity())),
        ])
    })
}

/// Parameters and buffers, concatenated.
type Values = Vec<Vec<f32>>;

fn read(device: &Device, run: &RunView<'_>) -> Result<Values, Error> {
    let buffers = run.params.buffers().iter().map(|buffer| buffer.values());
    Ok([run.params.values()].into_iter().chain(buffers).map(|values| device.read(values)).collect::<Result<_, _>>()?)
}

/// Collects the trained values after each epoch.
#[derive(Clone, Default)]
struct Trained(Arc<Mutex<Vec<Values>>>);

impl Callback for Trained {
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        self.0.lock().expect("one thread").push(read(run.device, run)?);
        Ok(())
    }

    fn on_validation_end(&mut self, run: &RunView<'_>, _: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        self.0.lock().expect("one thread").push(read(run.device, run)?);
        Ok(ControlFlow::Continue(()))
    }
}

/// Five epochs of one step each; returns the trained values before the first and after each, and the values that the run leaves.
fn run(device: &Device, ema: Option<EmaConfig>) -> Result<(Vec<Values>, Checkpoint, FitReport), Error> {
    let (train, valid) = (rows(0, 256), rows(256, 100));
    let (mut model, trained) = (model(), Trained::default());
    let root = tempfile::tempdir().expect("a temporary folder");
    let (_, folder) = into_folder(root.path());
    let config = TrainerConfig { batch_rows: 256, max_epochs: 5, ema, ..TrainerConfig::default() };
    let report = Trainer::new(device).config(config).learning_rate(0.05).folder(&folder).callback(trained.clone()).fit(
        &mut model,
        &Binary::new(),
        &train,
        &valid,
    )?;
    let trained = trained.0.lock().expect("one thread").clone();
    let best = Checkpoint::load(folder.best())?;
    let state = model.params().entries().iter().map(|entry| (entry.name.clone(), entry.shape.clone()));
    for (name, shape) in state.chain(model.params().buffers().iter().map(|b| (b.name().to_owned(), b.shape().to_vec()))) {
        let id = model.params().id_of(&name);
        let left = match id {
            Some(id) => model.params().initial_of(id),
            None => model.params().buffer(model.params().buffer_id_of(&name).expect("one of the two")).initial(),
        };
        assert_eq!(best.f32(&name, &shape)?, left, "the model that the run leaves is the best checkpoint: `{name}`");
    }
    Ok((trained, best, report))
}

/// The average after `n` steps by its definition.
fn average(trained: &[Values], n: usize, ema: EmaConfig, from_initial: bool) -> Values {
    let mut average = trained[0].clone();
    for (step, values) in trained.iter().enumerate().skip(1).take(n) {
        let first = ema.first_step as usize;
        let copies = step <= first && !from_initial;
        let is_due = step >= first && (step - first).is_multiple_of(ema.every as usize);
        let decay = if copies { 0.0 } else { ema.decay };
        if copies || is_due {
            for (average, values) in average.iter_mut().zip(values) {
                average.iter_mut().zip(values).for_each(|(average, value)| *average = decay * *average + (1.0 - decay) * value);
            }
        }
    }
    average
}

fn check(device: &Device, ema: EmaConfig, from_initial: bool) -> Result<(), Error> {
    let (trained, best, report) = run(device, Some(ema))?;
    let expected = average(&trained, report.best_epoch, ema, from_initial);
    let model = model();
    let mut compared = 0;
    let mut compare = |name: &str, shape: &[usize], expected: &[f32]| {
        for (found, expected) in best.f32(name, shape)?.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-6 + 1e-5 * expected.abs(), "{ema:?}, `{name}`: {found}, expected {expected}");
            compared += 1;
        }
        Ok::<(), Error>(())
    };
    for entry in model.params().entries() {
        compare(&entry.name, &entry.shape, &expected[0][entry.range.clone()])?;
    }
    for (buffer, expected) in model.params().buffers().iter().zip(&expected[1..]) {
        compare(buffer.name(), buffer.shape(), expected)?;
    }
    assert_eq!(compared, N_COLS * 8 + 8 + 4 * 8 + 8 + 1, "all parameters and buffers");
    Ok(())
}

#[test]
fn the_average_of_parameters_and_buffers_is_kept() -> Result<(), Error> {
    for device in [Some(cpu(2)), gpu()].into_iter().flatten() {
        check(&device, EmaConfig::new(0.5), false)?;
        check(&device, EmaConfig::new(0.5).every(2), false)?;
        check(&device, EmaConfig::new(0.5).every(2).from_initial(), true)?;
        check(&device, EmaConfig::new(0.75).first_step(3), false)?;
    }
    Ok(())
}

#[test]
fn the_average_does_not_change_what_is_trained() -> Result<(), Error> {
    let [without, with] = [None, Some(EmaConfig::new(0.9))].map(|ema| run(&cpu(2), ema));
    let (without, with) = (without?, with?);
    assert!(with.0 == without.0, "parameters and buffers, bit for bit");
    // An average with a decay of 0 equals the parameters.
    let same = run(&cpu(2), Some(EmaConfig::new(0.0)))?;
    assert_eq!(same.2.history, without.2.history, "the same validations");
    assert_ne!(with.2.watched_values(), without.2.watched_values(), "the average is validated");
    Ok(())
}

#[test]
fn an_average_of_the_initial_parameters_alone_stays_there() -> Result<(), Error> {
    let (_, best, report) = run(&cpu(2), Some(EmaConfig::new(1.0).from_initial()))?;
    let values = report.watched_values();
    assert!(values.iter().all(|&value| value == values[0]), "{values:?}");
    let model = model();
    for id in model.params().ids_where(|_| true) {
        let entry = model.params().entry(id);
        assert_eq!(best.f32(&entry.name, &entry.shape)?, model.params().initial_of(id), "`{}`", entry.name);
    }
    Ok(())
}

#[test]
fn another_average_is_a_difference_that_can_be_allowed() -> Result<(), Error> {
    let setting = |ema| Setting { config: TrainerConfig { ema, ..Setting::default().config }, ..Setting::default() };
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let (plain, averaged) = (setting(None).ready(), setting(Some(EmaConfig::new(0.9))).ready());
    let device = cpu(2);
    averaged.trainer(&device)?.fit(&mut outputs)?;
    let last = Checkpoint::load(folder.last())?;
    let trainer = plain.trainer(&device)?;
    let error = trainer.resume(&last, &mut quiet()).expect_err("no average").to_string();
    assert!(error.contains("ema: decay 0.9") && error.contains("none here"), "{error}");
    trainer.resume_with(&last, &[ResumeMismatch::Settings], &mut quiet())?;
    Ok(())
}

#[test]
fn sharded_parameters_have_no_average() -> Result<(), Error> {
    let config = DataParallelConfig { zero: ZeroStage::Optimizer, ..DataParallelConfig::default() };
    let error = run_threads(2, &config, |replica| {
        let (train, valid) = (rows(0, 256), rows(256, 100));
        let report = Trainer::new(&cpu(1)).ema(0.9).replicas(replica).fit(&mut model(), &Binary::new(), &train, &valid)?;
        Ok::<_, Error>(report)
    });
    let error = error.expect_err("each replica has a part").to_string();
    assert!(error.contains("ema: found parameters that are sharded across replicas"), "{error}");
    Ok(())
}
