//! One image: bytes of a file in, pixels out.

use super::exif::Stored;
use super::opened::NoImage;
use super::options::{Channels, ImagesOptions, Orientation};
use super::pixels::{Pixels, Shape};
use super::resize::resized_to_fill;
use super::{jpeg, png};

pub(super) enum Decoded {
    Image(Pixels),
    /// The image does not have the expected shape and was not decoded.
    OtherShape(Shape),
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
