use std::path::PathBuf;

use crate::import::{ArchiveEnd, BadRows};

/// How to read a folder of images; by default, images keep their size and channels, and every file is an image.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImagesOptions {
    /// Which channels rows have.
    pub channels: Channels,
    /// Height and width to which images are resized, each at least 1. An image of another aspect ratio loses an equal part of both ends of its longer side.
    /// `None` requires images of one size. Resizing uses a triangle filter, as Pillow's `BILINEAR` does, which averages pixels when an image shrinks.
    pub size: Option<[usize; 2]>,
    /// Whether photos are turned as their EXIF data says.
    pub orientation: Orientation,
    /// Whether a tar archive must have its end.
    pub archive_end: ArchiveEnd,
    /// A table to match, so that a test set is imported like its training set: labels are the numbers of its classes, whatever other folders there are, and
    /// images have its size and channels. A folder that is not one of its classes is an error.
    pub like: Option<PathBuf>,
    /// What to do with files that are neither PNG nor JPEG, are damaged, or are not in the folder of a class. Images whose size or channels differ from those of
    /// the first are always an error.
    pub bad_files: BadRows,
    /// The number of threads that decode, or 0 for one per core. The table does not depend on it.
    pub n_threads: usize,
}

/// What is done with the orientation in the EXIF data of JPEG files: cameras store photos as the sensor sees them, and how they must be turned beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Orientation {
    /// Photos are turned and mirrored to be upright, as by Pillow's `ImageOps.exif_transpose`.
    #[default]
    Upright,
    /// Pixels stay as they are stored, as Pillow and torchvision leave them.
    AsStored,
}

/// The channels of an image, 8 bits each. Palettes and samples of fewer bits are expanded; samples of 16 bits are converted, except for [`Channels::AsStored`].
/// The colours of CMYK images are converted to RGB. Colour profiles are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Channels {
    /// Those of the first image. All other images must have the same channels, of 8 bits.
    #[default]
    AsStored,
    /// One: `0.21265 R + 0.71518 G + 0.07217 B` of a colour image, the luminance of sRGB, rounded to the nearest integer. Transparency is ignored.
    Grey,
    /// Red, green, blue. Transparency is ignored.
    Rgb,
    /// Red, green, blue, alpha. Images without transparency have an alpha of 255.
    Rgba,
}
