use crate::conv::window::{Images, Window, window_params};
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::Kernel;
use crate::shader::param::Param;
use crate::sizes::check_size;

/// The sizes of a pooling, shared with its gradient. Each channel is pooled separately.
///
/// # Examples
/// ```
/// use brisk_kernels::{Images, PoolShape, Rounding, Window};
///
/// let x = Images { n_images: 1, height: 7, width: 7, n_channels: 16 };
/// let window = Window { kernel: [2, 2], stride: [2, 2], padding: [0, 0] };
/// assert_eq!(PoolShape { x, window, rounding: Rounding::Down }.y().height, 3);
/// assert_eq!(PoolShape { x, window, rounding: Rounding::Up }.y().height, 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolShape {
    /// The input images.
    pub x: Images,
    /// The windows. The padding may be up to half of their size.
    pub window: Window,
    /// How pixels after the last whole window are treated.
    pub rounding: Rounding,
}

/// How pixels after the last whole window are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rounding {
    /// They are left out.
    #[default]
    Down,
    /// They are covered by a window that reaches beyond the image: PyTorch's `ceil_mode`. A window that would start in the
    /// padding after the image is left out.
    Up,
}

impl PoolShape {
    /// One window that covers each whole image.
    pub const fn global(x: Images) -> Self {
        Self { x, window: Window { kernel: [x.height, x.width], stride: [1; 2], padding: [0; 2] }, rounding: Rounding::Down }
    }

    /// The output images.
    pub const fn y(&self) -> Images {
        let Images { n_images, height, width, n_channels } = self.x;
        Images { n_images, height: self.n_along(0, height), width: self.n_along(1, width), n_channels }
    }

    const fn n_along(&self, axis: usize, size: usize) -> usize {
        let n = self.window.n_out([size, size])[axis];
        let (kernel, stride, padding) = (self.window.kernel[axis], self.window.stride[axis], self.window.padding[axis]);
        if let Rounding::Down = self.rounding {
            return n;
        }
        if n == 0 {
            return 0;
        }
        let reached = (n - 1).saturating_mul(stride).saturating_add(kernel);
        let begins_inside = n.saturating_mul(stride) < size.saturating_add(padding);
        if reached < size.saturating_add(padding.saturating_mul(2)) && begins_inside { n + 1 } else { n }
    }

    /// The same in units of what an invocation processes: one channel, or two channels of a 16-bit type.
    pub(crate) const fn in_lanes(self, dtype: DType) -> Self {
        let n_channels = self.x.n_channels / if dtype.is_half() { 2 } else { 1 };
        Self { x: Images { n_channels, ..self.x }, ..self }
    }

    /// The fields that the modules share. Pairs are along the height and along the width.
    pub(crate) fn params(&self) -> Vec<(&'static str, Param)> {
        let sizes = window_params([("x_size", &self.x), ("y_size", &self.y())], &self.window);
        sizes.into_iter().chain([("n_channels", self.x.n_channels.into())]).collect()
    }

    pub(crate) fn check(&self, kernel: &impl Kernel) -> Result<(), Error> {
        self.window.check(kernel.name(), &self.x)?;
        for (padding, len) in self.window.padding.into_iter().zip(self.window.kernel) {
            let expected = "at most half of the window's length, so that no window is entirely in the padding";
            check_size(kernel.name(), ("padding", padding), padding <= len / 2, expected)?;
        }
        let Images { n_images, height, width, n_channels } = self.x;
        let taps = ("taps of a window", self.window.n_taps());
        check_sizes(kernel, &[("n_images", n_images), ("height", height), ("width", width), ("n_channels", n_channels), taps])
    }

    /// The pixels of x, within the image, that window `at` covers along an axis, and where the window starts.
    pub(crate) fn covered(&self, axis: usize, at: usize) -> (std::ops::Range<usize>, isize) {
        let size = [self.x.height, self.x.width][axis];
        let first = (at * self.window.stride[axis]) as isize - self.window.padding[axis] as isize;
        let end = (first + self.window.kernel[axis] as isize).min(size as isize);
        (first.max(0) as usize..end.max(0) as usize, first)
    }

    /// The windows that cover pixel `at` of x along an axis.
    pub(crate) fn covering(&self, axis: usize, at: usize) -> std::ops::Range<usize> {
        let y = self.y();
        let (kernel, stride) = (self.window.kernel[axis], self.window.stride[axis]);
        let padded = at + self.window.padding[axis];
        let first = (padded + 1).saturating_sub(kernel).div_ceil(stride);
        first..(padded / stride + 1).min([y.height, y.width][axis])
    }
}
