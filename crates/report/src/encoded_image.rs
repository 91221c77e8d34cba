//! Pixels as PNG, for pages and event files.

/// `pixels`, `[height, width, n_channels]`, as a PNG file, and the number of channels; `None` for a wrong number of pixels or
/// channels.
pub(crate) fn encoded([height, width]: [usize; 2], pixels: &[u8]) -> Option<(Vec<u8>, usize)> {
    let n_pixels = height.checked_mul(width).filter(|&n| n > 0)?;
    let colour = match (pixels.len() / n_pixels, pixels.len() % n_pixels) {
        (1, 0) => png::ColorType::Grayscale,
        (2, 0) => png::ColorType::GrayscaleAlpha,
        (3, 0) => png::ColorType::Rgb,
        (4, 0) => png::ColorType::Rgba,
        _ => return None,
    };
    // The format allows 2^31 - 1 rows and columns.
    let [n_rows, n_cols] = [i32::try_from(height).ok()?, i32::try_from(width).ok()?];
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, n_cols as u32, n_rows as u32);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels)).ok()?;
    Some((file, colour.samples()))
}
