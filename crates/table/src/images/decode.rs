//! One image: bytes of a file in, pixels out.

use std::io::Cursor;

use image::imageops::FilterType;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};

use super::ImagesOptions;
use super::options::Channels;

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
    TooDeep(ColorType),
}

/// The result of decoding a file.
pub(super) enum Decoded {
    Image(Pixels),
    /// The image does not have the expected shape and was not decoded.
    OtherShape(Shape),
}

/// Decodes and resizes the image in `file`, unless its shape then differs from `expected`.
pub(super) fn decode(file: &[u8], options: ImagesOptions, expected: Option<Shape>) -> Result<Decoded, NoImage> {
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
    let [height, width] = options.size.unwrap_or([height as usize, width as usize]);
    let n_channels = match options.channels {
        Channels::AsStored => channels_of(decoder.color_type())?,
        Channels::Grey => 1,
        Channels::Rgb => 3,
        Channels::Rgba => 4,
    };
    let shape = Shape { height, width, n_channels };
    if expected.is_some_and(|expected| expected != shape) {
        return Ok(Decoded::OtherShape(shape));
    }
    let image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    // Channels are converted before resizing, so that all pixels are resized as 8-bit values.
    let image = match options.channels {
        Channels::AsStored => image,
        Channels::Grey => image.into_luma8().into(),
        Channels::Rgb => image.into_rgb8().into(),
        Channels::Rgba => image.into_rgba8().into(),
    };
    Ok(Decoded::Image(Pixels { shape, values: resized(image, height, width).into_bytes() }))
}

fn resized(image: DynamicImage, height: usize, width: usize) -> DynamicImage {
    let side = |len: usize| u32::try_from(len).expect("sizes were checked against the longest side before anything was decoded");
    let (width, height) = (side(width), side(height));
    if (image.width(), image.height()) == (width, height) {
        return image;
    }
    image.resize_to_fill(width, height, FilterType::Triangle)
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
