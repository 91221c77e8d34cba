//! After a training step, everything that reads the parameters of a model has the trained values.

use brisk_loader::{Order, Rows};
use brisk_nn::{Activation, Adam, BatchNorm, BatchNormConfig, Linear, ParametersBuilder, Schedule, Sequential};
use brisk_train::{
    EpochLoss, Error, Feed, FeedConfig, Model, Precision, Predictor, PredictorInputs, Regression, Scorer, Standardisation, Step,
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
    let scale = Standardisation::of("points", &points())?;
    let mut model = network();
    train(&mut model, &scale, |model, step| model.trained_by(step))?;
    Ok((model, scale))
}

/// Trains a model by a step.
fn train(
    model: &mut Model<Sequential>,
    scale: &Standardisation,
    then: impl FnOnce(&mut Model<Sequential>, &Step<'_>) -> Result<(), Error>,
) -> Result<EpochLoss, Error> {
    let (device, rows) = (cpu(1), points());
    let feed = Feed::new(&device, "points", &rows, Order::Shuffled { seed: 1 }, 16, &FeedConfig::default())?;
    let optimizer = Adam::new(model.params());
    let step = Step::over(&device, &feed, scale).train(model.params(), &optimizer, &Schedule::constant(0.05)).record(
        |batch, params| {
            let y = batch.forward(model.module(), &params[0]).squeeze(1);
            y.mse_loss(&batch.labels, &batch.weights, Default::default())
        },
    )?;
    let first = step.run_epoch(0)?;
    for epoch in 1..100 {
        step.run_epoch(epoch)?;
    }
    then(model, &step)?;
    Ok(first)
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

    let inputs = PredictorInputs::numbers(1).standardised(&scale);
    let recorded = Predictor::record(&other, model.params(), &inputs, |params, x| vec![model.module().forward(params, x)])?;
    check(&recorded.predict(rows.features(), &[])?, &expected, "a recorded predictor");

    let feed = Feed::new(&other, "points", &rows, Order::Sequential, 16, &FeedConfig::default())?;
    let scorer = Scorer::new(&other, model.module(), model.params(), &feed, &scale, Precision::F32)?;
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

/// Before the model takes over how the step standardised the features, nothing reads raw ones.
#[test]
fn features_in_another_scale_are_refused() -> Result<(), Error> {
    let (rows, device) = (points(), cpu(1));
    let scale = Standardisation::of("points", &rows)?;
    let mut model = network();
    train(&mut model, &scale, |_, _| Ok(()))?;
    let refused = |result: Result<(), Error>, way_out: &str| {
        let error = result.expect_err("the parameters were trained on standardised features");
        assert!(matches!(error, Error::Setting { name: "standardisation", .. }), "{error}");
        assert!(error.to_string().contains(way_out), "{error}");
    };
    let numbers = PredictorInputs::numbers(1);
    let record = |model: &Model<Sequential>, inputs: &PredictorInputs| {
        Predictor::record(&device, model.params(), inputs, |params, x| vec![model.module().forward(params, x)])
    };
    let scores = |model: &Model<Sequential>, scale: &Standardisation| {
        let feed = Feed::new(&device, "points", &rows, Order::Sequential, 16, &FeedConfig::default())?;
        scale.write(&device)?;
        Scorer::new(&device, model.module(), model.params(), &feed, scale, Precision::F32)?.scores()
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    refused(Predictor::new(&device, &model, 1).map(drop), "Model::trained_by");
    refused(record(&model, &numbers).map(drop), "PredictorInputs::standardised");
    refused(model.predict(&rows).map(drop), "Model::trained_by");
    refused(model.evaluate(&Regression::mse(), &rows).map(drop), "Model::trained_by");
    refused(model.save(&path), "Model::trained_by");
    refused(scores(&model, &Standardisation::none(1)).map(drop), "Model::trained_by");
    let other = Standardisation::new(vec![0.25], vec![2.0]);
    refused(scores(&model, &other).map(drop), "Model::trained_by");
    assert!(!path.exists(), "nothing is saved");
    let expected = scores(&model, &scale)?;
    check(&expected, &expected, "a scorer with the scale of the step");

    // What a model has taken over belongs to its values, also in a file; another step needs it again.
    model.set_standardisation(scale.clone());
    check(&Predictor::new(&device, &model, 1)?.predict(rows.features(), &[])?, &expected, "a model that was told");
    model.save(&path)?;
    let loaded = Model::load(&path, layers)?;
    refused(record(&loaded, &numbers).map(drop), "PredictorInputs::standardised");
    check(&record(&loaded, &numbers.standardised(&scale))?.predict(rows.features(), &[])?, &expected, "a file");
    train(&mut model, &Standardisation::none(1), |_, _| Ok(()))?;
    refused(model.predict(&rows).map(drop), "Model::trained_by");

    // The initial values were not trained on anything.
    let again = network();
    again.params().write_initial(&device)?;
    Predictor::new(&device, &again, 1)?;
    Ok(())
}

#[test]
fn a_second_step_continues_from_the_newest_values() -> Result<(), Error> {
    let scale = Standardisation::of("points", &points())?;
    let mut model = network();
    let first = train(&mut model, &scale, |_, _| Ok(()))?.mean;
    let second = train(&mut model, &scale, |_, _| Ok(()))?.mean;
    assert!(second < 0.1 * first, "the first epoch has a loss of {first}, that of the second step {second}");
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
