//! One image: bytes of a file in, pixels out.

use super::exif::Stored;
use super::options::{Channels, ImagesOptions, Orientation};
use super::resize::resized_to_fill;
use super::samples::Samples;
use super::{jpeg, png};

/// The longest side of an image that is read, and of one that is written.
pub(super) const MAX_SIDE: u32 = 1 << 14;

/// Height, width and channels, and the pixels in this order.
#[derive(Debug)]
pub(super) struct Pixels {
    pub(super) shape: Shape,
    pub(super) values: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) n_channels: usize,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} × {} pixels of {} channels", self.height, self.width, self.n_channels)
    }
}

/// Why the bytes of a file are not an image.
#[derive(Debug)]
pub(super) enum NoImage {
    /// They do not start like a PNG or JPEG file.
    OtherFormat,
    /// The image is damaged.
    Damaged(String),
    /// The image has a side of more than [`MAX_SIDE`] pixels.
    TooLarge,
    /// The image has more than 8 bits per channel.
    TooDeep(Samples),
}

pub(super) enum Decoded {
    Image(Pixels),
    /// The image does not have the expected shape and was not decoded.
    OtherShape(Shape),
}

/// An image of which only the headers were read. Its sides are checked with [`check_sides`] before any memory for pixels is
/// allocated.
pub(super) struct Opened<'a> {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) samples: Samples,
    pub(super) orientation: Stored,
    /// Decodes all samples, in rows from the top, or returns an error.
    pub(super) decode: Box<dyn FnOnce() -> Result<Vec<u8>, NoImage> + 'a>,
}

/// Returns an error if the image has a side of more than [`MAX_SIDE`] pixels.
pub(super) fn check_sides(height: usize, width: usize) -> Result<(), NoImage> {
    if height.max(width) > MAX_SIDE as usize { Err(NoImage::TooLarge) } else { Ok(()) }
}

/// Decodes and resizes the image in `file`, unless its shape then differs from `expected`.
pub(super) fn decode(file: &[u8], options: &ImagesOptions, expected: Option<Shape>) -> Result<Decoded, NoImage> {
    let image = match file {
        [0x89, b'P', b'N', b'G', ..] => png::open(file)?,
        [0xff, 0xd8, 0xff, ..] => jpeg::open(file)?,
        _ => return Err(NoImage::OtherFormat),
    };
    let n_channels = match (options.channels, image.samples.n_bytes) {
        (Channels::AsStored, 1) => image.samples.n_channels,
        (Channels::AsStored, _) => return Err(NoImage::TooDeep(image.samples)),
        (Channels::Grey, _) => 1,
        (Channels::Rgb, _) => 3,
        (Channels::Rgba, _) => 4,
    };
    let stored = Shape { height: image.height, width: image.width, n_channels };
    let orientation = if options.orientation == Orientation::Upright { image.orientation } else { Stored::UPRIGHT };
    let picture = orientation.shape(stored);
    let [height, width] = options.size.unwrap_or([picture.height, picture.width]);
    let shape = Shape { height, width, n_channels };
    if expected.is_some_and(|expected| expected != shape) {
        return Ok(Decoded::OtherShape(shape));
    }
    // Channels are converted before resizing, so that all pixels are resized as 8-bit values.
    let values = image.samples.converted((image.decode)()?, n_channels);
    let Pixels { values, .. } = orientation.applied(Pixels { shape: stored, values });
    let values = if picture == shape { values } else { resized_to_fill(&values, picture, [height, width]) };
    Ok(Decoded::Image(Pixels { shape, values }))
}
