//! The orientation of a photo: how it must be turned to be seen upright.

use super::pixels::{Pixels, Shape};

/// A value of the EXIF tag `Orientation`, from 1 to 8: where the first row and the first column of the stored pixels are in the
/// picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored(u8);

const TAG: u16 = 0x0112;
const SHORT: u16 = 3;

impl Stored {
    pub(super) const UPRIGHT: Self = Self(1);

    /// Reads the tag from EXIF data, which are a TIFF file; upright if there is none, or if it is invalid.
    pub(super) fn of_exif(exif: &[u8]) -> Self {
        let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
        orientation(tiff).filter(|value| (1..=8).contains(value)).map_or(Self::UPRIGHT, Self)
    }

    /// Whether rows of the stored image are columns of the picture.
    fn is_transposed(self) -> bool {
        self.0 >= 5
    }

    /// The shape of the picture.
    pub(super) fn shape(self, stored: Shape) -> Shape {
        if self.is_transposed() { Shape { height: stored.width, width: stored.height, ..stored } } else { stored }
    }

    /// Turns stored pixels into the picture.
    pub(super) fn applied(self, stored: Pixels) -> Pixels {
        if self == Self::UPRIGHT {
            return stored;
        }
        let (from, shape) = (stored.shape, self.shape(stored.shape));
        // Whether the first row is at the bottom, or the first column at the right, in the picture before it is transposed.
        let (from_bottom, from_right) = match self.0 {
            2 => (false, true),
            3 | 7 => (true, true),
            4 => (true, false),
            6 => (true, false),
            8 => (false, true),
            _ => (false, false),
        };
        let mut values = Vec::with_capacity(stored.values.len());
        for y in 0..shape.height {
            for x in 0..shape.width {
                let (row, col) = if self.is_transposed() { (x, y) } else { (y, x) };
                let row = if from_bottom { from.height - 1 - row } else { row };
                let col = if from_right { from.width - 1 - col } else { col };
                values.extend_from_slice(&stored.values[(row * from.width + col) * from.n_channels..][..from.n_channels]);
            }
        }
        Pixels { shape, values }
    }
}

fn orientation(tiff: &[u8]) -> Option<u8> {
    let is_little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let bytes = tiff.get(at..at + 2)?.try_into().ok()?;
        Some(if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let u32_at = |at: usize| {
        let bytes = tiff.get(at..at + 4)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = usize::try_from(u32_at(4)?).ok()?;
    let entries = (0..usize::from(u16_at(directory)?)).map(|entry| directory + 2 + 12 * entry);
    let entry = entries.into_iter().take_while(|&at| at + 12 <= tiff.len()).find(|&at| u16_at(at) == Some(TAG))?;
    (u16_at(entry + 2)? == SHORT).then(|| u16_at(entry + 8)).flatten().and_then(|value| value.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXIF data with a tag before the orientation.
    fn exif(orientation: u8, is_little: bool) -> Vec<u8> {
        let short = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let long = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let entry = |tag, value| [&short(tag)[..], &short(SHORT), &long(1), &short(value), &[0; 2]].concat();
        let start: &[u8] = if is_little { b"II*\0" } else { b"MM\0*" };
        [start, &long(8), &short(2), &entry(0x0100, 7), &entry(TAG, orientation.into()), &long(0)].concat()
    }

    /// The pictures that Pillow's `ImageOps.exif_transpose` makes of `[[1, 2, 3], [4, 5, 6]]`.
    #[track_caller]
    fn check(orientation: u8, rows: &[[u8; 3]; 2], columns: &[[u8; 2]; 3]) {
        let shape = Shape { height: 2, width: 3, n_channels: 1 };
        let expected = if orientation < 5 { rows.concat() } else { columns.concat() };
        for is_little in [true, false] {
            let stored = Stored::of_exif(&exif(orientation, is_little));
            let turned = stored.applied(Pixels { shape, values: vec![1, 2, 3, 4, 5, 6] });
            assert_eq!((turned.values, turned.shape), (expected.clone(), stored.shape(shape)), "{orientation}");
        }
    }

    #[test]
    fn all_eight_orientations() {
        let none = [[0; 2]; 3];
        check(1, &[[1, 2, 3], [4, 5, 6]], &none);
        check(2, &[[3, 2, 1], [6, 5, 4]], &none);
        check(3, &[[6, 5, 4], [3, 2, 1]], &none);
        check(4, &[[4, 5, 6], [1, 2, 3]], &none);
        let none = [[0; 3]; 2];
        check(5, &none, &[[1, 4], [2, 5], [3, 6]]);
        check(6, &none, &[[4, 1], [5, 2], [6, 3]]);
        check(7, &none, &[[6, 3], [5, 2], [4, 1]]);
        check(8, &none, &[[3, 6], [2, 5], [1, 4]]);
    }

    #[test]
    fn other_data_leave_the_image_as_it_is() {
        let valid = exif(6, true);
        assert_eq!(Stored::of_exif(&[b"Exif\0\0", &valid[..]].concat()), Stored(6));
        for n_bytes in 0..valid.len() - 8 {
            assert_eq!(Stored::of_exif(&valid[..n_bytes]), Stored::UPRIGHT, "{n_bytes} bytes");
        }
        assert_eq!([Stored::of_exif(&exif(0, true)), Stored::of_exif(&exif(9, true))], [Stored::UPRIGHT; 2]);
    }
}
