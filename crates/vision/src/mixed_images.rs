use brisk_nn::tensor::{DType, Graph, Mixing};
use brisk_nn::{Augment, Augmented, BatchSource};

/// Batches whose images are mixed with others of the training set, by Mixup or CutMix. Labels are mixed in the same proportions:
/// the loss of a row is `(1 - s) loss(label) + s loss(label of the other image)`.
///
/// Each image is mixed with one that is drawn from all rows of the epoch, in its own proportion `s`. Both depend only on the
/// seed, the epoch and the row, so a mixed image looks the same in any batch and on any number of replicas. The other image is
/// augmented exactly as in its own batch of the same epoch.
///
/// # Cost
/// Both images are augmented, then mixed in one more kernel.
/// # Reference
/// Mixup: Zhang et al. 2017, arXiv:1710.09412. CutMix: Yun et al. 2019, arXiv:1905.04899. `torchvision.transforms.v2.MixUp` and
/// `CutMix` mix each image with its neighbour in the batch, in the same proportion for all images.
/// # Examples
/// ```
/// use brisk_vision::{AugmentedImages, Flip, ImageAugmentation, MixedImages, Mixing};
///
/// let augmentation = ImageAugmentation { pad: 2, flip: Flip::Random, seed: 7, ..ImageAugmentation::default() };
/// let images = AugmentedImages { image: [32, 32, 3], augmentation };
/// let batches = MixedImages { images, mixing: Mixing::CutMix { alpha: 1.0 }, seed: 7 };
/// // `Trainer::augment(batches)` of brisk-train.
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixedImages<A> {
    /// How images are made before they are mixed: [`AugmentedImages`](crate::AugmentedImages), or your own augmentation.
    pub images: A,
    /// How they are mixed.
    pub mixing: Mixing,
    /// The seed of the run.
    pub seed: u64,
}

impl<A: Augment> Augment for MixedImages<A> {
    /// # Errors
    /// [`Refused`](brisk_nn::Error::Refused) if `images` mixes rows already; [`Shape`](brisk_nn::Error::Shape) if it does not
    /// return images `[n, height, width, n_channels]`, for CutMix.
    #[track_caller]
    fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented {
        let Augmented { x, mixed: None } = self.images.record(graph, rows) else {
            let found = format!("{:?}, which mixes rows already", self.images);
            let error = brisk_nn::Error::Refused { op: "mix_rows", found, expected: "an augmentation of single rows" };
            return graph.failed(error, DType::F32, &[rows.batch.weights.n_elements(), 1]).into();
        };
        let mixed = graph.mix_rows(rows.batch, &x.shape()[1..], &self.mixing, self.seed);
        let others = self.images.record(graph, &BatchSource { batch: &mixed.partners, ..*rows });
        Augmented { x: mixed.mix(&x, &others.x), mixed: Some(mixed.into()) }
    }
}
