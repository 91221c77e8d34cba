//! Training steps that are recorded by hand through `Step`.

use brisk_loader::{Order, Rows};
use brisk_nn::tensor::{LossReduction, Precision, Tensor};
use brisk_nn::{Activation, Adam, Linear, Parameters, ParametersBuilder, Schedule, Sgd};
use brisk_train::{BatchTensors, Error, Feed, FeedConfig, GradientClip, Standardisation, Step};

use crate::gpu::cpu;

/// `y = 3 - 2 x` at 100 points.
fn points() -> Rows {
    let x: Vec<f32> = (0..100).map(|i| i as f32 / 100.0).collect();
    let y = x.iter().map(|x| 3.0 - 2.0 * x).collect();
    Rows::new(x, y, 1).expect("as many labels as rows")
}

fn line(name: &str) -> (Linear, Parameters) {
    let mut builder = ParametersBuilder::new();
    (Linear::new(&mut builder, name, 1, 1, Activation::identity()), builder.build(7))
}

#[test]
fn an_epoch_starts_with_its_first_batch_each_time() -> Result<(), Error> {
    let (device, rows, (line, params)) = (cpu(1), points(), line("line"));
    let feed = Feed::new(&device, "points", &rows, Order::Sequential, 30, &FeedConfig::default())?;
    let sgd = Sgd::new(&params);
    // A rate of 0 does not change the parameters, so that the losses of all epochs are the same.
    let step = Step::over(&device, &feed, &Standardisation::none(1)).train(&params, &sgd, &Schedule::constant(0.0)).record(
        |batch, params| line.forward(&params[0], &batch.x).squeeze(1).mse_loss(&batch.labels, &batch.weights, Default::default()),
    )?;
    let first = step.run_epoch(0)?;
    assert_eq!(first.batches.len(), 4, "the last batch is short");
    for epoch in 1..3 {
        assert_eq!(step.run_epoch(epoch)?, first, "epoch {epoch}");
    }
    Ok(())
}

#[test]
fn two_models_train_in_one_step_as_in_two() -> Result<(), Error> {
    let (device, rows) = (cpu(1), points());
    let feed = Feed::new(&device, "points", &rows, Order::Shuffled { seed: 1 }, 20, &FeedConfig::default())?;
    let (scale, lr) = (Standardisation::none(1), Schedule::constant(0.05));
    for precision in [Precision::F32, Precision::F16] {
        let ((first, a), (second, b)) = (line("first"), line("second"));
        let ((adam_a, adam_b), (sgd_a, sgd_b)) = ((Adam::new(&a), Adam::new(&b)), (Sgd::new(&a), Sgd::new(&b)));
        let builder = || Step::over(&device, &feed, &scale).precision(precision).clip(GradientClip::Norm(10.0));
        let loss = |line: &Linear, params: &brisk_nn::Bound, batch: &BatchTensors| {
            line.forward(params, &batch.x).squeeze(1).l1_loss(&batch.labels, LossReduction::Mean)
        };
        let together = builder()
            .train(&a, &adam_a, &lr)
            .train(&b, &sgd_b, &lr)
            .record(|batch, params| loss(&first, &params[0], batch) + loss(&second, &params[1], batch))?;
        for epoch in 0..5 {
            together.run_epoch(epoch)?;
        }
        let expected: [Vec<f32>; 2] = [device.read(a.values())?, device.read(b.values())?];
        [&a, &b].into_iter().try_for_each(|params| params.write_initial(&device))?;
        let steps = [
            builder().train(&a, &adam_a, &lr).record(|batch, params| loss(&first, &params[0], batch))?,
            builder().train(&b, &sgd_b, &lr).record(|batch, params| loss(&second, &params[0], batch))?,
        ];
        for epoch in 0..5 {
            Step::run_epoch_in_turn(&[&steps[0], &steps[1]], epoch)?;
        }
        let found: [Vec<f32>; 2] = [device.read(a.values())?, device.read(b.values())?];
        assert_eq!(found, expected, "{precision}");
        drop(sgd_a);
        drop(adam_b);
    }
    Ok(())
}

#[test]
fn frozen_parameters_pass_gradients_on_and_stay() -> Result<(), Error> {
    let (device, rows, (inner, a), (outer, b)) = (cpu(1), points(), line("inner"), line("outer"));
    let feed = Feed::new(&device, "points", &rows, Order::Sequential, 50, &FeedConfig::default())?;
    let adam = Adam::new(&a);
    b.write_initial(&device)?;
    let before: Vec<f32> = device.read(b.values())?;
    let step = Step::over(&device, &feed, &Standardisation::none(1))
        .train(&a, &adam, &Schedule::constant(0.05))
        .freeze(&b)
        .record(|batch, params| {
            let x = outer.forward(&params[1], &inner.forward(&params[0], &batch.x));
            x.squeeze(1).l1_loss(&batch.labels, LossReduction::Mean)
        })?;
    let (first, mut last) = (step.run_epoch(0)?.mean, f64::NAN);
    for epoch in 1..100 {
        last = step.run_epoch(epoch)?.mean;
    }
    assert!(last < 0.2 * first, "{first} to {last}");
    assert_eq!(device.read::<f32>(b.values())?, before, "what is frozen does not change");
    Ok(())
}

#[test]
fn mistakes_are_named() -> Result<(), Error> {
    let (device, rows, (line, params)) = (cpu(1), points(), line("line"));
    let feed = Feed::new(&device, "points", &rows, Order::Sequential, 50, &FeedConfig::default())?;
    let (scale, sgd) = (Standardisation::none(1), Sgd::new(&params));
    let nothing = Step::over(&device, &feed, &scale).record(|batch, _| batch.x.sum(..)).expect_err("nothing is trained");
    assert!(nothing.to_string().contains("a step without parameters"), "{nothing}");
    // In f16, steps whose losses are not finite are skipped, but an epoch without a finite loss has no mean.
    for precision in [Precision::F32, Precision::F16] {
        let lr = Schedule::constant(1e30);
        let builder = Step::over(&device, &feed, &scale).precision(precision).train(&params, &sgd, &lr);
        let step = builder.record(|batch, params| {
            line.forward(&params[0], &batch.x).squeeze(1).mse_loss(&batch.labels, &batch.weights, Default::default())
        })?;
        let error = (0..4).map(|epoch| step.run_epoch(epoch)).find_map(Result::err).expect("it diverges");
        assert!(matches!(error, Error::NonFiniteLoss { .. }), "{precision}: {error}");
    }
    Ok(())
}

#[test]
fn a_schedule_has_the_epochs_that_were_planned() -> Result<(), Error> {
    let (device, rows, (line, params)) = (cpu(1), points(), line("line"));
    let feed = Feed::new(&device, "points", &rows, Order::Sequential, 50, &FeedConfig::default())?;
    let (scale, sgd) = (Standardisation::none(1), Sgd::new(&params));
    let record = |schedule: Schedule, n_epochs: Option<usize>| {
        let builder = Step::over(&device, &feed, &scale).train(&params, &sgd, &schedule);
        let builder = match n_epochs {
            None => builder,
            Some(n_epochs) => builder.epochs(n_epochs),
        };
        builder.record(|batch, params| {
            line.forward(&params[0], &batch.x).squeeze(1).mse_loss(&batch.labels, &batch.weights, Default::default())
        })
    };
    for schedule in [Schedule::one_cycle(0.1), Schedule::constant(0.1).warmup(0.1), Schedule::from_fn(|_, _| 0.1)] {
        let error = record(schedule.clone(), None).expect_err("it depends on the number of epochs");
        assert!(matches!(error, Error::Setting { name: "epochs", .. }), "{error}");
        let step = record(schedule, Some(2))?;
        step.run_epoch(0)?;
        step.run_epoch(1)?;
        let error = step.run_epoch(2).expect_err("two epochs were planned");
        assert!(matches!(error, Error::Setting { name: "epochs", .. }) && error.to_string().contains("epoch 3 of 2"), "{error}");
    }
    for (schedule, n_epochs) in [(Schedule::constant(0.1), None), (Schedule::step(0.1, 3, 0.5), Some(1))] {
        record(schedule, n_epochs)?.run_epoch(5)?;
    }
    Ok(())
}

/// 90 points in three batches.
fn weighted(weight: impl Fn(usize) -> f32) -> Rows {
    let points = points();
    let (x, y) = (points.features()[..90].to_vec(), points.labels()[..90].to_vec());
    let rows = Rows::new(x, y, 1).expect("as many labels as rows");
    rows.with_weights((0..90).map(weight).collect::<Vec<_>>()).expect("a weight for each row")
}

#[test]
fn a_batch_whose_weights_are_all_zero_changes_nothing() -> Result<(), Error> {
    let device = cpu(1);
    let train = |rows: &Rows, reduce: fn(&Tensor, &BatchTensors) -> Tensor| {
        let (line, params) = line("line");
        let feed = Feed::new(&device, "points", rows, Order::Sequential, 30, &FeedConfig::default())?;
        let sgd = Sgd::new(&params);
        let step = Step::over(&device, &feed, &Standardisation::none(1))
            .train(&params, &sgd, &Schedule::constant(0.1))
            .record(|batch, params| reduce(&line.forward(&params[0], &batch.x).squeeze(1), batch))?;
        let losses = [step.run_epoch(0)?, step.run_epoch(1)?];
        Ok::<_, Error>((losses, device.read::<f32>(params.values())?))
    };
    // The points of the first batch and the last, as if the second did not exist.
    let (all, weightless) = (weighted(|_| 2.0), weighted(|row| if (30..60).contains(&row) { 0.0 } else { 2.0 }));
    let without = |values: &[f32]| [&values[..30], &values[60..]].concat();
    let others = Rows::new(without(all.features()), without(all.labels()), 1).expect("as many labels as rows");
    let others = others.with_weights(vec![2.0; 60]).expect("a weight for each row");
    let mse = |y: &Tensor, batch: &BatchTensors| y.mse_loss(&batch.labels, &batch.weights, Default::default());
    let own = |y: &Tensor, batch: &BatchTensors| {
        let losses = y.l1_loss(&batch.labels, LossReduction::None);
        batch.labelled(Default::default()).reduce(&losses)
    };
    for reduce in [mse as fn(&_, &_) -> _, own] {
        let (found, params) = train(&weightless, reduce)?;
        let (expected, expected_params) = train(&others, reduce)?;
        assert!(params == expected_params, "bit-identical: {params:?}, {expected_params:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.batches, [expected.batches[0], 0.0, expected.batches[1]]);
        }
        let (found, expected) = (train(&all, reduce)?, train(&weighted(|_| 1.0), reduce)?);
        assert_eq!(found.1, expected.1, "otherwise equal weights mean what no weights do");
    }
    Ok(())
}
