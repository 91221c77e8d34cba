use std::io::Write;
use std::path::Path;

use anyhow::Result;
use brisk_atomic_file::write_atomically;
use brisk_examples::letters::GLYPHS;

/// Pixels between two images.
const GAP: usize = 2;

/// The minimum length of the shorter side of an image in a picture; smaller images are enlarged by an integer factor.
const MIN_SIDE: usize = 64;

/// The colour between images.
const BACKGROUND: u8 = 24;

/// The colour of captions.
const TEXT: u8 = 200;

/// Height of the caption of a row; letters are fourteen pixels high.
const CAPTION: usize = 20;

/// Images of one size in rows and columns.
#[derive(Debug)]
pub(crate) struct Grid {
    /// Height, width and channels of an image.
    image: [usize; 3],
    n_columns: usize,
    pixels: Vec<u8>,
    captions: Vec<&'static str>,
}

impl Grid {
    /// Creates a grid without images.
    pub(crate) fn new(image: [usize; 3], n_columns: usize) -> Self {
        Self { image, n_columns, pixels: Vec::new(), captions: Vec::new() }
    }

    /// Adds images, `[n, height, width, n_channels]`, from left to right and from top to bottom.
    pub(crate) fn push(&mut self, images: &[u8]) {
        self.pixels.extend_from_slice(images);
    }

    /// Adds a row of images with a caption, which consists of letters and spaces. Either all rows have a caption or none.
    pub(crate) fn push_row(&mut self, caption: &'static str, images: &[u8]) {
        self.captions.push(caption);
        self.push(images);
    }

    /// Writes the picture as a PNG file, which atomically replaces a file at `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let (pixels, [height, width]) = self.picture();
        let png = encoded(&pixels, [height, width])?;
        Ok(write_atomically(path, |file| file.write_all(&png))?)
    }

    /// The pixels of the picture in RGB, and its height and width.
    fn picture(&self) -> (Vec<u8>, [usize; 2]) {
        let [height, width, n_channels] = self.image;
        let zoom = MIN_SIDE.div_ceil(height.min(width)).max(1);
        let n_images = self.pixels.len() / (height * width * n_channels);
        let n_columns = self.n_columns.min(n_images).max(1);
        let n_rows = n_images.div_ceil(n_columns);
        let caption = if self.captions.is_empty() { 0 } else { CAPTION };
        let [pitch_y, pitch_x] = [height * zoom + GAP + caption, width * zoom + GAP];
        let [picture_height, picture_width] = [n_rows * pitch_y + GAP, n_columns * pitch_x + GAP];
        let mut picture = vec![BACKGROUND; picture_height * picture_width * 3];
        for (i, image) in self.pixels.chunks_exact(height * width * n_channels).enumerate() {
            let (top, left) = (GAP + caption + i / n_columns * pitch_y, GAP + i % n_columns * pitch_x);
            for y in 0..height * zoom {
                for x in 0..width * zoom {
                    let pixel = &image[(y / zoom * width + x / zoom) * n_channels..][..n_channels];
                    let rgb = match *pixel {
                        // Grey, perhaps with alpha; then colours, perhaps with alpha.
                        [grey] | [grey, _] => [grey; 3],
                        [red, green, blue, ..] => [red, green, blue],
                        [] => [BACKGROUND; 3],
                    };
                    picture[((top + y) * picture_width + left + x) * 3..][..3].copy_from_slice(&rgb);
                }
            }
        }
        for (row, caption) in self.captions.iter().enumerate() {
            write(&mut picture, picture_width, [GAP + row * pitch_y + 3, 2 * GAP], caption);
        }
        (picture, [picture_height, picture_width])
    }
}

/// The bytes of a PNG file with pixels in RGB.
fn encoded(pixels: &[u8], [height, width]: [usize; 2]) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(file)
}

/// Writes text whose upper left corner is at `[y, x]`, two pixels per pixel of a letter; text beyond the right edge is cut off.
fn write(picture: &mut [u8], picture_width: usize, [top, left]: [usize; 2], text: &str) {
    for (i, letter) in text.bytes().enumerate() {
        let Some(glyph) = letter.to_ascii_uppercase().checked_sub(b'A').and_then(|at| GLYPHS.get(usize::from(at))) else {
            continue;
        };
        for y in 0..14 {
            for x in 0..10 {
                let (row, column) = (top + y, left + 12 * i + x);
                if glyph[y / 2] >> (4 - x / 2) & 1 == 1 && column < picture_width {
                    picture[(row * picture_width + column) * 3..][..3].fill(TEXT);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_enlarged_and_placed_side_by_side() {
        let mut grid = Grid::new([1, 2, 1], 2);
        grid.push(&[10, 20, 30, 40, 50, 60]);
        let (pixels, [height, width]) = grid.picture();
        assert_eq!([height, width], [2 * (64 + GAP) + GAP, 2 * (128 + GAP) + GAP]);
        let at = |y: usize, x: usize| pixels[(y * width + x) * 3];
        let second = GAP + 128 + GAP;
        assert_eq!([at(GAP, GAP), at(GAP, GAP + 64), at(GAP, second), at(GAP, second + 127)], [10, 20, 30, 40]);
        assert_eq!([at(height - GAP - 1, GAP), at(height - GAP - 1, second)], [50, BACKGROUND]);
        assert_eq!(at(0, 0), BACKGROUND);
    }

    #[test]
    fn a_picture_is_read_back_from_its_file() {
        let pixels: Vec<u8> = (0..5 * 7 * 3).collect();
        let file = encoded(&pixels, [5, 7]).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut read = vec![0; pixels.len()];
        let info = reader.next_frame(&mut read).unwrap();
        assert_eq!((info.height, info.width, info.color_type), (5, 7, png::ColorType::Rgb));
        assert_eq!(read, pixels);
    }

    #[test]
    fn captions_are_above_their_rows() {
        let mut grid = Grid::new([1, 1, 1], 2);
        grid.push_row("L", &[10, 20]);
        grid.push_row("a word far too long for the picture", &[30, 40]);
        let (pixels, [height, width]) = grid.picture();
        assert_eq!([height, width], [2 * (64 + GAP + CAPTION) + GAP, 2 * (64 + GAP) + GAP]);
        let at = |y: usize, x: usize| pixels[(y * width + x) * 3];
        // The vertical stroke of the L, and the empty area above its horizontal stroke.
        assert_eq!([at(GAP + 3, 2 * GAP), at(GAP + 3, 2 * GAP + 8)], [TEXT, BACKGROUND]);
        assert_eq!([at(GAP + CAPTION, GAP), at(height - GAP - 1, width - GAP - 1)], [10, 40]);
    }
}
