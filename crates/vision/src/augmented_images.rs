use brisk_nn::tensor::{Graph, ImageAugmentation, ImageTable};
use brisk_nn::{Augment, Augmented, BatchSource};

/// Batches of images that are gathered and augmented in one kernel: [`ImageAugmentation`] for rows that are images.
///
/// # Examples
/// ```
/// use brisk_vision::{AugmentedImages, Flip, ImageAugmentation};
///
/// // 32 x 32 pixels of three channels, shifted by up to two pixels and mirrored in every second epoch.
/// let augmentation = ImageAugmentation { pad: 2, flip: Flip::Alternating, seed: 7, ..ImageAugmentation::default() };
/// let batches = AugmentedImages { image: [32, 32, 3], augmentation };
/// // `Trainer::augment(batches)` of brisk-train, or `Augment::record` in a graph of your own.
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AugmentedImages {
    /// Height, width and channels of the images, which are rows with channels last. Augmented images have the same size.
    pub image: [usize; 3],
    /// How they are augmented.
    pub augmentation: ImageAugmentation,
}

impl Augment for AugmentedImages {
    /// `[n, height, width, n_channels]`.
    #[track_caller]
    fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented {
        let [height, width, _] = self.image;
        let &BatchSource { batch, features, mean, inv_std, .. } = rows;
        let images = ImageTable { table: features, mean, inv_std, image: self.image };
        graph.augment_images(batch, &images, [height, width], &self.augmentation).into()
    }
}
