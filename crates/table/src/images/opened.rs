//! An image before its pixels are decoded.

use super::exif::Stored;
use super::samples::Samples;

/// The longest side of an image that is read, and of one that is written.
pub(super) const MAX_SIDE: u32 = 1 << 14;

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
