//! Dropout in whole runs: masks follow from seed, step, layer and row, so that replicas, resumed runs and checkpointed segments
//! draw those of one device.

use brisk_loader::Order;
use brisk_nn::{
    Activation, Adam, Bound, Checkpointed, Dropout, Linear, Parameters, ParametersBuilder, Schedule, Sequential, Sgd,
};
use brisk_tensor::Tensor;
use brisk_train::{
    BatchTensors, Binary, Checkpoint, Error, Feed, FeedConfig, Model, Standardisation, Step, Trainer, run_threads,
};

use crate::gpu::cpu;
use crate::replicas::CONFIG;
use crate::run::{N_COLS, into_folder, rows};

fn network(p: &mut ParametersBuilder) -> Sequential {
    let mut hidden = |name: &str, n_in: usize| Linear::new(p, name, n_in, 24, Activation::relu());
    let [first, second] = [hidden("first", N_COLS), hidden("second", 24)];
    let block = Sequential(vec![Box::new(second), Box::new(Dropout::new(0.25))]);
    let head = Linear::new(p, "head", 24, 1, Activation::identity());
    Sequential(vec![Box::new(first), Box::new(Dropout::new(0.5)), Box::new(Checkpointed(block)), Box::new(head)])
}

fn built(seed: u64, make: impl FnOnce(&mut ParametersBuilder) -> Sequential) -> (Sequential, Parameters) {
    let mut builder = ParametersBuilder::new();
    (make(&mut builder), builder.build(seed))
}

fn loss(model: &Sequential, params: &Bound, batch: &BatchTensors) -> Tensor {
    model.forward(params, &batch.x).squeeze(1).bce_with_logits(&batch.labels, &batch.weights, Default::default(), 1.0)
}

#[test]
fn each_batch_of_a_step_has_a_new_mask() -> Result<(), Error> {
    // One batch, the same in each epoch, at a rate of 0: only the masks differ.
    let (device, rows, (model, params)) = (cpu(1), rows(0, 64), built(1, network));
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 64, &FeedConfig::default())?;
    let sgd = Sgd::new(&params);
    let losses = |accumulate: usize, seed: u64| -> Result<Vec<f32>, Error> {
        let step = Step::over(&device, &feed, &Standardisation::none(N_COLS))
            .train(&params, &sgd, &Schedule::constant(0.0))
            .accumulate(accumulate)
            .seed(seed)
            .epochs(6)
            .record(|batch, params| loss(&model, &params[0], batch))?;
        (0..6).map(|epoch| Ok(step.run_epoch(epoch)?.batches[0])).collect()
    };
    let first = losses(1, 0)?;
    let mut distinct = first.clone();
    distinct.sort_by(f32::total_cmp);
    distinct.dedup();
    assert_eq!(distinct.len(), 6, "{first:?}");
    assert_eq!(losses(1, 0)?, first, "the same seed");
    assert_eq!(losses(3, 0)?, first, "batches whose gradients are accumulated have masks of their own");
    assert!(losses(1, 1)?.iter().all(|loss| !first.contains(loss)), "another seed");
    Ok(())
}

#[test]
fn two_optimizers_share_the_masks_of_a_step() -> Result<(), Error> {
    let (device, rows) = (cpu(1), rows(0, 64));
    let ((model, params), head) = (built(1, network), built(2, network));
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 64, &FeedConfig::default())?;
    let (sgd, adam, none) = (Sgd::new(&params), Adam::new(&head.1), Schedule::constant(0.0));
    let step = Step::over(&device, &feed, &Standardisation::none(N_COLS))
        .train(&params, &sgd, &none)
        .train(&head.1, &adam, &none)
        .epochs(4)
        .record(|batch, params| loss(&model, &params[0], batch) + loss(&head.0, &params[1], batch))?;
    let losses: Vec<f32> = (0..4).map(|epoch| Ok(step.run_epoch(epoch)?.batches[0])).collect::<Result<_, Error>>()?;
    assert!((1..4).all(|i| !losses[..i].contains(&losses[i])), "{losses:?}");
    Ok(())
}

fn trainer<'a>(n_threads: usize, n_epochs: usize) -> Trainer<'a> {
    Trainer::new(&cpu(n_threads)).batch_rows(64).max_epochs(n_epochs).schedule(Schedule::constant(3e-3)).seed(5)
}

/// 500 rows in batches of 64, the last of which has 52.
fn fitted() -> Result<Vec<f32>, Error> {
    let mut model = Model::new(1, network);
    trainer(2, 3).fit(&mut model, &Binary::new(), &rows(0, 500), &rows(500, 100))?;
    model.predict(&rows(500, 50))
}

#[test]
fn replicas_draw_the_masks_of_one_device() -> Result<(), Error> {
    let expected = fitted()?;
    for n in [2, 3] {
        let runs = run_threads(n, &CONFIG, |replica| {
            let mut model = Model::new(1, network);
            trainer(1, 3).replicas(replica).fit(&mut model, &Binary::new(), &rows(0, 500), &rows(500, 100))?;
            model.predict(&rows(500, 50))
        })?;
        for run in runs {
            let worst = run.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-3, "{n} replicas: {worst}");
        }
    }
    Ok(())
}

#[test]
fn a_resumed_run_draws_the_masks_of_an_uninterrupted_one() -> Result<(), Error> {
    let (expected, root) = (fitted()?, tempfile::tempdir().expect("a temporary folder"));
    let (folder, rows_of) = (into_folder(root.path()).1, (rows(0, 500), rows(500, 100)));
    trainer(2, 2).folder(&folder).fit(&mut Model::new(1, network), &Binary::new(), &rows_of.0, &rows_of.1)?;
    let checkpoint = Checkpoint::load(folder.last())?;
    let mut resumed = Model::new(1, network);
    trainer(2, 3).folder(&folder).resume(&mut resumed, &checkpoint, &Binary::new(), &rows_of.0, &rows_of.1)?;
    assert_eq!(resumed.predict(&rows(500, 50))?, expected);
    Ok(())
}
