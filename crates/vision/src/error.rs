/// Why images cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The number of values is not a multiple of the size of an image.
    #[error("{found} values are not whole images of {image:?} (height, width, channels); give a multiple of {}", image.iter().product::<usize>())]
    Images {
        /// How many values there are.
        found: usize,
        /// Height, width and channels.
        image: [usize; 3],
    },
    /// Patches do not fit into the images.
    #[error("patches of {patch:?} pixels do not fit into images of {image:?} (height, width, channels)")]
    Patch {
        /// Height and width of a patch.
        patch: [usize; 2],
        /// Height, width and channels of an image.
        image: [usize; 3],
    },
    /// Images are too small for a network.
    #[error(
        "{network}: images have shape {found:?} (height, width, channels), expected sides of at least {min_side} pixels and at least one channel; resize the images"
    )]
    ImageSize {
        /// The network.
        network: &'static str,
        /// Height, width and channels.
        found: [usize; 3],
        /// The shortest side for which a pixel remains after all pooling.
        min_side: usize,
    },
    /// An image has a value that is not finite.
    #[error("image {image} has a value that is not finite; standardise images by deviations that are not 0")]
    NonFinite {
        /// The image, from 0.
        image: usize,
    },
    /// The device failed or is out of memory.
    #[error(transparent)]
    Tensor(#[from] brisk_nn::Error),
}

impl From<brisk_nn::tensor::program::Error> for Error {
    fn from(error: brisk_nn::tensor::program::Error) -> Self {
        Self::Tensor(error.into())
    }
}
