//! The recipes of brisk-vision through the trainer, at sizes that a test can afford.

use brisk_loader::{Order, RowSource, Rows};
use brisk_nn::{Activation, Mlp, MlpConfig, Module, ParametersBuilder, Philox};
use brisk_program::{Counters, Device};
use brisk_tensor::{CrossEntropyOptions, DType};
use brisk_train::{
    BatchTensors, Classification, DataParallelConfig, Error, Feed, FeedConfig, Limit, Model, Standardisation, Step, Trainer,
    run_threads,
};
use brisk_vision::{AugmentedImages, Flip, ImageAugmentation, PAGE_RUNGS, Recipe};

use crate::gpu::{cpu, gpu};
use crate::losses::Losses;

const IMAGE: [usize; 3] = [32, 32, 3];
const LEN: usize = 32 * 32 * 3;
const N_CLASSES: usize = 10;

/// Images of ten classes: waves of different directions, with noise.
fn images(n: usize) -> Rows<Vec<u8>, Vec<f32>> {
    let philox = Philox::new(1);
    let mut pixels = Vec::with_capacity(n * LEN);
    for image in 0..n as u32 {
        let class = image % N_CLASSES as u32;
        let (fx, fy) = (1.0 + (class % 5) as f32, 1.0 + (class / 5) as f32 * 2.0);
        let phase = std::f32::consts::TAU * philox.uniform(image, 0);
        pixels.extend((0..LEN).map(|at| {
            let (y, x, channel) = (at / 96, at / 3 % 32, at % 3);
            let angle = std::f32::consts::TAU * (fx * x as f32 + fy * y as f32) / 32.0 + phase + channel as f32;
            (128.0 + 70.0 * angle.sin() + 50.0 * (philox.uniform(image, 8 + at as u64) - 0.5)) as u8
        }));
    }
    let labels = (0..n).map(|image| (image % N_CLASSES) as f32).collect();
    Rows::new(pixels, labels, LEN).expect("a label for each image")
}

/// The losses of the first steps of a recipe over `rows`, and the accuracy on them at the end.
fn train(device: &Device, recipe: &Recipe, rows: &Rows<Vec<u8>, Vec<f32>>, n_steps: usize) -> Result<(Vec<f32>, f64), Error> {
    let n_rows = rows.n_rows();
    let scale = Standardisation::of("train", rows)?.per_channel(IMAGE[2])?;
    let mut model = Model::new(3, |params| recipe.build(params));
    let network = model.module().clone();
    let standardised = scale.rows("train", rows, 0..n_rows)?;
    recipe.initialise(&network, model.params_mut(), device, &standardised).expect("a whitening");
    let task = Classification::of(N_CLASSES).label_smoothing(recipe.label_smoothing);
    let epoch_steps = recipe.epoch_steps(n_rows);
    let n_epochs = n_steps.div_ceil(epoch_steps);
    let losses = Losses::default();
    let mut trainer = Trainer::new(device)
        .batch_rows(recipe.batch_rows)
        .max_epochs(n_epochs)
        .max_steps(n_steps)
        .configure(|config| config.limit_train_batches = Some(Limit::Batches(epoch_steps)))
        .configure(|config| config.validate_every = n_epochs)
        .schedule(recipe.schedule(n_rows))
        .try_optimizer(|params| recipe.optimizer(&network, params, n_rows))
        .standardisation(scale)
        .augment(AugmentedImages { image: IMAGE, augmentation: recipe.augmentation })
        .callback(losses.clone());
    if let Some(ema) = recipe.ema(n_rows) {
        trainer = trainer.ema(ema);
    }
    trainer.fit(&mut model, &task, rows, rows)?;
    drop(trainer);
    let accuracy = model.evaluate(&task, rows)?.get("accuracy").expect("an accuracy");
    Ok((losses.0.take(), accuracy))
}

#[test]
fn muon_learns_64_images_down_to_the_floor_of_label_smoothing() -> Result<(), Error> {
    let augmentation = ImageAugmentation::default();
    let recipe = Recipe { augmentation, ..Recipe::muon().narrowed(&[8, 16, 32], 64).with_epochs(60.0) };
    let (losses, accuracy) = train(&cpu(2), &recipe, &images(64), 60)?;
    assert!((losses[0] - 10.0_f32.ln()).abs() < 0.1, "the first loss is that of a guess: {}", losses[0]);
    // -(0.82 ln 0.82 + 0.18 ln 0.02), of perfect predictions.
    let last = losses[59];
    assert!((0.8668..0.9).contains(&last), "the last loss is {last}, expected a little above 0.8669");
    assert!(accuracy > 0.98, "accuracy {accuracy}");
    Ok(())
}

#[test]
fn every_rung_of_the_ladder_learns() -> Result<(), Error> {
    let rows = images(128);
    for (rung, trick) in PAGE_RUNGS.iter().enumerate() {
        let recipe = Recipe::page_rung(rung).narrowed(&[8, 8, 8, 8], 32).with_epochs(5.0);
        let (losses, _) = train(&cpu(2), &recipe, &rows, 20)?;
        let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
        assert!(mean(&losses[16..]) < mean(&losses[..4]) - 0.05, "rung {rung}, {trick}: {losses:?}");
    }
    Ok(())
}

#[test]
fn airbench_learns_with_lookahead() -> Result<(), Error> {
    let recipe = Recipe::airbench().narrowed(&[8, 8, 16], 64).with_epochs(6.0);
    let (losses, _) = train(&cpu(2), &recipe, &images(256), 24)?;
    assert!(losses[23] < losses[0] - 0.1, "{losses:?}");
    Ok(())
}

#[test]
fn the_software_adapter_takes_the_steps_of_the_cpu() -> Result<(), Error> {
    let Some(device) = gpu() else { return Ok(()) };
    let rows = images(32);
    for recipe in [Recipe::muon().narrowed(&[4, 4, 4], 16), Recipe::page().narrowed(&[8, 8, 8, 8], 32)] {
        let [(here, _), (there, _)] = [train(&cpu(2), &recipe, &rows, 2)?, train(&device, &recipe, &rows, 2)?];
        for (here, there) in here.iter().zip(&there) {
            assert!((here - there).abs() < 2e-3, "losses {here} on the CPU, {there} on {}", device.info());
        }
    }
    Ok(())
}

/// What the host does in an epoch does not depend on the number of steps: it writes their learning rates, and reads their losses
/// after the last one.
#[test]
fn the_host_does_nothing_for_a_step() -> Result<(), Error> {
    let recipe = Recipe::muon().narrowed(&[4, 4, 4], 10);
    for device in [cpu(2)].into_iter().chain(gpu()) {
        let of_an_epoch = |n_steps: usize| -> Result<Counters, Error> {
            let rows = images(10 * n_steps);
            let n_rows = rows.n_rows();
            let scale = Standardisation::of("train", &rows)?.per_channel(IMAGE[2])?;
            scale.write(&device)?;
            let config = FeedConfig { labels: DType::U32, ..FeedConfig::default() };
            let feed = Feed::new(&device, "train", &rows, Order::Shuffled { seed: 5 }, recipe.batch_rows, &config)?;
            let feed = feed.augmented(recipe.augment(5).into());
            let mut model = Model::new(3, |params| recipe.build(params));
            let network = model.module().clone();
            let standardised = scale.rows("train", &rows, 0..n_rows)?;
            recipe.initialise(&network, model.params_mut(), &device, &standardised).expect("a whitening");
            let params = model.params();
            params.write_initial(&device)?;
            let step = Step::over(&device, &feed, &scale)
                .train(params, &*recipe.optimizer(&network, params, n_rows)?, &recipe.schedule(n_rows))
                .epochs(8)
                .record(|BatchTensors { x, labels, weights, .. }, params| {
                    network.forward(&params[0], x).cross_entropy(labels, weights, CrossEntropyOptions::default())
                })?;
            step.run_epoch(0)?;
            let before = device.counters();
            let losses = step.run_epoch(1)?.batches;
            assert_eq!(losses.len(), n_steps, "a loss per step");
            Ok(device.counters() - before)
        };
        let [short, long] = [of_an_epoch(2)?, of_an_epoch(8)?];
        let calls = |counters: Counters| [counters.n_reads, counters.n_writes, counters.n_allocations];
        assert_eq!(calls(short), calls(long), "reads, writes and allocations for 2 and for 8 steps on {}", device.info());
        assert!(long.n_reads <= 3 && long.n_allocations == 0, "{long:?} on {}", device.info());
    }
    Ok(())
}

#[test]
fn augmented_images_are_the_same_on_any_number_of_replicas() {
    let rows = images(96);
    let augmentation = ImageAugmentation { pad: 4, flip: Flip::Random, cutout: 6, seed: 5, ..ImageAugmentation::default() };
    let sizes = MlpConfig { n_inputs: LEN, hidden: vec![8], n_outputs: N_CLASSES, activation: Activation::relu() };
    // A network without batch statistics, which depend on the batches of the replicas.
    let build = |params: &mut ParametersBuilder| Flattened(Mlp::new(params, &sizes));
    let batches = AugmentedImages { image: IMAGE, augmentation };
    check_replicas(&rows, build, |trainer| trainer.batch_rows(32).max_epochs(2).augment(batches), 6);
}

/// Each replica's part of a batch is two ghost batches.
#[test]
fn ghost_batches_are_the_same_on_any_number_of_replicas() {
    let rows = images(128);
    let recipe = Recipe::page_rung(5).narrowed(&[8, 8, 8, 8], 128);
    check_replicas(&rows, |params| recipe.build(params), |trainer| trainer.batch_rows(128).max_epochs(3), 3);
}

/// Checks that a model has the same losses on one replica and on two, and as many as expected.
#[track_caller]
fn check_replicas<M: Module>(
    rows: &Rows<Vec<u8>, Vec<f32>>,
    build: impl Fn(&mut ParametersBuilder) -> M + Sync,
    set: impl Fn(Trainer<'_>) -> Trainer<'_> + Sync,
    n_losses: usize,
) {
    let losses = |n_replicas: usize| {
        let results = run_threads(n_replicas, &DataParallelConfig::default(), |replicas| {
            let mut model = Model::new(7, &build);
            let losses = Losses::default();
            let device = cpu(1);
            let mut trainer = set(Trainer::new(&device)).learning_rate(1e-3).callback(losses.clone()).replicas(replicas);
            trainer.fit(&mut model, &Classification::of(N_CLASSES), rows, rows)?;
            drop(trainer);
            Ok::<_, Error>(losses.0.take())
        });
        results.expect("a run").remove(0)
    };
    let (one, two) = (losses(1), losses(2));
    assert_eq!(one.len(), n_losses, "a loss per batch");
    for (one, two) in one.iter().zip(&two) {
        assert!((one - two).abs() < 1e-4 * one.abs(), "{one} on one replica, {two} on two");
    }
}

/// A network of rows, over images.
#[derive(Debug)]
struct Flattened(Mlp);

impl Module for Flattened {
    fn forward(&self, params: &brisk_nn::Bound, x: &brisk_tensor::Tensor) -> brisk_tensor::Tensor {
        self.0.forward(params, &x.reshape(&[x.shape()[0], LEN]))
    }
}
