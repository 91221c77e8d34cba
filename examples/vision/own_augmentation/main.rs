//! A custom augmentation and network: it is trained on white letters on a black background, and also recognises black letters on
//! white.
//!
//! `cargo run --release --example own_augmentation`; `-- --device cpu|gpu|software|NAME|INDEX` picks the device.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use brisk_examples::run::{self, Run};
use brisk_examples::{letters, print};
use brisk_loader::{RowBuffers, RowSelection, RowSource, Rows, split};
use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{Activation, Graph, Pool2d, Tensor};
use brisk_nn::{
    Augment, Augmented, BatchNorm, BatchNormConfig, BatchSource, Bound, Conv2d, Conv2dConfig, Linear, Module, ParametersBuilder,
    Schedule,
};
use brisk_train::{Classification, Model, Trainer};
use brisk_vision::{AugmentedImages, ImageAugmentation};
use serde_json::json;

const SEED: u64 = 7;
const BATCH_ROWS: usize = 130;

/// Shifts images by up to two pixels with the kernel of brisk-vision, then inverts each image with probability 1/2 using tensor
/// operations.
#[derive(Debug)]
struct ShiftAndInvert {
    shift: AugmentedImages,
}

impl Augment for ShiftAndInvert {
    fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented {
        let images = self.shift.record(graph, rows).x;
        // A sign for each image, drawn anew in each step.
        let signs = graph.uniform(&[images.shape()[0], 1, 1, 1]).map(|u| u.lt(0.5).select(1.0, -1.0));
        // Images are standardised already. Inverted, a byte v is 255 - v: its distance from a medium grey changes sign.
        let [height, width, n_channels] = self.shift.image;
        let [mean, inv_std] = [rows.mean, rows.inv_std].map(|values| graph.tensor(values, &[height, width, n_channels]));
        let grey = (127.5 - mean) * inv_std;
        ((images - &grey) * signs + &grey).into()
    }
}

/// A custom network: two convolutions, each normalised and pooled, and a linear layer on the maximum over all pixels.
#[derive(Debug)]
struct LetterNet {
    blocks: [(Conv2d, BatchNorm); 2],
    head: Linear,
}

impl LetterNet {
    fn new(params: &mut ParametersBuilder) -> Self {
        let mut block = |name: &str, n_in, n_out| {
            let conv = Conv2d::new(
                params,
                &format!("{name}.conv"),
                &Conv2dConfig { padding: [1, 1], ..Conv2dConfig::square(n_in, n_out, 3) },
            );
            let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(n_out) };
            (conv, BatchNorm::new(params, &format!("{name}.norm"), &norm))
        };
        let blocks = [block("first", 1, 16), block("second", 16, 32)];
        Self { blocks, head: Linear::new(params, "head", 32 * 9, letters::N_CLASSES, Activation::identity()) }
    }
}

impl Module for LetterNet {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let n = x.shape()[0];
        let mut x = x.reshape(&[n, letters::SIDE, letters::SIDE, 1]);
        for ((conv, norm), side) in self.blocks.iter().zip([2, 4]) {
            x = norm.forward(params, &conv.forward(params, &x)).max_pool2d(&Pool2d::square(side));
        }
        self.head.forward(params, &x.reshape(&[n, 32 * 9]))
    }
}

fn main() -> ExitCode {
    run::main(
        "own_augmentation",
        "Trains with a custom augmentation and network, and shows the effect of the augmentation",
        train,
    )
}

fn train(run: &Run) -> Result<()> {
    let table = letters::table("target/letters/few_letters.safetensors".as_ref(), 3900)?;
    let [train, test] = split(table.typed::<u8>()?, SEED, [5.0 / 6.0, 1.0 / 6.0])?;
    let inverted = inverted(&test)?;

    let image = [letters::SIDE, letters::SIDE, 1];
    let shift = AugmentedImages { image, augmentation: ImageAugmentation { pad: 2, seed: SEED, ..ImageAugmentation::default() } };
    let mut accuracies = Vec::new();
    for (name, invert) in [("shift", None), ("shift and invert", Some(ShiftAndInvert { shift }))] {
        let trainer = trainer(&run.device);
        let mut trainer = match invert {
            None => trainer.augment(shift),
            Some(augmentation) => trainer.augment(augmentation),
        };
        let mut model = Model::new(SEED, LetterNet::new);
        let task = Classification::of(letters::N_CLASSES);
        let report = trainer.fit(&mut model, &task, &train, &test)?;
        let scores = [model.evaluate(&task, &test)?, model.evaluate(&task, &inverted)?];
        let [plain, inverted] = [0, 1].map(|i| scores[i].get("accuracy").unwrap_or(f64::NAN));
        print::result(format_args!("{name}: accuracy {plain:.4} on letters, {inverted:.4} on inverted letters"))?;
        accuracies.push((plain, inverted));
        // Of the last run, which replaces the first.
        let facts = json!({ "seed": SEED, "test_accuracy_inverted": inverted });
        run.finish([run.fitted(&report, &scores[0], &train, BATCH_ROWS)?, facts])?;
    }
    let [(_, before), (plain, after)] = [accuracies[0], accuracies[1]];
    ensure!(plain > 0.9 && after > 0.9 && before < 0.5, "the augmentation did not teach inverted letters");
    Ok(())
}

fn trainer(device: &Device) -> Trainer<'_> {
    Trainer::new(device).batch_rows(BATCH_ROWS).max_epochs(5).schedule(Schedule::one_cycle(1e-2)).seed(SEED)
}

/// The images with 255 minus each byte.
fn inverted<S: RowSource<Feature = u8>>(rows: &S) -> Result<Rows> {
    let (n_rows, n_cols) = (rows.n_rows(), rows.n_cols());
    let (mut bytes, mut labels) = (vec![0; n_rows * n_cols], vec![0.0; n_rows]);
    rows.gather(RowSelection::Range(0..n_rows), RowBuffers::new(&mut bytes, &mut labels))?;
    Ok(Rows::new(bytes.iter().map(|byte| f32::from(255 - byte)).collect(), labels, n_cols)?)
}
