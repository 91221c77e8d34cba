//! Images that are augmented while they are streamed: the run is the same as with images that are resident on the device.

use brisk_loader::{Order, RowSource, Rows, Subset};
use brisk_nn::tensor::Graph;
use brisk_nn::{Activation, Augment, Augmented, BatchSource, Bound, Mlp, MlpConfig, Module, ParametersBuilder};
use brisk_program::{Device, Selection};
use brisk_tensor::Tensor;
use brisk_train::{
    Checkpoint, Classification, DataParallelConfig, Error, FeedChoice, FeedConfig, FeedElement, Model, RunFolder, Trainer,
    run_threads,
};
use brisk_vision::{AugmentedImages, Border, Flip, ImageAugmentation, MixedImages, Mixing};

use crate::gpu::{cpu, gpu};
use crate::losses::Losses;

const IMAGE: [usize; 3] = [5, 4, 3];
const LEN: usize = 60;
const N: usize = 46;

/// A network for images, given as rows.
#[derive(Debug)]
struct Flattened(Mlp);

impl Flattened {
    fn new(params: &mut ParametersBuilder) -> Self {
        let activation = Activation::relu();
        Self(Mlp::new(params, &MlpConfig { n_inputs: LEN, hidden: vec![8], n_outputs: 4, activation }))
    }
}

impl Module for Flattened {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        self.0.forward(params, &x.reshape(&[x.shape()[0], LEN]))
    }
}

fn images<T>(pixel: impl Fn(u8) -> T) -> Rows<Vec<T>, Vec<f32>> {
    let pixels = (0..N * LEN).map(|i| pixel((i * i % 251) as u8)).collect();
    Rows::new(pixels, (0..N).map(|row| (row % 4) as f32).collect(), LEN).expect("a label for each image")
}

fn augmented(flip: Flip) -> AugmentedImages {
    let augmentation =
        ImageAugmentation { pad: 2, border: Border::Reflect, flip, cutout: 1, brightness: 0.1, contrast: 0.1, seed: 5 };
    AugmentedImages { image: IMAGE, augmentation }
}

fn feed(choice: FeedChoice, chunk_bytes: usize, order: Option<Order>) -> FeedConfig {
    FeedConfig { choice, chunk_bytes, order, ..FeedConfig::default() }
}

fn trainer<'a>(device: &Device, config: &FeedConfig, flip: Flip) -> Trainer<'a> {
    let trainer = Trainer::new(device).batch_rows(8).max_epochs(3).learning_rate(1e-2).seed(9);
    trainer.feed(config).augment(augmented(flip))
}

/// The first of the images, which are all evaluated together.
fn few<S: RowSource>(rows: &S) -> Subset<&S> {
    Subset::of_rows(rows, (0..8).collect::<Vec<_>>()).expect("there are more")
}

/// The losses of all steps and the outputs at the end.
fn run<T>(device: &Device, rows: &Rows<Vec<T>, Vec<f32>>, config: &FeedConfig, flip: Flip) -> (Vec<f32>, Vec<f32>)
where
    Rows<Vec<T>, Vec<f32>>: RowSource<Feature: FeedElement>,
{
    let (mut model, losses) = (Model::new(7, Flattened::new), Losses::default());
    let mut trainer = trainer(device, config, flip).callback(losses.clone());
    trainer.fit(&mut model, &Classification::of(4), rows, &few(rows)).expect("a run");
    (losses.0.take(), model.predict(&few(rows)).expect("outputs"))
}

/// Batches of 8 of 46 images: the last has 6. A chunk has one batch, three, or all; an image has 60 bytes and a label.
#[test]
fn streamed_images_are_augmented_as_resident_ones() {
    #[track_caller]
    fn check<T>(device: &Device, rows: &Rows<Vec<T>, Vec<f32>>, order: Option<&Order>, flip: Flip)
    where
        Rows<Vec<T>, Vec<f32>>: RowSource<Feature: FeedElement>,
    {
        let expected = run(device, rows, &feed(FeedChoice::Resident, 0, order.cloned()), flip);
        assert_eq!(expected.0.len(), 18, "three epochs of six batches");
        for chunk_bytes in [0, 3 * 8 * 64, 1 << 20] {
            let found = run(device, rows, &feed(FeedChoice::Streamed, chunk_bytes, order.cloned()), flip);
            assert_eq!(found, expected, "chunks of {chunk_bytes} bytes, {order:?}, {flip:?}, on {}", device.info());
        }
    }
    for device in [Some(cpu(2)), gpu()].into_iter().flatten() {
        for flip in [Flip::Random, Flip::Alternating] {
            check(&device, &images(|pixel| pixel), None, flip);
            check(&device, &images(f32::from), Some(&Order::Sequential), flip);
        }
    }
    // Chunks in windows of 12 images of 240 bytes.
    let narrow = Device::builder().selection(Selection::Cpu).threads(2).max_binding_bytes(3000).open().expect("the CPU");
    check(&narrow, &images(f32::from), None, Flip::Random);
}

#[test]
fn replicas_and_resumed_runs_augment_streamed_images_alike() -> Result<(), Error> {
    let (rows, task, config) = (images(|pixel| pixel), Classification::of(4), feed(FeedChoice::Streamed, 3 * 8 * 64, None));
    let (expected, outputs) = run(&cpu(1), &rows, &feed(FeedChoice::Resident, 0, None), Flip::Random);
    for n_replicas in [1, 3] {
        let of_replicas = run_threads(n_replicas, &DataParallelConfig::default(), |replicas| {
            let (mut model, losses) = (Model::new(7, Flattened::new), Losses::default());
            let mut trainer = trainer(&cpu(1), &config, Flip::Random).callback(losses.clone()).replicas(replicas);
            trainer.fit(&mut model, &task, &rows, &rows)?;
            Ok::<_, Error>(losses.0.take())
        })?;
        for (found, expected) in of_replicas[0].iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-5 * expected.abs(), "{found} on {n_replicas} replicas, expected {expected}");
        }
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = RunFolder::create_at(&dir.path().join("run"))?;
    let mut first = trainer(&cpu(1), &config, Flip::Random).max_epochs(2).folder(&folder);
    first.fit(&mut Model::new(7, Flattened::new), &task, &rows, &few(&rows))?;
    let (mut resumed, checkpoint) = (Model::new(7, Flattened::new), Checkpoint::load(folder.last())?);
    trainer(&cpu(1), &config, Flip::Random).folder(&folder).resume(&mut resumed, &checkpoint, &task, &rows, &few(&rows))?;
    assert_eq!(resumed.predict(&few(&rows))?, outputs);
    Ok(())
}

/// An augmentation that draws no random numbers per row works on streamed rows, too.
#[test]
fn an_augmentation_of_ones_own_takes_streamed_rows() {
    #[derive(Debug)]
    struct Darker;
    impl Augment for Darker {
        fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented {
            (rows.gather(graph) * 0.5).dropout(0.1).into()
        }
    }
    let rows = images(|pixel| pixel);
    let losses = |config: &FeedConfig| {
        let (mut model, losses) = (Model::new(7, Flattened::new), Losses::default());
        let mut trainer = Trainer::new(&cpu(2)).batch_rows(8).max_epochs(2).feed(config).augment(Darker).callback(losses.clone());
        trainer.fit(&mut model, &Classification::of(4), &rows, &rows).expect("a run");
        losses.0.take()
    };
    assert_eq!(losses(&feed(FeedChoice::Streamed, 0, None)), losses(&feed(FeedChoice::Resident, 0, None)));
}

#[test]
fn streamed_images_cannot_be_mixed() {
    let rows = images(|pixel| pixel);
    let mixed = MixedImages { images: augmented(Flip::Never), mixing: Mixing::CutMix { alpha: 1.0 }, seed: 1 };
    let config = feed(FeedChoice::Streamed, 0, None);
    let mut trainer = Trainer::new(&cpu(1)).batch_rows(8).feed(&config).augment(mixed);
    let fitted = trainer.fit(&mut Model::new(7, Flattened::new), &Classification::of(4), &rows, &rows);
    let error = fitted.expect_err("partners are not on the device").to_string();
    let parts =
        ["mix_rows: rows of which only a part is on the device", "expected all rows on the device", "FeedChoice::Resident"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}
