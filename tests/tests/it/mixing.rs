//! Mixup and CutMix: the images of a batch, the loss of mixed labels, and training on several replicas.

use brisk_loader::Rows;
use brisk_nn::{Activation, Augment, BatchSource, Mlp, MlpConfig, ParametersBuilder, Philox};
use brisk_program::{Device, Persistent};
use brisk_tensor::program::kernels::{order_in_epoch, sequential_order};
use brisk_tensor::{DType, Graph, Reduction, Tensor, Windows};
use brisk_train::{BatchTensors, Classification, DataParallelConfig, Error, Model, PartnerLabels, Task, Trainer, run_threads};
use brisk_vision::{AugmentedImages, Flip, ImageAugmentation, MixedImages, Mixing};

use crate::gpu::{cpu, gpu};
use crate::losses::Losses;

const IMAGE: [usize; 3] = [5, 6, 3];
const LEN: usize = 5 * 6 * 3;
const N: usize = 40;
const SEED: u64 = 5;
const EPOCH: u32 = 3;
const MIXINGS: [Mixing; 2] = [Mixing::Mixup { alpha: 0.4 }, Mixing::CutMix { alpha: 1.0 }];

fn augmented() -> AugmentedImages {
    let augmentation = ImageAugmentation { pad: 2, flip: Flip::Random, seed: SEED, ..ImageAugmentation::default() };
    AugmentedImages { image: IMAGE, augmentation }
}

fn pixels() -> Vec<u8> {
    (0..N * LEN).map(|i| (i * i % 251) as u8).collect()
}

/// All images as one batch, converted to `dtype`; and the shares, if images are mixed.
fn batch_of(device: &Device, augment: &dyn Augment, dtype: DType) -> (Vec<f32>, Vec<f32>) {
    let table = Windows::new("images", DType::U8, N, LEN, 1 << 20);
    table.write(device, 0, &pixels()).expect("pixels");
    let [mean, inv_std] = ["mean", "inv_std"].map(|name| Persistent::new(name, DType::F32, LEN));
    device.write(&mean, &[100.0_f32; LEN]).expect("means");
    device.write(&inv_std, &[0.01_f32; LEN]).expect("deviations");
    let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    device.write(&order, &order_in_epoch(sequential_order(N as u32, N as u32, 0), EPOCH)).expect("an order");
    device.write(&state, &[0_u32; 4]).expect("a state");

    let graph = Graph::inference("batch");
    let rows = graph.batch(&order, &state, N);
    let source = BatchSource { batch: &rows, features: &table, mean: &mean, inv_std: &inv_std };
    let made = augment.record(&graph, &source);
    let (all, shares) = (Persistent::new("all", DType::F32, N * LEN), Persistent::new("shares", DType::F32, N));
    graph.store(&made.x.cast(dtype).cast(DType::F32), &state, &all);
    if let Some(mixed) = made.mixed {
        graph.store(&mixed.shares, &state, &shares);
    }
    graph.advance(&state);
    graph.compile(device).expect("a program").run(1).expect("a batch");
    (device.read(&all).expect("images"), device.read(&shares).expect("shares"))
}

/// Images mixed one pixel after another, in f64, and the shares.
fn reference(images: &[f32], mixing: Mixing) -> (Vec<f64>, Vec<f64>) {
    let [height, width, n_channels] = IMAGE;
    let quantiles = mixing.quantiles().expect("a distribution");
    let (mut mixed, mut shares) = (Vec::new(), Vec::new());
    for row in 0..N {
        let [partner, share, y, x] =
            Philox::new(SEED).block([row as u32, EPOCH, 3, 0]).map(|word| f64::from(word) / 4_294_967_296.0);
        let partner = (partner * N as f64) as usize;
        let at = share * 1024.0;
        let [low, high] = [0, 1].map(|i| f64::from(quantiles[at as usize + i]) / 4_294_967_296.0);
        let drawn = low + (high - low) * at.fract();
        let bounds = |centre: f64, len: usize| {
            let (centre, reach) = ((centre * len as f64) as i64, (drawn * len as f64) as i64);
            (centre - reach).max(0)..(centre + reach).min(len as i64)
        };
        let (lines, columns) = (bounds(y, height), bounds(x, width));
        let mut sum = 0.0;
        for at in 0..LEN {
            let (line, column) = ((at / n_channels / width) as i64, (at / n_channels % width) as i64);
            let share = match mixing {
                Mixing::Mixup { .. } => drawn,
                _ => f64::from(u8::from(lines.contains(&line) && columns.contains(&column))),
            };
            let [own, other] = [row, partner].map(|row| f64::from(images[row * LEN + at]));
            mixed.push((1.0 - share) * own + share * other);
            sum += share;
        }
        shares.push(sum / LEN as f64);
    }
    (mixed, shares)
}

#[test]
fn mixed_images_equal_the_reference_pixel_for_pixel() {
    let devices: Vec<Device> = [Some(cpu(2)), gpu()].into_iter().flatten().collect();
    let (images, _) = batch_of(&devices[0], &augmented(), DType::F32);
    for mixing in MIXINGS {
        let (expected, expected_shares) = reference(&images, mixing);
        for device in &devices {
            // Values are up to 2: half a unit in the last place of each type.
            for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F16, 1.1e-3), (DType::Bf16, 8.1e-3)] {
                let augment = MixedImages { images: augmented(), mixing, seed: SEED };
                let (found, shares) = batch_of(device, &augment, dtype);
                for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let (image, at) = (i / LEN, i % LEN);
                    assert!(
                        (f64::from(*found) - expected).abs() <= tolerance,
                        "{mixing:?} in {dtype:?} on {}: value {at} of image {image} is {found}, expected {expected}",
                        device.info()
                    );
                }
                for (found, expected) in shares.iter().zip(&expected_shares) {
                    assert!((f64::from(*found) - expected).abs() < 1e-6, "share {found}, expected {expected}");
                }
            }
        }
        assert!(expected_shares.iter().any(|share| *share > 0.1 && *share < 0.9), "{mixing:?} mixes: {expected_shares:?}");
    }
}

/// The loss and its gradient of four rows of five classes with mixed labels.
fn soft_loss(device: &Device, task: &Classification, weights: &[f32; 4], reduction: Reduction) -> (f32, Vec<f32>) {
    let logits = [
        [0.5, -1.0, 2.0, 0.25, 1.5],
        [1.0, 0.0, -0.5, 0.75, -2.0],
        [-1.25, 0.5, 0.0, 1.0, 2.5],
        [3.0, -0.25, 1.25, 0.0, 0.5_f32],
    ];
    let [values, grads] = ["logits", "grads"].map(|name| Persistent::new(name, DType::F32, 20));
    device.write(&values, logits.as_flattened()).expect("logits");
    let graph = Graph::training("loss");
    let outputs = graph.parameter(&values, &grads, 0..20, &[4, 5]);
    let weights = graph.constant("weights", weights, &[4]);
    let batch = BatchTensors {
        x: outputs.clone(),
        categories: None,
        labels: graph.constant_codes("labels", &[1, 4, 0, 2], &[4]),
        weights: weights.clone(),
        counts: weights,
        partners: Some(PartnerLabels {
            labels: graph.constant_codes("partners", &[3, 4, 2, 0], &[4]),
            shares: graph.constant("shares", &[0.25, 0.5, 0.0, 1.0], &[4]),
        }),
    };
    let loss: Tensor = batch.loss(task, &outputs, reduction);
    graph.backward(&loss).expect("a gradient");
    let state = Graph::state_buffer();
    let kept = Persistent::new("loss", DType::F32, 1);
    graph.store(&loss, &state, &kept);
    graph.advance(&state);
    device.write(&state, &[0_u32; 4]).expect("a state");
    graph.compile(device).expect("a program").run(1).expect("a loss");
    (device.read::<f32>(&kept).expect("the loss")[0], device.read(&grads).expect("the gradient"))
}

/// `torch.nn.functional.cross_entropy` of probabilities, `(1 - s) one_hot(label) + s one_hot(partner)`, in f64: PyTorch 2.15.
#[test]
fn loss_and_gradient_of_mixed_labels_are_those_of_pytorch() {
    const PLAIN: (f32, [f32; 20]) = (
        2.929_423_3,
        [
            0.0271683, -0.1814379, 0.1217599, -0.0413413, 0.0738511, //
            0.103_323, 0.0380104, 0.0230545, 0.0804680, -0.2448559, //
            -0.2459842, 0.0231095, 0.0140166, 0.0381011, 0.1707571, //
            -0.0640462, 0.0072102, 0.0323139, 0.0092581, 0.0152640,
        ],
    );
    /// With class weights 1, 2, 0.5, 1, 1.5 and label smoothing 0.1.
    const WEIGHTED: (f32, [f32; 20]) = (
        3.980_067_4,
        [
            0.0410503, -0.3372248, 0.203_883, -0.0253860, 0.1176776, //
            0.1468848, 0.0458753, 0.0313901, 0.113_288, -0.3374381, //
            -0.2259039, 0.0135716, 0.0117969, 0.0338631, 0.1666722, //
            -0.0403272, -0.0026456, 0.0304602, 0.0044433, 0.0080693,
        ],
    );
    let plain = Classification::of(5);
    let weighted = Classification::of(5).class_weights([1.0, 2.0, 0.5, 1.0, 1.5]).label_smoothing(0.1);
    for device in [Some(cpu(2)), gpu()].into_iter().flatten() {
        for (task, (loss, grad)) in [(&plain, PLAIN), (&weighted, WEIGHTED)] {
            for (reduction, factor) in [(Reduction::Mean, 1.0), (Reduction::Sum, 4.0)] {
                let (found, found_grad) = soft_loss(&device, task, &[1.0; 4], reduction);
                assert!((found - factor * loss).abs() < 1e-5, "{task:?}, {reduction:?}: {found}, expected {}", factor * loss);
                for (i, (found, expected)) in found_grad.iter().zip(grad).enumerate() {
                    let expected = factor * expected;
                    assert!((found - expected).abs() < 1e-6, "{task:?}, {reduction:?}: {found} at {i}, expected {expected}");
                }
            }
        }
        // Only two rows, the third with weight 3: the mean of their losses, computed by hand from the rows' gradients.
        let (all, _) = soft_loss(&device, &plain, &[0.0, 0.0, 3.0, 1.0], Reduction::Mean);
        let [third, fourth] =
            [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]].map(|weights| soft_loss(&device, &plain, &weights, Reduction::Sum).0);
        assert!((all - (3.0 * third + fourth) / 4.0).abs() < 1e-5, "{all} of {third} and {fourth}");
    }
}

/// A network for images, given as rows.
#[derive(Debug)]
struct Flattened(Mlp);

impl Flattened {
    fn new(params: &mut ParametersBuilder) -> Self {
        let activation = Activation::relu();
        Self(Mlp::new(params, &MlpConfig { n_inputs: LEN, hidden: vec![8], n_outputs: 4, activation }))
    }
}

impl brisk_nn::Module for Flattened {
    fn forward(&self, params: &brisk_nn::Bound, x: &Tensor) -> Tensor {
        self.0.forward(params, &x.reshape(&[x.shape()[0], LEN]))
    }
}

fn images() -> Rows<Vec<u8>, Vec<f32>> {
    Rows::new(pixels(), (0..N).map(|row| (row % 4) as f32).collect(), LEN).expect("a label for each image")
}

/// Batches of 12 of 40 rows: the last has 4.
#[test]
fn mixed_images_train_the_same_on_any_number_of_replicas() {
    let rows = images();
    for mixing in MIXINGS {
        let losses = |n_replicas: usize| {
            let results = run_threads(n_replicas, &DataParallelConfig::default(), |replicas| {
                let mut model = Model::new(7, Flattened::new);
                let losses = Losses::default();
                Trainer::new(&cpu(1))
                    .batch_rows(12)
                    .max_epochs(2)
                    .learning_rate(1e-3)
                    .augment(MixedImages { images: augmented(), mixing, seed: SEED })
                    .callback(losses.clone())
                    .replicas(replicas)
                    .fit(&mut model, &Classification::of(4), &rows, &rows)?;
                Ok::<_, Error>(losses.0.take())
            });
            results.expect("a run").remove(0)
        };
        let one = losses(1);
        assert_eq!(one.len(), 8, "two epochs of four batches");
        for n_replicas in [2, 3] {
            for (one, several) in one.iter().zip(losses(n_replicas)) {
                assert!((one - several).abs() < 1e-5 * one.abs(), "{one} on one replica, {several} on {n_replicas}");
            }
        }
    }
}

#[test]
fn what_cannot_be_mixed_is_refused() {
    #[track_caller]
    fn refuses(augment: impl Augment, expected: &[&str]) {
        let mut model = Model::new(7, Flattened::new);
        let trained = Trainer::new(&cpu(1)).batch_rows(8).augment(augment).fit(&mut model, &task(), &images(), &images());
        let error = trained.expect_err("such rows cannot be mixed").to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
    fn task() -> impl Task {
        Classification::of(4)
    }
    let mixed = |mixing| MixedImages { images: augmented(), mixing, seed: 1 };
    refuses(mixed(Mixing::Mixup { alpha: 0.0 }), &["mix_rows", "alpha = 0", "0 < alpha <= 1000"]);
    let twice = MixedImages { images: mixed(MIXINGS[0]), mixing: MIXINGS[1], seed: 1 };
    refuses(twice, &["which mixes rows already", "an augmentation of single rows"]);

    /// Rows of pixels, without the shape of an image.
    #[derive(Debug)]
    struct Rows;
    impl Augment for Rows {
        fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> brisk_nn::Augmented {
            rows.gather(graph).into()
        }
    }
    refuses(
        MixedImages { images: Rows, mixing: MIXINGS[1], seed: 1 },
        &["mix_rows: `row` has shape [90]", "of which CutMix replaces"],
    );
    let mut model = Model::new(7, Flattened::new);
    let mixup = MixedImages { images: Rows, mixing: MIXINGS[0], seed: 1 };
    let trained = Trainer::new(&cpu(1)).batch_rows(8).max_epochs(1).augment(mixup).fit(&mut model, &task(), &images(), &images());
    trained.expect("Mixup takes rows of any shape");
}
