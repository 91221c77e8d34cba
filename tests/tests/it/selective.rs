//! Test-time augmentation of the least confident images only.

use brisk_loader::Rows;
use brisk_nn::{Activation, Bound, Linear, Mlp, MlpConfig, Module, ParametersBuilder, Philox};
use brisk_program::Device;
use brisk_tensor::Tensor;
use brisk_train::metrics::accuracy;
use brisk_train::{Binary, Classification, Model, MultiLabel, Regression, Task, Trainer, least_confident};
use brisk_vision::{View, WithViews};

use crate::gpu::{cpu, gpu};

const IMAGE: [usize; 3] = [6, 5, 2];
const LEN: usize = 60;
const N: usize = 90;
const N_CLASSES: usize = 4;
/// The scores of a classification.
const NAMES: [&str; 3] = ["loss", "accuracy", "log_loss"];

/// A network for images, given as rows.
#[derive(Debug, Clone)]
struct Flattened(Mlp);

impl Flattened {
    fn new(params: &mut ParametersBuilder) -> Self {
        let activation = Activation::relu();
        Self(Mlp::new(params, &MlpConfig { n_inputs: LEN, hidden: vec![8], n_outputs: N_CLASSES, activation }))
    }
}

impl Module for Flattened {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        self.0.forward(params, &x.reshape(&[x.shape()[0], LEN]))
    }
}

/// Noise, brighter to the left or to the right, above or below.
fn images() -> Rows<Vec<u8>, Vec<f32>> {
    let philox = Philox::new(3);
    let pixel = |row: usize, at: usize| {
        let (line, column, is_even) = (at / 10, at / 2 % 5, row.is_multiple_of(2));
        let is_bright = is_even == if row % 4 < 2 { column < 2 } else { line < 3 };
        (100.0 + 60.0 * f32::from(u8::from(is_bright)) + 90.0 * philox.uniform(row as u32, at as u64)) as u8
    };
    let pixels = (0..N * LEN).map(|i| pixel(i / LEN, i % LEN)).collect();
    Rows::new(pixels, (0..N).map(|row| (row % N_CLASSES) as f32).collect(), LEN).expect("a label for each image")
}

/// A model that has been trained on `device`, where it then predicts.
fn trained(device: &Device) -> Model<Flattened> {
    let (mut model, rows) = (Model::new(7, Flattened::new), images());
    let mut trainer = Trainer::new(device).batch_rows(30).max_epochs(3).learning_rate(1e-2);
    trainer.fit(&mut model, &Classification::of(N_CLASSES), &rows, &rows).expect("a run");
    model
}

fn six(model: &Model<Flattened>) -> WithViews<Flattened> {
    WithViews { model: model.module().clone(), image: IMAGE, views: View::six_equal() }
}

/// The rows in ascending order of the largest probability, in f64.
fn by_confidence(logits: &[f32]) -> Vec<u32> {
    let confidence = |row: u32| {
        let logits = &logits[row as usize * N_CLASSES..][..N_CLASSES];
        let exp = logits.iter().map(|&logit| f64::from(logit).exp());
        exp.clone().fold(0.0, f64::max) / exp.sum::<f64>()
    };
    let mut rows: Vec<u32> = (0..N as u32).collect();
    rows.sort_by(|&a, &b| confidence(a).total_cmp(&confidence(b)));
    rows
}

#[test]
fn a_share_of_the_images_is_seen_in_several_views() -> Result<(), brisk_train::Error> {
    for device in [Some(cpu(2)), gpu()].into_iter().flatten() {
        let (model, rows, task) = (trained(&device), images(), Classification::of(N_CLASSES));
        let careful = six(&model);
        let plain = model.predict(&rows)?;

        let none = model.predict_selectively(&rows, &careful, 0.0)?;
        assert_eq!((none.result.as_slice(), none.careful_rows), (plain.as_slice(), vec![]));
        let all = model.predict_selectively(&rows, &careful, 1.0)?;
        assert_eq!(all.careful_rows, (0..N as u32).collect::<Vec<_>>());
        // A third of the images are 30.
        let some = model.predict_selectively(&rows, &careful, 1.0 / 3.0)?;
        let mut expected = by_confidence(&plain)[..30].to_vec();
        expected.sort_unstable();
        assert_eq!(some.careful_rows, expected, "the least confident");
        for row in 0..N {
            let [found, plain, all] = [&some.result, &plain, &all.result].map(|outputs| &outputs[row * N_CLASSES..][..N_CLASSES]);
            if expected.contains(&(row as u32)) {
                // Batches of different sizes may add up in a different order.
                assert!(found.iter().zip(all).all(|(a, b)| (a - b).abs() < 1e-5), "row {row}: {found:?}, expected {all:?}");
            } else {
                assert_eq!(found, plain, "row {row}");
            }
        }

        let scores = model.evaluate_selectively(&task, &rows, &careful, 1.0 / 3.0)?;
        assert_eq!(scores.careful_rows, some.careful_rows);
        let labels: Vec<f32> = (0..N).map(|row| (row % N_CLASSES) as f32).collect();
        assert_eq!(scores.result.get("accuracy"), Some(accuracy(&some.result, N_CLASSES, &labels)?));
        let check = |found: Option<f64>, expected: Option<f64>| {
            let (Some(found), Some(expected)) = (found, expected) else { panic!("{found:?}, expected {expected:?}") };
            assert!((found - expected).abs() < 1e-6, "{found}, expected {expected}");
        };
        check(scores.result.get("loss"), scores.result.get("log_loss"));
        let all_outputs = all.result;
        let [none, all] = [0.0, 1.0].map(|share| model.evaluate_selectively(&task, &rows, &careful, share));
        let (none, all, plain) = (none?.result, all?.result, model.evaluate(&task, &rows)?);
        NAMES.iter().for_each(|name| check(none.get(name), plain.get(name)));

        let with_views = model.map(|_| careful);
        assert_eq!(with_views.predict(&rows)?, all_outputs, "all images in six views");
        let in_six = with_views.evaluate(&task, &rows)?;
        NAMES.iter().for_each(|name| check(all.get(name), in_six.get(name)));
    }
    Ok(())
}

#[test]
fn rows_of_equal_confidence_are_taken_in_their_order() -> Result<(), brisk_train::Error> {
    #[track_caller]
    fn check(logits: &[f32], n_outputs: usize, share: f64, expected: &[u32]) {
        assert_eq!(least_confident(logits, n_outputs, share).expect("rows"), expected, "{logits:?}");
    }
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    check(&[1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 1.0], 2, 0.5, &[0, 1]);
    check(&[0.5, -0.5, -0.1, 3.0, 0.1], 1, 0.4, &[2, 4]);
    // Nearly certain: probabilities that round to 1 are still distinguished.
    check(&[300.0, 0.0, 200.0, 0.0, 400.0, 0.0], 2, 1.0 / 3.0, &[1]);
    check(&[0.0, 0.0, nan, 5.0, 1.0, 0.0, inf, 0.0, 0.0, 0.0], 2, 0.2, &[1]);
    check(&[-inf, 0.0, inf, inf, 2.0, 0.0, -inf, -inf], 2, 0.5, &[1, 3]);
    check(&[], 3, 0.5, &[]);
    // Half of three rows, rounded.
    check(&[0.3, 0.1, 0.2], 1, 0.5, &[1, 2]);
    let error = least_confident(&[0.5; 5], 2, 0.5).expect_err("half a row").to_string();
    assert!(error.contains("least_confident") && error.contains("whole rows"), "{error}");
    assert!(least_confident(&[], 0, 0.5).is_err(), "rows of no logits");

    // All images are equal: the first third of them.
    let device = cpu(1);
    let model = trained(&device);
    let rows = Rows::new(vec![77_u8; N * LEN], vec![1.0; N], LEN).expect("a label for each image");
    let found = model.predict_selectively(&rows, &six(&model), 1.0 / 3.0)?;
    assert_eq!(found.careful_rows, (0..30).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn what_cannot_be_selected_is_refused() {
    let (model, rows) = (Model::new(7, Flattened::new), images());
    let careful = six(&model);
    for (share, found) in [(f64::NAN, "NaN"), (-0.1, "-0.1"), (1.5, "1.5"), (f64::INFINITY, "inf")] {
        let expected = format!("share: found {found}, expected a number from 0 to 1");
        let task = Classification::of(N_CLASSES);
        let errors = [
            least_confident(&[0.5], 1, share).expect_err("a share"),
            model.predict_selectively(&rows, &careful, share).expect_err("a share"),
            model.evaluate_selectively(&task, &rows, &careful, share).expect_err("a share"),
        ];
        errors.iter().for_each(|error| assert_eq!(error.to_string(), expected));
    }
    let tasks: [&dyn Task; 2] = [&Regression::mse(), &MultiLabel::of(N_CLASSES)];
    for task in tasks {
        let error = model.evaluate_selectively(task, &rows, &careful, 0.5).expect_err("no classes").to_string();
        assert!(error.contains("one label that is a class"), "{error}");
    }
    /// One output only.
    #[derive(Debug)]
    struct Narrow(Flattened);
    impl Module for Narrow {
        fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
            self.0.forward(params, x).narrow(1, 0..1)
        }
    }
    let narrow = Narrow(model.module().clone());
    let error = model.predict_selectively(&rows, &narrow, 0.5).expect_err("one output").to_string();
    assert!(error.contains("[45, 4]") && error.contains("[45, 1]"), "{error}");
}

#[test]
fn a_single_logit_is_sure_far_from_0() -> Result<(), brisk_train::Error> {
    let rows = Rows::new(vec![3.0, -0.1, 0.2, -4.0, 5.0, 0.05], vec![1.0, 0.0, 1.0, 0.0, 1.0, 1.0], 1).expect("labels");
    let mut model = Model::new(7, |params| Linear::new(params, "head", 1, 1, Activation::identity()));
    let weight = model.params().ids_where(|entry| entry.name == "head.weight")[0];
    model.params_mut().set_initial(weight, &[1.0])?;
    let found = model.evaluate_selectively(&Binary::new(), &rows, model.module(), 0.5)?;
    assert_eq!(found.careful_rows, [1, 2, 5]);
    assert_eq!(
        found.result.get("loss").map(|loss| (loss * 1e6) as i64),
        model.evaluate(&Binary::new(), &rows)?.get("loss").map(|loss| (loss * 1e6) as i64)
    );
    Ok(())
}
