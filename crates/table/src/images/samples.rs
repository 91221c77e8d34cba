//! The samples of a decoded image, and their conversion to other channels of 8 bits.

use std::fmt;

/// The samples of each pixel: grey, grey and alpha, RGB, or RGB and alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Samples {
    /// From 1 to 4.
    pub(super) n_channels: usize,
    /// Of each sample: 1, or 2 in big-endian order.
    pub(super) n_bytes: usize,
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channels = ["grey", "grey and alpha", "RGB", "RGB and alpha"][self.n_channels - 1];
        write!(f, "{} bits per channel ({channels})", 8 * self.n_bytes)
    }
}

impl Samples {
    pub(super) fn bytes_per_pixel(self) -> usize {
        self.n_channels * self.n_bytes
    }

    /// Converts pixels to `n_channels` channels of 8 bits: one for grey, three for RGB, four for RGB and alpha, or the channels
    /// that they have. Samples of 16 bits are rounded to 8 first, a colour becomes grey as in Pillow, alpha is dropped, pixels
    /// without alpha become opaque.
    pub(super) fn converted(self, bytes: Vec<u8>, n_channels: usize) -> Vec<u8> {
        match self.n_bytes {
            1 if self.n_channels == n_channels => bytes,
            1 => convert::<1>(&bytes, self.n_channels, n_channels, |[value]| value),
            _ => convert::<2>(&bytes, self.n_channels, n_channels, narrowed),
        }
    }
}

/// Grey of a colour by the weights of BT.601, bit-identical to Pillow's `convert("L")` and torchvision's `Grayscale`.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = 19_595 * u32::from(red) + 38_470 * u32::from(green) + 7_471 * u32::from(blue);
    u8::try_from((sum + (1 << 15)) >> 16).expect("the weights add up to 2^16")
}

/// The nearest 8-bit value: 65535 is 257 times 255.
fn narrowed(value: [u8; 2]) -> u8 {
    u8::try_from((u32::from(u16::from_be_bytes(value)) + 128) / 257).expect("65535 becomes 255")
}

/// `to_u8` gives an 8-bit value for a sample of `N_BYTES` bytes.
fn convert<const N_BYTES: usize>(bytes: &[u8], from: usize, to: usize, to_u8: impl Fn([u8; N_BYTES]) -> u8) -> Vec<u8> {
    let (samples, _) = bytes.as_chunks::<N_BYTES>();
    let mut converted = Vec::with_capacity(samples.len() / from * to);
    for pixel in samples.chunks_exact(from) {
        match (pixel, to) {
            (&[grey] | &[grey, _], 1) => converted.push(to_u8(grey)),
            (&[red, green, blue, ..], 1) => converted.push(luma([red, green, blue].map(&to_u8))),
            (&[grey] | &[grey, _], _) => converted.extend([to_u8(grey); 3]),
            (&[red, green, blue, ..], _) => converted.extend([red, green, blue].map(&to_u8)),
            ([], _) => unreachable!("a pixel has samples"),
        }
        if to == 4 {
            converted.push(match pixel {
                &[_, alpha] | &[_, _, _, alpha] => to_u8(alpha),
                _ => 255,
            });
        }
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_are_rounded_to_eight() {
        for value in 0..=u16::MAX {
            let expected = (f64::from(value) * 255.0 / 65_535.0).round();
            assert_eq!(f64::from(narrowed(value.to_be_bytes())), expected, "{value}");
        }
    }

    #[test]
    fn grey_values_stay_the_same_as_colours() {
        let grey: Vec<u8> = (0..=255).collect();
        let colours: Vec<u8> = grey.iter().flat_map(|&value| [value; 3]).collect();
        let samples = |n_channels| Samples { n_channels, n_bytes: 1 };
        assert_eq!(samples(1).converted(grey.clone(), 3), colours);
        assert_eq!(samples(3).converted(colours, 1), grey);
    }

    #[test]
    fn alpha_is_dropped_or_added() {
        let samples = |n_channels, n_bytes| Samples { n_channels, n_bytes };
        assert_eq!(samples(2, 1).converted(vec![5, 9], 1), [5]);
        assert_eq!(samples(2, 1).converted(vec![5, 9], 4), [5, 5, 5, 9]);
        assert_eq!(samples(1, 1).converted(vec![5], 4), [5, 5, 5, 255]);
        assert_eq!(samples(4, 1).converted(vec![1, 2, 3, 9], 3), [1, 2, 3]);
        // 128 / 257 is less than a half, 129 / 257 more.
        assert_eq!(samples(3, 2).converted(vec![0, 128, 0, 129, 255, 255], 4), [0, 1, 255, 255]);
        assert_eq!(samples(1, 2).to_string(), "16 bits per channel (grey)");
    }
}
