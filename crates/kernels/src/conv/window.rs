use crate::error::Error;
use crate::shader::param::Param;
use crate::sizes::check_size;

/// A batch of images, NHWC: `[n_images, height, width, n_channels]`, row-major, contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Images {
    /// The number of images.
    pub n_images: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Values of a pixel.
    pub n_channels: usize,
}

impl Images {
    /// The number of elements; `usize::MAX` on overflow, which every kernel refuses.
    pub const fn len(&self) -> usize {
        self.n_pixels().saturating_mul(self.n_channels)
    }

    /// Whether there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pixels of all images.
    pub const fn n_pixels(&self) -> usize {
        self.n_images.saturating_mul(self.height).saturating_mul(self.width)
    }
}

/// The windows of a convolution or a pooling over an image, each size along `[height, width]`.
///
/// Window `o` covers the pixels `o * stride - padding + tap` for `tap < kernel`, along both axes.
///
/// # Examples
/// ```
/// use brisk_kernels::Window;
///
/// // Three by three, every second pixel, one pixel of padding: 7 x 8 pixels become 4 x 4.
/// let window = Window { stride: [2, 2], ..Window::square(3, 1) };
/// assert_eq!(window.n_out([7, 8]), [4, 4]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Pixels that a window covers.
    pub kernel: [usize; 2],
    /// Pixels from one window to the next.
    pub stride: [usize; 2],
    /// Pixels added on each of the two sides.
    pub padding: [usize; 2],
}

impl Window {
    /// Square windows with stride 1.
    pub const fn square(kernel: usize, padding: usize) -> Self {
        Self { kernel: [kernel; 2], stride: [1; 2], padding: [padding; 2] }
    }

    /// How many windows fit an image of `[height, width]` pixels; 0 along an axis where not even one fits.
    pub const fn n_out(&self, size: [usize; 2]) -> [usize; 2] {
        [self.n_along(0, size[0]), self.n_along(1, size[1])]
    }

    /// The number of taps of a window.
    pub const fn n_taps(&self) -> usize {
        self.kernel[0].saturating_mul(self.kernel[1])
    }

    const fn n_along(&self, axis: usize, size: usize) -> usize {
        let padded = size.saturating_add(self.padding[axis].saturating_mul(2));
        if padded < self.kernel[axis] || self.stride[axis] == 0 {
            return 0;
        }
        (padded - self.kernel[axis]) / self.stride[axis] + 1
    }

    /// Whether the windows fit `x`, and every index fits the i32 arithmetic of the WGSL.
    pub(crate) fn check(&self, kernel: &'static str, x: &Images) -> Result<(), Error> {
        let max = i32::MAX as usize / 4;
        for axis in 0..2 {
            for (name, size) in [("kernel", self.kernel[axis]), ("stride", self.stride[axis])] {
                check_size(kernel, (name, size), size > 0 && size <= max, "1 to 2^29")?;
            }
            let (name, size) = [("height", x.height), ("width", x.width)][axis];
            for (name, size) in [("padding", self.padding[axis]), (name, size)] {
                check_size(kernel, (name, size), size <= max, "at most 2^29")?;
            }
            let expected = "at least the window's, padding included; pad more or take a smaller window";
            check_size(kernel, (name, size), self.n_along(axis, size) > 0, expected)?;
        }
        Ok(())
    }
}

/// The parameters of modules over images: the sizes of two batches, by name, and the windows. Pairs are along the height and
/// along the width.
pub(crate) fn window_params(images: [(&'static str, &Images); 2], window: &Window) -> [(&'static str, Param); 5] {
    let [first, second] = images.map(|(name, images)| (name, [images.height, images.width].into()));
    let [kernel, stride, padding] = [window.kernel, window.stride, window.padding].map(Param::from);
    [first, second, ("kernel_size", kernel), ("stride", stride), ("padding", padding)]
}
