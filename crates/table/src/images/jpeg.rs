//! JPEG files, baseline and progressive. Grey images have one channel; YCbCr, CMYK and YCCK are converted to RGB.

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::exif::Stored;
use super::opened::{NoImage, Opened, check_sides};
use super::samples::Samples;

/// Reads the headers of a JPEG file.
pub(super) fn open(file: &[u8]) -> Result<Opened<'_>, NoImage> {
    // Sides are checked here, since the decoder's error for them has no variant of its own.
    let options = DecoderOptions::default().set_max_width(usize::MAX).set_max_height(usize::MAX).set_strict_mode(false);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(damaged)?;
    let (width, height) = decoder.dimensions().expect("the headers were decoded");
    check_sides(height, width)?;
    let (n_channels, colours) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (1, ColorSpace::Luma),
        _ => (3, ColorSpace::RGB),
    };
    let samples = Samples { n_channels, n_bytes: 1 };
    let orientation = decoder.exif().map_or(Stored::UPRIGHT, |exif| Stored::of_exif(exif));
    // Headers are read leniently, because cameras and editors leave bytes between them. In the image data, a lenient decoder
    // would replace what it cannot decode by grey.
    decoder.set_options(options.jpeg_set_out_colorspace(colours).set_strict_mode(true));
    let decode = Box::new(move || {
        if !has_end(file) {
            return Err(NoImage::Damaged("a JPEG image that is cut short".to_owned()));
        }
        let mut bytes = vec![0; height * width * samples.bytes_per_pixel()];
        decoder.decode_into(&mut bytes).map_err(damaged)?;
        Ok(bytes)
    });
    Ok(Opened { height, width, samples, orientation, decode })
}

/// Whether the image ends with the marker that every JPEG image ends with. Even a strict decoder accepts images that are cut off
/// within their last blocks.
fn has_end(file: &[u8]) -> bool {
    let mut rest = file;
    while let Some(at) = rest.iter().position(|&byte| byte == 0xff) {
        rest = match rest[at + 1..] {
            [0xd9, ..] => return true,
            // A byte 0xff of the image data, a restart or start marker, or another 0xff that may start a marker.
            [0x00 | 0x01 | 0xd0..=0xd8 | 0xff, ..] => &rest[at + 1..],
            // A segment, such as a thumbnail, which has an end marker of its own. Its length includes the two bytes of the
            // length.
            [_, high, low, ..] => {
                let n_bytes = usize::from(u16::from_be_bytes([high, low]));
                rest.get(at + 2 + n_bytes..).unwrap_or_default()
            }
            _ => return false,
        };
    }
    false
}

fn damaged(error: DecodeErrors) -> NoImage {
    // Some messages of the decoder are of several lines, and it escapes their ends.
    let error = error.to_string().replace("\\n", " ");
    NoImage::Damaged(format!("a JPEG image with an error ({})", error.split_whitespace().collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests {
    use super::has_end;

    #[test]
    fn the_end_of_an_image_is_found() {
        let start = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 0xff, 0xd9, 0xff, 0xda, 0, 2, 7, 0xff, 0, 0xff, 0xd3, 8];
        let image = [&start[..], &[0xff, 0xd9]].concat();
        assert!(has_end(&image));
        // Bytes after the end, and one that fills up space before its marker.
        assert!(has_end(&[&image[..], &[1, 2, 3]].concat()));
        assert!(has_end(&[&start[..], &[0xff, 0xff, 0xd9]].concat()));
        for n_bytes in 0..image.len() {
            assert!(!has_end(&image[..n_bytes]), "the first {n_bytes} bytes");
        }
    }
}
