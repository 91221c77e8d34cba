//! Test-time augmentation: a model's mean output over several views of each image.

use brisk_nn::tensor::program::kernels::Interval;
use brisk_nn::tensor::{Mode, Tensor};
use brisk_nn::{Bound, Error, Module};

/// A view of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Its weight in the mean, which is divided by the sum of all weights: a finite number that is not negative.
    pub weight: f32,
    /// Whether it is mirrored, left to right.
    pub is_mirrored: bool,
    /// By how many pixels the image is moved down and to the right; up and to the left if negative. Pixels from outside the image
    /// are reflected at the edge; the shift must be less than the image.
    pub shift: [i32; 2],
}

impl View {
    /// Only the unchanged image.
    pub fn plain() -> Vec<Self> {
        vec![Self { weight: 1.0, is_mirrored: false, shift: [0, 0] }]
    }

    /// The image and its mirror image, each with weight 1/2.
    pub fn mirrored() -> Vec<Self> {
        [false, true].map(|is_mirrored| Self { weight: 0.5, is_mirrored, shift: [0, 0] }).to_vec()
    }

    /// Six views: the image and its mirror image with weight 1/4 each, and both moved by one pixel, down and to the right or up
    /// and to the left, with weight 1/8 each (Jordan 2024, arXiv:2404.00498, section 3.5).
    pub fn six() -> Vec<Self> {
        let moved = |shift| [false, true].map(|is_mirrored| Self { weight: 0.125, is_mirrored, shift });
        let still = [false, true].map(|is_mirrored| Self { weight: 0.25, is_mirrored, shift: [0, 0] });
        [still, moved([1, 1]), moved([-1, -1])].concat()
    }

    /// The views of [`six`](Self::six) with weight 1/6 each. The CIFAR-10 record of Hiverge (2025) uses them for the least
    /// confident quarter of the test images only, as `Model::evaluate_selectively` of brisk-train does.
    pub fn six_equal() -> Vec<Self> {
        Self::six().into_iter().map(|view| Self { weight: 1.0 / 6.0, ..view }).collect()
    }

    /// The index along `axis` (0 for the height, 1 for the width) of the image's pixel that each pixel of the view shows, for an
    /// image of `size` pixels along that axis.
    fn shown(&self, axis: usize, size: usize) -> Vec<u32> {
        let at = |pixel: usize| {
            let mirrored = if axis == 1 && self.is_mirrored { size - 1 - pixel } else { pixel };
            let at = (mirrored as i64 - i64::from(self.shift[axis])).unsigned_abs() as usize;
            at.min((2 * (size - 1)).saturating_sub(at)) as u32
        };
        (0..size).map(at).collect()
    }

    /// Records the view of `images`, `[n, height, width, n_channels]`.
    fn record(&self, images: &Tensor) -> Tensor {
        let &[_, height, width, _] = images.shape() else { return images.clone() };
        let mut view = images.clone();
        if self.shift[0] != 0 {
            view = view.index_select(1, &self.shown(0, height));
        }
        if self.is_mirrored || self.shift[1] != 0 {
            view = view.index_select(2, &self.shown(1, width));
        }
        view
    }
}

/// A model that returns the weighted mean of another model's outputs over several views of each image, in inference graphs.
/// Training graphs record the other model unchanged.
///
/// # Errors
/// [`Error::Refused`] for a weight that is negative or not finite, if all weights are 0, and for a shift beyond the image.
/// # Reference
/// Krizhevsky et al. 2012, test-time augmentation by crops and mirror images.
#[derive(Debug, Clone, PartialEq)]
pub struct WithViews<M> {
    /// The model for single images.
    pub model: M,
    /// Height, width and channels of an image.
    pub image: [usize; 3],
    /// The views.
    pub views: Vec<View>,
}

impl<M: Module> Module for WithViews<M> {
    /// # Shapes
    /// `x`: `[n, height * width * n_channels]` or `[n, height, width, n_channels]`.
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        if x.graph().mode() == Mode::Training {
            return self.model.forward(params, x);
        }
        let [height, width, n_channels] = self.image;
        let images = x.reshape(&[x.shape()[0], height, width, n_channels]);
        let is_valid = |view: &View| {
            let shifts = view.shift.iter().zip([height, width]);
            Interval::NonNegative.contains(view.weight.into())
                && shifts.into_iter().all(|(by, size)| (by.unsigned_abs() as usize) < size)
        };
        let total: f64 = self.views.iter().map(|view| f64::from(view.weight)).sum();
        if !self.views.iter().all(is_valid) || total == 0.0 {
            let found = format!("{:?} of images of {height} × {width}", self.views);
            let expected = "weights that are not negative, one of them above 0, and shifts within the image";
            x.graph().fail(Error::Refused { op: "views", found, expected });
            return self.model.forward(params, x);
        }
        let weighted = |view: &View| self.model.forward(params, &view.record(&images)) * (f64::from(view.weight) / total) as f32;
        let outputs = self.views.iter().map(weighted).reduce(|sum, output| &sum + &output);
        outputs.unwrap_or_else(|| self.model.forward(params, x))
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.image.iter().product())
    }
}
