//! The augmentation of an image of a batch, and the random numbers for it.

use crate::error::Error;
use crate::kernel::interval::{Interval, check_settings};
use crate::kernel::kernel::Kernel;
use crate::random::philox::Philox;
use crate::sizes::{check_size, in_u32};

/// Random changes to an image: crop, flip, cutout, brightness and contrast. The default changes nothing.
///
/// All of them follow from the seed, the epoch and the row of the image, so they are the same in every batch, for any number of
/// replicas and on every device.
///
/// # Examples
/// ```
/// use brisk_kernels::{Flip, ImageAugmentation};
///
/// let light = ImageAugmentation { pad: 2, flip: Flip::Alternating, seed: 7, ..ImageAugmentation::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ImageAugmentation {
    /// Pixels added on each side before a random window is cropped: `2 pad + 1` offsets along each dimension if the crop is as
    /// large as the image.
    pub pad: usize,
    /// The values of the pixels that are added.
    pub border: Border,
    /// Which images are mirrored, left to right.
    pub flip: Flip,
    /// A square with sides of this many pixels, at a random position inside the crop, is set to 0, the mean once images are
    /// standardised (DeVries & Taylor 2017). 0 for none.
    pub cutout: usize,
    /// A number from `-brightness` to `brightness` is added to all values of an image.
    pub brightness: f32,
    /// After that, all values of an image are multiplied by a number from `1 - contrast` to `1 + contrast`.
    pub contrast: f32,
    /// The seed of the run.
    pub seed: u64,
}

/// The values of pixels outside an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Border {
    /// The image is mirrored at its edge, without repeating the edge: `torch.nn.functional.pad(mode="reflect")`.
    #[default]
    Reflect,
    /// 0, the mean once images are standardised.
    Zero,
}

/// Which images are mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Flip {
    /// None.
    #[default]
    Never,
    /// Each image with probability 1/2 in each epoch.
    Random,
    /// Each image in every second epoch: a random half of them in the even epochs, the others in the odd ones (Jordan 2024,
    /// arXiv:2404.00498).
    Alternating,
}

/// The draws for an image: the top left corner of the crop in the image, whether it is mirrored, the corner of the cutout in the
/// crop, and the factor and the summand of its values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Draws {
    pub(crate) top: i32,
    pub(crate) left: i32,
    pub(crate) is_flipped: bool,
    pub(crate) cutout: [u32; 2],
    pub(crate) factor: f32,
    pub(crate) summand: f32,
}

impl ImageAugmentation {
    /// The numbers of offsets of a crop, along each dimension.
    pub(crate) fn n_offsets(&self, image: [usize; 3], crop: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|dim| (image[dim] + 2 * self.pad).saturating_sub(crop[dim]) + 1)
    }

    pub(crate) fn check(&self, kernel: &dyn Kernel, [height, width, _]: [usize; 3], crop: [usize; 2]) -> Result<(), Error> {
        let size = |size, found, is_valid, expected| check_size(kernel.name(), (size, found), is_valid, expected);
        let can_reflect = self.border != Border::Reflect || self.pad < height.min(width);
        size("pad", self.pad, can_reflect, "less than the image's height and width, which a reflection cannot exceed")?;
        for (dim, [found, image]) in [("crop height", [crop[0], height]), ("crop width", [crop[1], width])] {
            let is_inside = found > 0 && found <= image.saturating_add(2 * self.pad);
            size(dim, found, is_inside, "at least 1 and at most that of the padded image")?;
        }
        size("cutout", self.cutout, self.cutout <= crop[0].min(crop[1]), "at most the crop's height and width")?;
        let settings = [("brightness", self.brightness), ("contrast", self.contrast)];
        check_settings(kernel, &settings.map(|(name, value)| (name, value, Interval::NonNegative)))
    }

    /// The draws for the image `id` in `epoch`: words of the Philox blocks `[id, epoch, 0, 0]` and `[id, epoch, 1, 0]`.
    pub(crate) fn draws(&self, image: [usize; 3], crop: [usize; 2], id: u32, epoch: u32) -> Draws {
        let philox = Philox::new(self.seed);
        let [first, second] = [0, 1].map(|block| philox.block([id, epoch, block, 0]));
        let [n_tops, n_lefts] = self.n_offsets(image, crop);
        let pad = in_u32(self.pad).cast_signed();
        let is_flipped = match self.flip {
            Flip::Never => false,
            Flip::Random => first[2] >> 31 == 1,
            Flip::Alternating => (philox.block([id, 0, 2, 0])[0] >> 31) ^ (epoch & 1) == 1,
        };
        let n_cutouts = crop.map(|len| len - self.cutout + 1);
        let factor = 1.0 + self.contrast * centred(second[2]);
        let summand = self.brightness * centred(second[1]) * factor;
        Draws {
            top: below(first[0], n_tops).cast_signed() - pad,
            left: below(first[1], n_lefts).cast_signed() - pad,
            is_flipped,
            cutout: [below(first[3], n_cutouts[0]), below(second[0], n_cutouts[1])],
            factor,
            summand,
        }
    }
}

/// A random word as a number below `n`: the high word of their product.
fn below(word: u32, n: usize) -> u32 {
    ((u64::from(word) * u64::from(in_u32(n))) >> 32) as u32
}

/// A random word as a number from -1 to 1, by its high 24 bits.
#[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
fn centred(word: u32) -> f32 {
    (word >> 8) as f32 * (2.0 / 16_777_216.0) - 1.0
}
