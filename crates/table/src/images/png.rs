//! PNG files: palettes and samples of 1, 2 and 4 bits are expanded to 8 bits, and a transparent colour becomes an alpha channel.

use std::io::Cursor;

use png::{BitDepth, Decoder, DecodingError, Transformations};

use super::exif::Stored;
use super::opened::{NoImage, Opened, check_sides};
use super::samples::Samples;

/// Reads the headers of a PNG file.
pub(super) fn open(file: &[u8]) -> Result<Opened<'_>, NoImage> {
    let mut decoder = Decoder::new(Cursor::new(file));
    // Neither changes the pixels, and both may be compressed: ignored, they take no memory.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    let header = decoder.read_header_info().map_err(damaged)?;
    let [height, width] = [header.height as usize, header.width as usize];
    check_sides(height, width)?;
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (colour, bits) = reader.output_color_type();
    let n_channels = colour.samples();
    // Palettes and samples of fewer than 8 bits are expanded.
    let samples = Samples { n_channels, n_bytes: if bits == BitDepth::Sixteen { 2 } else { 1 } };
    let decode = Box::new(move || {
        let mut bytes = vec![0; height * width * samples.bytes_per_pixel()];
        reader.next_frame(&mut bytes).map_err(damaged)?;
        Ok(bytes)
    });
    Ok(Opened { height, width, samples, orientation: Stored::UPRIGHT, decode })
}

fn damaged(error: DecodingError) -> NoImage {
    NoImage::Damaged(format!("a PNG image with an error ({error})"))
}

#[cfg(test)]
mod tests {
    use png::{ColorType, Encoder};

    use super::*;

    fn encoded(colour: ColorType, depth: BitDepth, more: impl FnOnce(&mut Encoder<'_, &mut Vec<u8>>), data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, 3, 1);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        more(&mut encoder);
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        file
    }

    #[track_caller]
    fn check(file: &[u8], n_channels: usize, n_bytes: usize, expected: &[u8]) {
        let image = open(file).unwrap();
        assert_eq!((image.height, image.width, image.samples), (1, 3, Samples { n_channels, n_bytes }));
        assert_eq!((image.decode)().unwrap(), expected);
    }

    #[test]
    fn samples_are_expanded_to_at_least_eight_bits() {
        let grey = ColorType::Grayscale;
        check(&encoded(grey, BitDepth::One, |_| (), &[0b1010_0000]), 1, 1, &[255, 0, 255]);
        check(&encoded(grey, BitDepth::Two, |_| (), &[0b0001_1100]), 1, 1, &[0, 85, 255]);
        check(&encoded(grey, BitDepth::Four, |_| (), &[0x0f, 0x20]), 1, 1, &[0, 255, 34]);
        check(&encoded(grey, BitDepth::Sixteen, |_| (), &[1, 2, 3, 4, 5, 6]), 1, 2, &[1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn transparent_colours_become_an_alpha_channel() {
        let palette = [10, 11, 12, 20, 21, 22, 30, 31, 32];
        let indexed = |trns: Option<&[u8]>| {
            let more = |encoder: &mut Encoder<'_, &mut Vec<u8>>| {
                encoder.set_palette(palette.to_vec());
                trns.into_iter().for_each(|trns| encoder.set_trns(trns.to_vec()));
            };
            encoded(ColorType::Indexed, BitDepth::Two, more, &[0b1000_0100])
        };
        check(&indexed(None), 3, 1, &[30, 31, 32, 10, 11, 12, 20, 21, 22]);
        check(&indexed(Some(&[7, 8])), 4, 1, &[30, 31, 32, 255, 10, 11, 12, 7, 20, 21, 22, 8]);
        let grey = encoded(ColorType::Grayscale, BitDepth::Eight, |encoder| encoder.set_trns(vec![0, 5]), &[4, 5, 6]);
        check(&grey, 2, 1, &[4, 255, 5, 0, 6, 255]);
    }
}
