//! One image: bytes of a file in, pixels out.

use std::io::Cursor;

use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};

use super::Channels;

/// The longest side that is read.
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

/// Why bytes are not an image that is read.
#[derive(Debug)]
pub(super) enum NoImage {
    /// They do not begin as PNG or JPEG do.
    OtherFormat,
    /// The image is damaged.
    Damaged(String),
    /// The image has a side of more than [`MAX_SIDE`] pixels.
    TooLarge,
    /// The image has more than 8 bits per channel.
    TooDeep(ColorType),
}

/// How far decoding went.
pub(super) enum Decoded {
    Image(Pixels),
    /// It has not the shape that was asked for, and was not decoded.
    OtherShape(Shape),
}

/// Decodes the file whose bytes those are, if it has the shape that the others have.
pub(super) fn decode(file: &[u8], channels: Channels, expected: Option<Shape>) -> Result<Decoded, NoImage> {
    let format = match file {
        [0x89, b'P', b'N', b'G', ..] => ImageFormat::Png,
        [0xff, 0xd8, 0xff, ..] => ImageFormat::Jpeg,
        _ => return Err(NoImage::OtherFormat),
    };
    let damaged = |error: ImageError| match error {
        ImageError::Limits(_) => NoImage::TooLarge,
        error => NoImage::Damaged(error.to_string()),
    };
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    let mut limits = image::Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(MAX_SIDE), Some(MAX_SIDE));
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    let n_channels = match channels {
        Channels::AsStored => channels_of(decoder.color_type())?,
        Channels::Grey => 1,
        Channels::Rgb => 3,
        Channels::Rgba => 4,
    };
    let shape = Shape { height: height as usize, width: width as usize, n_channels };
    if expected.is_some_and(|expected| expected != shape) {
        return Ok(Decoded::OtherShape(shape));
    }
    let image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    let values = match channels {
        Channels::AsStored => image.into_bytes(),
        Channels::Grey => image.into_luma8().into_raw(),
        Channels::Rgb => image.into_rgb8().into_raw(),
        Channels::Rgba => image.into_rgba8().into_raw(),
    };
    Ok(Decoded::Image(Pixels { shape, values }))
}

fn channels_of(colour: ColorType) -> Result<usize, NoImage> {
    match colour {
        ColorType::L8 => Ok(1),
        ColorType::La8 => Ok(2),
        ColorType::Rgb8 => Ok(3),
        ColorType::Rgba8 => Ok(4),
        other => Err(NoImage::TooDeep(other)),
    }
}
