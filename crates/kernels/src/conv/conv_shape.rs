use crate::conv::window::{Images, Window};
use crate::error::Error;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Cost, Kernel};
use crate::sizes::check_size;

/// The sizes of a 2-D convolution, shared with its gradients.
///
/// The channels on both sides are split into `n_groups` groups of consecutive channels, and each output channel is computed from
/// the input channels of its group. The taps of a window are `dilation` pixels apart.
///
/// # Examples
/// ```
/// use brisk_kernels::{ConvShape, Images, Window};
///
/// // Depthwise: as many groups as channels. The taps cover 5 x 5 pixels.
/// let x = Images { n_images: 1, height: 8, width: 8, n_channels: 16 };
/// let shape = ConvShape { x, n_out: 16, window: Window::square(3, 2), dilation: [2, 2], n_groups: 16 };
/// assert_eq!((shape.y().height, shape.n_weights()), (8, 3 * 3 * 16));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvShape {
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

/// How a convolution and its gradients are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConvForm {
    /// Without groups and dilation, over windows of a single pixel: a plain product of `[n_pixels, n_channels]`.
    Pointwise,
    /// Without groups and dilation: an implicit product of patches.
    Dense,
    /// With groups or dilation: each result directly, from the channels of its group.
    Grouped,
}

impl ConvShape {
    /// Without groups and dilation.
    pub const fn dense(x: Images, n_out: usize, window: Window) -> Self {
        Self { x, n_out, window, dilation: [1; 2], n_groups: 1 }
    }

    /// How it is computed.
    pub(crate) fn form(&self) -> ConvForm {
        match (self.n_groups, self.dilation, self.window) {
            (1, [1, 1], window) if window == Window::square(1, 0) => ConvForm::Pointwise,
            (1, [1, 1], _) => ConvForm::Dense,
            _ => ConvForm::Grouped,
        }
    }

    /// Whether the channels on both sides can be read as vectors of four.
    pub(crate) const fn reads_vectors(&self) -> bool {
        self.x.n_channels.is_multiple_of(4) && self.n_out.is_multiple_of(4)
    }

    /// The output images.
    pub const fn y(&self) -> Images {
        let [height, width] = self.covered().n_out([self.x.height, self.x.width]);
        Images { n_images: self.x.n_images, height, width, n_channels: self.n_out }
    }

    /// Elements of the weights, `[n_out, kernel height, kernel width, n_channels / n_groups]`.
    pub const fn n_weights(&self) -> usize {
        self.n_patch().saturating_mul(self.n_out)
    }

    /// The number of values that an output value is computed from: the length of the forward product's sums.
    pub const fn n_patch(&self) -> usize {
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
        for n in self.dilation {
            let is_valid = n > 0 && n <= i32::MAX as usize / 4;
            check_size(name, ("dilation", n), is_valid, "1 to 2^29; 1 for windows without gaps")?;
        }
        let expected = "at least 1; 1 for a convolution without groups";
        check_size(name, ("n_groups", self.n_groups), self.n_groups > 0, expected)?;
        for (size, n) in [("n_channels", self.x.n_channels), ("n_out", self.n_out)] {
            check_size(name, (size, n), n.is_multiple_of(self.n_groups), "a multiple of n_groups")?;
        }
        self.covered().check(name, &self.x)?;
        // The modules count pixels, and the values of a patch, in u32.
        let (x, y) = (self.x, self.y());
        let sizes = [
            ("n_images", x.n_images),
            ("height", x.height),
            ("width", x.width),
            ("n_channels", x.n_channels),
            ("n_out", y.n_channels),
            ("pixels of x", x.n_pixels()),
            ("pixels of y", y.n_pixels()),
            ("values of a patch", self.n_patch()),
        ];
        check_sizes(kernel, &sizes)
    }

    /// The cost of the convolution, and of either gradient.
    pub(crate) fn cost(&self) -> Cost {
        let (x, y, n_weights) = (self.x, self.y(), self.n_weights());
        let flops = 2 * (y.n_pixels() as u64).saturating_mul(n_weights as u64);
        Cost { flops, bytes: 4 * (x.len() + n_weights + y.len()) as u64 }
    }
}
