//! Tensors that are not trained belong to a run as well: running statistics move with it, are in its checkpoints, and are reset.

use brisk_loader::Order;
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, Linear, ParameterGroup, Parameters, ParametersBuilder, Schedule, Sequential,
};
use brisk_train::{Binary, Checkpoint, Error, Feed, FeedConfig, Standardisation, Step, Trainable, Trainer, TrainerConfig};

use crate::gpu::cpu;
use crate::run::{N_COLS, Setting, into_folder, rows};

#[test]
fn running_statistics_are_in_the_checkpoint_and_start_over() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let norm = BatchNormConfig { activation: Activation::celu(0.3), ..BatchNormConfig::new(16) };
    let model = Sequential(vec![
        Box::new(Linear::without_bias(&mut builder, "first", N_COLS, 16, Activation::identity())),
        Box::new(BatchNorm::new(&mut builder, "norm", &norm)),
        Box::new(Linear::new(&mut builder, "last", 16, 1, Activation::identity())),
    ]);
    let params = builder.build(1);
    let (adam, train, valid, device) = (Adam::new(&params), rows(0, 640), rows(640, 200), cpu(2));
    let config = TrainerConfig { max_epochs: 2, ..Setting::default().config };
    let trainer =
        Trainer::new(&device).config(config).prepare(Trainable::new(&model, &params, &adam), &Binary::new(), &train, &valid)?;
    let mut found = Vec::new();
    for _ in 0..2 {
        let root = tempfile::tempdir().expect("a folder for a while");
        let (mut outputs, folder) = into_folder(root.path());
        trainer.fit(&mut outputs)?;
        let last = Checkpoint::load(folder.last())?;
        for buffer in params.buffers() {
            let kept = last.f32(buffer.name(), buffer.shape())?;
            assert_eq!(kept, device.read::<f32>(buffer.values())?, "`{}` is what the device has", buffer.name());
            let start = if buffer.name() == "norm.running_mean" { 0.0 } else { 1.0 };
            assert!(kept.iter().all(|&value| value != start && value.is_finite()), "`{}` has moved: {kept:?}", buffer.name());
            found.push(kept.to_vec());
        }
    }
    assert_eq!(found[..2], found[2..], "a second fit starts from the beginning");
    Ok(())
}

/// A backbone with batch normalisation.
fn backbone() -> (Sequential, Parameters) {
    let mut builder = ParametersBuilder::new();
    let layers = Sequential(vec![
        Box::new(Linear::new(&mut builder, "first", N_COLS, 8, Activation::relu())),
        Box::new(BatchNorm::new(&mut builder, "norm", &BatchNormConfig::new(8))),
    ]);
    (layers, builder.build(1))
}

#[test]
fn a_frozen_backbone_keeps_its_running_statistics_unless_asked() -> Result<(), Error> {
    let (device, rows) = (cpu(1), rows(0, 256));
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 64, &FeedConfig::default())?;
    let scale = Standardisation::of("rows", &rows)?;
    for updates in [false, true] {
        let (layers, frozen) = backbone();
        let mut builder = ParametersBuilder::new();
        let (head, params) = (Linear::new(&mut builder, "head", 8, 1, Activation::identity()), builder.build(2));
        frozen.write_initial(&device)?;
        let adam = Adam::new(&params);
        let builder = Step::over(&device, &feed, &scale).train(&params, &adam, &Schedule::constant(1e-2));
        let builder = if updates { builder.freeze_only_parameters(&frozen) } else { builder.freeze(&frozen) };
        let step = builder.record(|batch, params| {
            let logits = head.forward(&params[0], &layers.forward(&params[1], &batch.x)).squeeze(1);
            logits.bce_with_logits(&batch.labels, &batch.weights, Default::default(), 1.0)
        })?;
        step.run_epoch(0)?;
        for buffer in frozen.buffers() {
            let stays = device.read::<f32>(buffer.values())? == buffer.initial();
            assert_eq!(stays, !updates, "`{}` of a backbone", buffer.name());
        }
        assert_eq!(device.read::<f32>(frozen.values())?, frozen.initial(), "the parameters stay");
    }
    Ok(())
}

#[test]
fn parameters_that_an_optimizer_does_not_train_are_frozen_with_their_statistics() -> Result<(), Error> {
    let (device, train, valid) = (cpu(2), rows(0, 256), rows(256, 64));
    for (rate, is_listed, updates) in [(0.0, true, false), (1.0, false, false), (0.5, true, false), (0.0, true, true)] {
        let mut builder = ParametersBuilder::new();
        let model = Sequential(vec![
            Box::new(Linear::new(&mut builder, "first", N_COLS, 8, Activation::relu())),
            Box::new(BatchNorm::new(&mut builder, "norm", &BatchNormConfig::new(8))),
            Box::new(Linear::new(&mut builder, "head", 8, 1, Activation::identity())),
        ]);
        let params = builder.build(1);
        let head = ParameterGroup::new(params.ids_where(|entry| entry.name.starts_with("head")));
        let rest = ParameterGroup::new(params.ids_where(|entry| !entry.name.starts_with("head"))).lr_factor(rate);
        let rest = if updates { rest.updating_buffers() } else { rest };
        let groups = if is_listed { vec![head, rest] } else { vec![head] };
        let adam = Adam::new(&params).groups(&params, &groups)?;
        let config = TrainerConfig { max_epochs: 1, ..Setting::default().config };
        let trainable = Trainable::new(&model, &params, &adam);
        let (task, trainer) = (Binary::new(), Trainer::new(&device).config(config));
        trainer.prepare(trainable, &task, &train, &valid)?.fit(&mut crate::run::quiet())?;
        for buffer in params.buffers() {
            let stays = device.read::<f32>(buffer.values())? == buffer.initial();
            assert_eq!(stays, !(is_listed && (rate > 0.0 || updates)), "`{}` at a rate of {rate}", buffer.name());
        }
    }
    Ok(())
}
