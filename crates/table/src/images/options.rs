use std::path::PathBuf;

use crate::error::Error;
use crate::import::{ArchiveEnd, BadRows, Like};

/// How to read PNG and JPEG files; by default, images keep their size and channels, and every file is an image. They are read
/// from a folder with one folder per class, as torchvision's `ImageFolder` reads it, or from a tar archive of such folders, plain
/// or compressed.
///
/// The outermost folders are the classes, numbered from 0 in the order of their names; a single folder around all of them is left
/// out. Every file in or below one of them is an image of that class. Hidden files and folders, and those that systems leave
/// behind (`__MACOSX`, `@eaDir`, `Thumbs.db` and others), are left out. All this is the same for a folder and an archive of it.
/// Rows of a folder are sorted by path; those of an archive have its order, and it is read twice. Rows are `u8`,
/// `[height, width, channels]`; labels are `u32`. Photos are turned upright. Images are decoded on all cores, and only a few per
/// core are in memory at a time. They must have one size unless [`ImagesOptions::size`] resizes them. A folder without an image
/// is a class too, of which [`ImportReport::warnings`](crate::ImportReport::warnings) tells, as it does of classes whose names
/// differ only in case.
///
/// # Errors
/// [`Error::Source`](crate::Error::Source) names the first two images that differ, or the first file that is not an image, unless
/// [`BadRows::Skip`], or a size out of range; the parts of a data set in place of classes, `train` and `test`; an archive without
/// its end, unless [`ImagesOptions::archive_end`]; [`Error::NotAFile`](crate::Error::NotAFile) for pipes, sockets and devices;
/// [`Error::Io`](crate::Error::Io), [`Error::Write`](crate::Error::Write). On `Err`, `dest` is unchanged.
/// # Examples
/// ```no_run
/// use brisk_table::{Channels, ImagesOptions, import};
///
/// let options = ImagesOptions { channels: Channels::Rgb, size: Some([64, 64]), ..ImagesOptions::default() };
/// let report = import("photos/train", "train.safetensors", &options)?;
/// println!("{} images of {:?}", report.n_rows, report.classes);
/// # Ok::<(), brisk_table::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImagesOptions {
    /// Which channels rows have.
    pub channels: Channels,
    /// Height and width to which images are resized, each at least 1. An image of another aspect ratio loses an equal part of
    /// both ends of its longer side. `None` requires images of one size. Resizing uses a triangle filter, as Pillow's `BILINEAR`
    /// does, which averages pixels when an image shrinks.
    pub size: Option<[usize; 2]>,
    /// Whether photos are turned as their EXIF data says; by default as in the table to match, or upright.
    pub orientation: Orientation,
    /// Whether a tar archive must have its end.
    pub archive_end: ArchiveEnd,
    /// A table to match, so that a test set is imported like its training set: labels are the numbers of its classes, whatever
    /// other folders there are, and images have its size, channels and orientation. A folder that is not one of its classes is an
    /// error.
    pub like: Option<PathBuf>,
    /// What to do with files that are neither PNG nor JPEG, are damaged, or are not in the folder of a class. Images whose size
    /// or channels differ from those of the first are always an error.
    pub bad_files: BadRows,
    /// The number of threads that decode, or 0 for one per core. The table does not depend on it.
    pub n_threads: usize,
}

/// What is done with the orientation in the EXIF data of JPEG files: cameras store photos as the sensor sees them, and how they
/// must be turned beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Orientation {
    /// Photos are turned and mirrored to be upright, as by Pillow's `ImageOps.exif_transpose`.
    #[default]
    Upright,
    /// Pixels stay as they are stored, as Pillow and torchvision leave them.
    AsStored,
}

impl Orientation {
    pub(super) fn of_table(like: &Like) -> Self {
        if like.metadata.settings.photos_as_stored { Self::AsStored } else { Self::Upright }
    }
}

impl ImagesOptions {
    pub(crate) fn check_orientation(&self, like: &Like) -> Result<(), Error> {
        let of_table = Orientation::of_table(like);
        if self.orientation == of_table {
            return Ok(());
        }
        let words = |orientation| match orientation {
            Orientation::Upright => "upright",
            Orientation::AsStored => "as they are stored",
        };
        Err(like.wrong(&format!(
            "its photos are {}, they were asked for {}; leave out the orientation, or import both with the same",
            words(of_table),
            words(self.orientation)
        )))
    }
}

/// The channels of an image, 8 bits each. Palettes and samples of fewer bits are expanded; samples of 16 bits are converted,
/// except for [`Channels::AsStored`]. The colours of CMYK images are converted to RGB. Colour profiles are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Channels {
    /// Those of the first image. All other images must have the same channels, of 8 bits.
    #[default]
    AsStored,
    /// One: `0.299 R + 0.587 G + 0.114 B` of a colour image (BT.601), bit-identical to Pillow's `convert("L")` and torchvision's
    /// `Grayscale`. Transparency is ignored.
    Grey,
    /// Red, green, blue. Transparency is ignored.
    Rgb,
    /// Red, green, blue, alpha. Images without transparency have an alpha of 255.
    Rgba,
}
