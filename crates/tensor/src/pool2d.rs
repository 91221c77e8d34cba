use std::rc::Rc;

use brisk_kernels::{
    AvgPool2d, AvgPool2dGrad, DType, Images, MaxPool2d, MaxPool2dGrad, PoolDivisor, PoolShape, Rounding, Window,
};

use crate::{Error, Tensor};

/// The windows of a pooling over NHWC images.
///
/// # Examples
/// ```
/// use brisk_tensor::Pool2d;
///
/// // Three by three, every second pixel, one pixel of padding.
/// let pool = Pool2d { stride: [2, 2], padding: [1, 1], ..Pool2d::square(3) };
/// assert_eq!(pool.kernel, [3, 3]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool2d {
    /// Pixels that a window covers, `[height, width]`.
    pub kernel: [usize; 2],
    /// Pixels from one window to the next.
    pub stride: [usize; 2],
    /// Pixels added on each side; at most half of the window.
    pub padding: [usize; 2],
    /// What becomes of the pixels behind the last whole window.
    pub rounding: Rounding,
}

impl Pool2d {
    /// Square windows side by side, without padding.
    pub const fn square(kernel: usize) -> Self {
        Self { kernel: [kernel; 2], stride: [kernel; 2], padding: [0; 2], rounding: Rounding::Down }
    }

    fn over(&self, x: Images) -> PoolShape {
        let Self { kernel, stride, padding, rounding } = *self;
        PoolShape { x, window: Window { kernel, stride, padding }, rounding }
    }
}

impl Tensor {
    /// The largest value under each window, a channel at a time. The first of equal values gets the gradient; a NaN wins.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; the result `[n_images, height', width', n_channels]`.
    /// # Errors
    /// [`Error::Shape`]; [`Error::Program`] where no window fits, a stride is 0, or padding is more than half of a window.
    /// # Reference
    /// `torch.nn.functional.max_pool2d`.
    pub fn max_pool2d(&self, pool: &Pool2d) -> Result<Self, Error> {
        let shape = pool.over(self.images("max_pool2d", "x")?);
        self.max_pool(shape, &image_shape(&shape.y()))
    }

    /// The mean of what each window covers, a channel at a time.
    ///
    /// # Shapes
    /// As [`max_pool2d`](Self::max_pool2d).
    /// # Errors
    /// As [`max_pool2d`](Self::max_pool2d).
    /// # Reference
    /// `torch.nn.functional.avg_pool2d`.
    pub fn avg_pool2d(&self, pool: &Pool2d, divisor: PoolDivisor) -> Result<Self, Error> {
        let shape = pool.over(self.images("avg_pool2d", "x")?);
        self.avg_pool(AvgPool2d { shape, divisor }, &image_shape(&shape.y()))
    }

    /// The largest value of each channel of each image. The first of equal values gets the gradient; a NaN wins.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; the result `[n_images, n_channels]`.
    /// # Errors
    /// [`Error::Shape`].
    /// # Reference
    /// `torch.nn.functional.adaptive_max_pool2d(x, 1)`; `x.amax(dim=(1, 2))`, but for ties, among which `amax` spreads the gradient.
    pub fn global_max_pool2d(&self) -> Result<Self, Error> {
        let x = self.images("global_max_pool2d", "x")?;
        self.max_pool(PoolShape::global(x), &[x.n_images, x.n_channels])
    }

    /// The mean of each channel of each image.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; the result `[n_images, n_channels]`.
    /// # Errors
    /// [`Error::Shape`].
    /// # Reference
    /// `x.mean(dim=(1, 2))`.
    pub fn global_avg_pool2d(&self) -> Result<Self, Error> {
        let x = self.images("global_avg_pool2d", "x")?;
        self.avg_pool(AvgPool2d { shape: PoolShape::global(x), divisor: PoolDivisor::Padded }, &[x.n_images, x.n_channels])
    }

    fn max_pool(&self, shape: PoolShape, y_shape: &[usize]) -> Result<Self, Error> {
        const OP: &str = "max_pool2d";
        let graph = self.graph();
        let kernel = MaxPool2d { shape };
        let (dtype, [x]) = graph.operands(OP, &kernel, [self])?;
        let n = shape.y().len();
        let (y, taps) = (graph.transient(OP, dtype, n), graph.transient("taps", DType::U32, n));
        graph.push(kernel, &[x.slice(), y, taps])?;
        let x_id = x.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, MaxPool2dGrad { shape }, &[dy, taps]);
        graph.result(OP, &[&x], y, y_shape, None, Rc::new(rule))
    }

    fn avg_pool(&self, forward: AvgPool2d, y_shape: &[usize]) -> Result<Self, Error> {
        const OP: &str = "avg_pool2d";
        let graph = self.graph();
        let (dtype, [x]) = graph.operands(OP, &forward, [self])?;
        let y = graph.transient(OP, dtype, forward.shape.y().len());
        graph.push(forward, &[x.slice(), y])?;
        let x_id = x.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, AvgPool2dGrad { forward }, &[dy]);
        graph.result(OP, &[&x], y, y_shape, None, Rc::new(rule))
    }
}

fn image_shape(images: &Images) -> [usize; 4] {
    [images.n_images, images.height, images.width, images.n_channels]
}
