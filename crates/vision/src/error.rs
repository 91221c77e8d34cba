/// Why images cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// The number of values is not a multiple of the size of an image: height, width and channels.
    #[error("{found} values are not whole images of {image:?} (height, width, channels); give a multiple of {}", image.iter().product::<usize>())]
    Images { found: usize, image: [usize; 3] },
    /// Patches, by height and width, do not fit into the images, by height, width and channels.
    #[error("patches of {patch:?} pixels do not fit into images of {image:?} (height, width, channels)")]
    Patch { patch: [usize; 2], image: [usize; 3] },
    /// Images, by height, width and channels, are too small for a network: with a side of `min_side`, a pixel remains after all
    /// pooling.
    #[error(
        "{network}: images have shape {found:?} (height, width, channels), expected sides of at least {min_side} pixels and at least one channel; resize the images"
    )]
    ImageSize { network: &'static str, found: [usize; 3], min_side: usize },
    /// An image, counted from 0, has a value that is not finite.
    #[error("image {image} has a value that is not finite; standardise images by deviations that are not 0")]
    NonFinite { image: usize },
    /// The device failed or is out of memory.
    #[error(transparent)]
    Tensor(#[from] brisk_nn::Error),
}

impl From<brisk_nn::tensor::program::Error> for Error {
    fn from(error: brisk_nn::tensor::program::Error) -> Self {
        Self::Tensor(error.into())
    }
}
