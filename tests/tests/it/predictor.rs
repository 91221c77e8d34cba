//! Predictors: any number of rows, several outputs, several threads.

use brisk_loader::Rows;
use brisk_nn::{Activation, BatchNorm, BatchNormConfig, CategoricalColumn, Linear, Mlp, MlpConfig, Module, Sequential};
use brisk_train::{Binary, Cell, Error, Model, Predictor, PredictorInputs, Trainer};

use crate::gpu::cpu;
use crate::run::noise;

fn features(n_rows: usize) -> Vec<f32> {
    (0..n_rows).flat_map(|row| [0, 1, 2].map(|col| 10.0 * noise(row, col) + 3.0)).collect()
}

fn rows(n_rows: usize) -> Rows {
    let features = features(n_rows);
    let labels = features.chunks_exact(3).map(|x| f32::from(x[0] > x[1])).collect();
    Rows::new(features, labels, 3).expect("a label for each row")
}

#[track_caller]
fn check_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "as many outputs");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-5 + 1e-5 * expected.abs(), "output {i}: {found}, expected {expected}");
    }
}

/// A model with running statistics, trained for two epochs.
fn trained() -> Result<Model<Sequential>, Error> {
    let mut model = Model::new(7, |p| {
        let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(16) };
        let layers: Vec<Box<dyn Module>> = vec![
            Box::new(Linear::new(p, "first", 3, 16, Activation::identity())),
            Box::new(BatchNorm::new(p, "norm", &norm)),
            Box::new(Linear::new(p, "last", 16, 1, Activation::identity())),
        ];
        Sequential(layers)
    });
    let [train, valid] = brisk_loader::split(rows(400), 1, [0.8, 0.2]).expect("fractions");
    Trainer::new(&cpu(1)).batch_rows(32).max_epochs(2).learning_rate(1e-2).fit(&mut model, &Binary::new(), &train, &valid)?;
    Ok(model)
}

#[test]
fn any_number_of_rows_is_predicted_as_the_model_does() -> Result<(), Error> {
    let model = trained()?;
    let predictor = Predictor::new(&cpu(1), &model, 3)?;
    let expected = model.predict(&rows(5000))?;
    let all = features(5000);
    for n_rows in [0, 1, 2, 3, 8, 15, 16, 17, 100, 127, 128, 256, 300, 2047, 4096, 4097, 5000] {
        check_close(&predictor.predict(&all[..3 * n_rows], &[])?, &expected[..n_rows]);
    }
    // Short batches after long ones: values left over from these change nothing.
    check_close(&predictor.predict(&all[..3 * 9], &[])?, &expected[..9]);
    Ok(())
}

#[test]
fn threads_share_a_predictor() -> Result<(), Error> {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let model = trained()?;
    let predictor = Predictor::new(&cpu(2), &model, 3)?;
    is_shared(&predictor);
    let (all, expected) = (features(600), model.predict(&rows(600))?);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (predictor, all, expected) = (&predictor, &all, &expected);
            scope.spawn(move || {
                for first in (thread * 7..500).step_by(13) {
                    let n_rows = 1 + (first * 31) % 90;
                    let found = predictor.predict(&all[3 * first..3 * (first + n_rows)], &[]).expect("rows of three columns");
                    check_close(&found, &expected[first..first + n_rows]);
                }
            });
        }
    });
    Ok(())
}

#[test]
fn training_the_model_further_does_not_change_its_predictor() -> Result<(), Error> {
    let (device, mut model) = (cpu(1), trained()?);
    let predictor = Predictor::new(&device, &model, 3)?;
    let before = predictor.predict(&features(20), &[])?;
    let [train, valid] = brisk_loader::split(rows(400), 1, [0.8, 0.2]).expect("fractions");
    Trainer::new(&device).batch_rows(32).max_epochs(1).learning_rate(1e-1).fit(&mut model, &Binary::new(), &train, &valid)?;
    assert_eq!(predictor.predict(&features(20), &[])?, before);
    assert_ne!(Predictor::new(&device, &model, 3)?.predict(&features(20), &[])?, before);
    Ok(())
}

#[test]
fn features_that_are_not_finite_are_refused() -> Result<(), Error> {
    let predictor = Predictor::new(&cpu(1), &trained()?, 3)?;
    for (n_rows, row, column, bad) in [(1, 0, 2, f32::NAN), (20, 17, 0, f32::INFINITY), (5000, 4999, 1, f32::NEG_INFINITY)] {
        let mut features = features(n_rows);
        features[3 * row + column] = bad;
        let error = predictor.predict(&features, &[]).expect_err("a value is missing");
        let Error::Value { row: found_row, cell, found, .. } = error else { panic!("{error}") };
        assert_eq!((found_row, cell, found), (row, Cell::Column(column), bad.to_string()));
    }
    Ok(())
}

#[test]
fn rows_that_do_not_fit_are_refused() -> Result<(), Error> {
    let sizes = MlpConfig { n_inputs: 2, hidden: vec![4], n_outputs: 1, activation: Activation::relu() };
    let categories = [CategoricalColumn { n_codes: 3, dim: 2 }];
    let model = Model::new(7, |params| Mlp::with_categories(params, &sizes, &categories));
    let predictor = Predictor::new(&cpu(1), &model, 2)?;
    let refused = |features: &[f32], codes: &[u32]| predictor.predict(features, codes).expect_err("it does not fit").to_string();
    assert_eq!(predictor.predict(&[0.5; 4], &[0, 2])?.len(), 2);
    assert!(refused(&[0.5; 3], &[0]).contains("a multiple of 2"), "{}", refused(&[0.5; 3], &[0]));
    assert!(refused(&[0.5; 4], &[0]).contains("[2, 1]"), "{}", refused(&[0.5; 4], &[0]));
    let error = predictor.predict(&[0.5; 4], &[0, 3]).expect_err("there are three codes");
    assert!(matches!(error, Error::Value { row: 1, cell: Cell::Code(0), .. }), "{error}");
    Predictor::new(&cpu(1), &model, 3).expect_err("the model has two columns");

    let inputs = PredictorInputs::numbers(2);
    let none = Predictor::record(&cpu(1), model.params(), &inputs, |_, _| Vec::new()).expect_err("no outputs").to_string();
    assert!(none.contains("at least one tensor"), "{none}");
    let error = Predictor::record(&cpu(1), model.params(), &inputs, |_, x| vec![x.sum(..)]).expect_err("no rows").to_string();
    assert!(error.contains("a result for each row"), "{error}");
    Ok(())
}
