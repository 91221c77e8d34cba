//! After a training step, everything that reads the parameters of a model has the trained values.

use brisk_loader::{Order, Rows};
use brisk_nn::{Activation, Adam, BatchNorm, BatchNormConfig, Linear, ParametersBuilder, Schedule, Sequential};
use brisk_train::{
    Error, Feed, FeedConfig, Model, Precision, Predictor, PredictorInputs, Regression, Scorer, Standardisation, Step,
};

use crate::gpu::cpu;

/// `y = 3 - 2 x` at 64 points.
fn points() -> Rows {
    let x: Vec<f32> = (0..64).map(|i| i as f32 / 64.0).collect();
    let y = x.iter().map(|x| 3.0 - 2.0 * x).collect();
    Rows::new(x, y, 1).expect("as many labels as rows")
}

/// A model with parameters and buffers, trained by a step; and the scale of its input.
fn trained() -> Result<(Model<Sequential>, Standardisation), Error> {
    let (device, rows) = (cpu(1), points());
    let scale = Standardisation::of("points", &rows)?;
    let feed = Feed::new(&device, "points", &rows, Order::Shuffled { seed: 1 }, 16, &FeedConfig::default())?;
    let mut model = network();
    let optimizer = Adam::new(model.params());
    let step = Step::over(&device, &feed, &scale).train(model.params(), &optimizer, &Schedule::constant(0.05)).record(
        |batch, params| {
            let y = batch.forward(model.module(), &params[0]).squeeze(1);
            y.mse_loss(&batch.labels, &batch.weights, Default::default())
        },
    )?;
    for epoch in 0..100 {
        step.run_epoch(epoch)?;
    }
    model.trained_by(&step)?;
    Ok((model, scale))
}

fn network() -> Model<Sequential> {
    Model::new(7, layers)
}

fn layers(params: &mut ParametersBuilder) -> Sequential {
    let hidden = Linear::new(params, "hidden", 1, 8, Activation::tanh());
    let norm = BatchNorm::new(params, "norm", &BatchNormConfig::new(8));
    Sequential(vec![Box::new(hidden), Box::new(norm), Box::new(Linear::new(params, "head", 8, 1, Activation::identity()))])
}

/// Within 1e-5 of the predictions of the trained model, which are within 0.5 of the labels.
fn check(found: &[f32], expected: &[f32], who: &str) {
    let labels = points().labels().to_vec();
    assert_eq!(found.len(), labels.len(), "{who}");
    for ((found, expected), label) in found.iter().zip(expected).zip(&labels) {
        assert!(
            (found - expected).abs() < 1e-5 && (found - label).abs() < 0.5,
            "{who}: {found}, expected {expected}, label {label}"
        );
    }
}

#[test]
fn all_readers_have_the_trained_values() -> Result<(), Error> {
    let (model, scale) = trained()?;
    let (rows, device, other) = (points(), cpu(1), cpu(2));
    let expected = model.predict(&rows)?;
    check(&expected, &expected, "predict");
    check(&Predictor::new(&device, &model, 1)?.predict(rows.features(), &[])?, &expected, "a predictor");

    let inputs = PredictorInputs::numbers(1);
    let recorded = Predictor::record(&other, model.params(), &inputs, |params, x, _| {
        let row = |name, values: &[f32]| x.graph().constant(name, values, &[1, 1]);
        let x = x.sub(&row("mean", scale.mean())).multiply(&row("inv_std", scale.inv_std()));
        vec![model.module().forward(params, &x)]
    })?;
    check(&recorded.predict(rows.features(), &[])?, &expected, "a recorded predictor");

    let feed = Feed::new(&other, "points", &rows, Order::Sequential, 16, &FeedConfig::default())?;
    let scorer = Scorer::of_feed(&other, model.module(), model.params(), &feed, &scale, Precision::F32)?;
    scale.write(&other)?;
    check(&scorer.scores()?, &expected, "a scorer on another device");

    let path = tempfile::tempdir().expect("a temporary folder");
    let path = path.path().join("model.safetensors");
    model.save(&path)?;
    let loaded = Model::load(&path, layers)?;
    check(&loaded.on(&device).predict(&rows)?, &expected, "a loaded model");
    let loss = model.evaluate(&Regression::mse(), &rows)?.get("loss").expect("a loss");
    assert!(loss < 0.1, "an evaluation: {loss}");
    Ok(())
}

#[test]
fn a_step_of_other_parameters_is_refused() -> Result<(), Error> {
    let (device, rows) = (cpu(1), points());
    let feed = Feed::new(&device, "points", &rows, Order::Sequential, 16, &FeedConfig::default())?;
    let (mut model, other) = (network(), network());
    let optimizer = Adam::new(other.params());
    let step = Step::over(&device, &feed, &Standardisation::none(1))
        .train(other.params(), &optimizer, &Schedule::constant(0.05))
        .record(|batch, params| batch.forward(other.module(), &params[0]).sum(..))?;
    assert!(matches!(model.trained_by(&step), Err(Error::Setting { name: "step", .. })));
    Ok(())
}
