use super::over_images;
use super::window::window_params;
use crate::conv::conv2d::ConvShape;
use crate::conv::window::{Images, Window};
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel};
use crate::shader::param::Param;

/// The sizes of a 2-D convolution with groups or dilation, shared with its gradients.
///
/// The channels on both sides are split into `n_groups` groups of consecutive channels, and each output channel is computed from the input channels of its group.
/// The taps of a window are `dilation` pixels apart.
///
/// # Examples
/// ```
/// use brisk_kernels::{GroupedConvShape, Images, Window};
///
/// // Depthwise: as many groups as channels. The taps cover 5 x 5 pixels.
/// let x = Images { n_images: 1, height: 8, width: 8, n_channels: 16 };
/// let shape = GroupedConvShape { x, n_out: 16, window: Window::square(3, 2), dilation: [2, 2], n_groups: 16 };
/// assert_eq!((shape.y().height, shape.n_weights()), (8, 3 * 3 * 16));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupedConvShape {
    /// The input images.
    pub x: Images,
    /// Output channels.
    pub n_out: usize,
    /// The windows; their kernel is the number of taps along each axis.
    pub window: Window,
    /// Pixels from one tap of a window to the next, along `[height, width]`; 1 for adjacent pixels.
    pub dilation: [usize; 2],
    /// Groups of channels; 1 to compute each output channel from all input channels.
    pub n_groups: usize,
}

impl GroupedConvShape {
    /// The output images.
    pub const fn y(&self) -> Images {
        let [height, width] = self.covered().n_out([self.x.height, self.x.width]);
        Images { n_images: self.x.n_images, height, width, n_channels: self.n_out }
    }

    /// Elements of the weights, `[n_out, kernel height, kernel width, n_channels / n_groups]`.
    pub const fn n_weights(&self) -> usize {
        self.n_patch().saturating_mul(self.n_out)
    }

    /// The same convolution without groups and dilation, if it has neither: [`Conv2d`](crate::Conv2d) computes it as a matrix product.
    pub fn as_dense(&self) -> Option<ConvShape> {
        let Self { x, n_out, window, dilation, n_groups } = *self;
        (dilation == [1, 1] && n_groups == 1).then_some(ConvShape { x, n_out, window })
    }

    /// The number of values that an output value is computed from.
    pub(crate) const fn n_patch(&self) -> usize {
        self.window.n_taps().saturating_mul(self.group_channels())
    }

    /// A group's share of `n` channels; 0 if there are no groups, which [`check`](Self::check) refuses.
    const fn of_group(&self, n: usize) -> usize {
        match n.checked_div(self.n_groups) {
            Some(share) => share,
            None => 0,
        }
    }

    /// Input channels of a group.
    pub(crate) const fn group_channels(&self) -> usize {
        self.of_group(self.x.n_channels)
    }

    /// Output channels of a group.
    pub(crate) const fn group_out(&self) -> usize {
        self.of_group(self.n_out)
    }

    /// Whether each output channel is computed from one input channel, which no other output channel uses.
    pub(crate) const fn is_depthwise(&self) -> bool {
        self.group_channels() == 1 && self.group_out() == 1
    }

    /// The windows without gaps that cover the same pixels, from the first tap to the last.
    const fn covered(&self) -> Window {
        Window { kernel: [self.covered_along(0), self.covered_along(1)], ..self.window }
    }

    const fn covered_along(&self, axis: usize) -> usize {
        match self.window.kernel[axis] {
            0 => 0,
            n_taps => (n_taps - 1).saturating_mul(self.dilation[axis]).saturating_add(1),
        }
    }

    /// The pixel of `x` along an axis that tap `tap` of window `at` reads, if it is in the image.
    #[inline(always)]
    pub(crate) fn source(&self, axis: usize, at: usize, tap: usize) -> Option<usize> {
        let padded = at * self.window.stride[axis] + tap * self.dilation[axis];
        padded.checked_sub(self.window.padding[axis]).filter(|&at| at < [self.x.height, self.x.width][axis])
    }

    /// The window along an axis whose tap `tap` reads pixel `at` of `x`, if there is one; `n` is how many windows there are.
    #[inline(always)]
    pub(crate) fn window_at(&self, axis: usize, at: usize, tap: usize, n: usize) -> Option<usize> {
        let stride = self.window.stride[axis];
        let first = (at + self.window.padding[axis]).checked_sub(tap * self.dilation[axis])?;
        Some(first / stride).filter(|&window| first.is_multiple_of(stride) && window < n)
    }

    pub(crate) fn check(&self, kernel: &impl Kernel) -> Result<(), Error> {
        let name = kernel.name();
        for axis in 0..2 {
            let found = self.dilation[axis];
            if found == 0 || found > i32::MAX as usize / 4 {
                return Err(Error::Size {
                    kernel: name,
                    size: "dilation",
                    found,
                    expected: "1 to 2^29; 1 for windows without gaps",
                });
            }
        }
        if self.n_groups == 0 {
            let expected = "at least 1; 1 for a convolution without groups";
            return Err(Error::Size { kernel: name, size: "n_groups", found: 0, expected });
        }
        for (size, found) in [("n_channels", self.x.n_channels), ("n_out", self.n_out)] {
            if !found.is_multiple_of(self.n_groups) {
                return Err(Error::Size { kernel: name, size, found, expected: "a multiple of n_groups" });
            }
        }
        self.covered().check(name, &self.x)?;
        over_images::check(kernel, self.x, self.y(), self.n_patch())
    }

    /// The cost of the convolution, and of either gradient.
    pub(crate) fn cost(&self) -> Cost {
        over_images::cost(self.x, self.y(), self.n_weights())
    }

    /// The fields that the modules share. Pairs are along the height and along the width.
    pub(crate) fn params(&self) -> Vec<(&'static str, Param)> {
        let y = self.y();
        let images = window_params([("x_size", &self.x), ("y_size", &y)], &self.window);
        let sizes = [
            ("n_images", self.x.n_images),
            ("n_channels", self.x.n_channels),
            ("n_out", self.n_out),
            ("group_channels", self.group_channels()),
            ("group_out", self.group_out()),
        ];
        let sizes = sizes.map(|(name, size)| (name, size.into()));
        images.into_iter().chain([("dilation", self.dilation.into())]).chain(sizes).collect()
    }
}
