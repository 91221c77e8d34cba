use brisk_kernels::{
    AvgPool2d, AvgPool2dGrad, DType, Images, MaxPool2d, MaxPool2dGrad, PoolDivisor, PoolShape, Rounding, Window,
};

use crate::error::Error;
use crate::graph::backward::Backward;
use crate::graph::operation::check_kernel;
use crate::graph::operation::{Forward, Operation};
use crate::graph::tensor::Tensor;

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
    /// The size of a window in pixels, `[height, width]`.
    pub kernel: [usize; 2],
    /// The distance from one window to the next in pixels, `[height, width]`.
    pub stride: [usize; 2],
    /// Pixels added on each side, `[height, width]`; at most half of the window.
    pub padding: [usize; 2],
    /// Whether pixels after the last whole window make another window.
    pub rounding: Rounding,
}

impl Pool2d {
    /// Adjacent square windows without padding.
    pub const fn square(kernel: usize) -> Self {
        Self { kernel: [kernel; 2], stride: [kernel; 2], padding: [0; 2], rounding: Rounding::Down }
    }

    fn over(&self, x: Images) -> PoolShape {
        let Self { kernel, stride, padding, rounding } = *self;
        PoolShape { x, window: Window { kernel, stride, padding }, rounding }
    }
}

impl Tensor {
    /// The maximum of each window and channel. In a tie the first element gets the gradient; a NaN counts as the maximum.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; the result `[n_images, height', width', n_channels]`.
    /// # Errors
    /// [`Error::Shape`]; [`Error::Program`] where no window fits, a stride is 0, or padding is more than half of a window.
    /// # Reference
    /// `torch.nn.functional.max_pool2d`.
    #[track_caller]
    pub fn max_pool2d(&self, pool: &Pool2d) -> Self {
        match self.images("max_pool2d", "x") {
            Ok(x) => self.max_pool(pool.over(x), &image_shape(&pool.over(x).y())),
            Err(error) => self.refused(error, self.shape()),
        }
    }

    /// The mean of each window and channel.
    ///
    /// # Shapes
    /// As [`max_pool2d`](Self::max_pool2d).
    /// # Errors
    /// As [`max_pool2d`](Self::max_pool2d).
    /// # Reference
    /// `torch.nn.functional.avg_pool2d`.
    #[track_caller]
    pub fn avg_pool2d(&self, pool: &Pool2d, divisor: PoolDivisor) -> Self {
        match self.images("avg_pool2d", "x") {
            Ok(x) => self.avg_pool(AvgPool2d { shape: pool.over(x), divisor }, &image_shape(&pool.over(x).y())),
            Err(error) => self.refused(error, self.shape()),
        }
    }

    /// The maximum of each channel of each image. In a tie the first element gets the gradient; a NaN counts as the maximum.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; the result `[n_images, n_channels]`.
    /// # Errors
    /// [`Error::Shape`].
    /// # Reference
    /// `torch.nn.functional.adaptive_max_pool2d(x, 1)`; `x.amax(dim=(1, 2))` except for ties, over which `amax` spreads the
    /// gradient.
    #[track_caller]
    pub fn global_max_pool2d(&self) -> Self {
        match self.images("global_max_pool2d", "x") {
            Ok(x) => self.max_pool(PoolShape::global(x), &[x.n_images, x.n_channels]),
            Err(error) => self.refused(error, &self.ends()),
        }
    }

    /// The mean of each channel of each image.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; the result `[n_images, n_channels]`.
    /// # Errors
    /// [`Error::Shape`].
    /// # Reference
    /// `x.mean(dim=(1, 2))`.
    #[track_caller]
    pub fn global_avg_pool2d(&self) -> Self {
        match self.images("global_avg_pool2d", "x") {
            Ok(x) => {
                let kernel = AvgPool2d { shape: PoolShape::global(x), divisor: PoolDivisor::Padded };
                self.avg_pool(kernel, &[x.n_images, x.n_channels])
            }
            Err(error) => self.refused(error, &self.ends()),
        }
    }

    /// The lengths of its first and last dimensions, the shape of a global pooling.
    fn ends(&self) -> [usize; 2] {
        [self.shape().first(), self.shape().last()].map(|len| len.copied().unwrap_or(1))
    }

    #[track_caller]
    fn max_pool(&self, shape: PoolShape, y_shape: &[usize]) -> Self {
        self.graph().apply(Pooling { kernel: MaxPool2d { shape }, y_shape: y_shape.to_vec() }, &[self])
    }

    #[track_caller]
    fn avg_pool(&self, kernel: AvgPool2d, y_shape: &[usize]) -> Self {
        self.graph().apply(Pooling { kernel, y_shape: y_shape.to_vec() }, &[self])
    }
}

/// A pooling by `kernel`, whose result gets the shape `y_shape`: global pooling omits height and width.
#[derive(Debug)]
struct Pooling<K> {
    kernel: K,
    y_shape: Vec<usize>,
}

impl Operation for Pooling<MaxPool2d> {
    fn name(&self) -> &'static str {
        "max_pool2d"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x"]
    }

    fn output_shape(&self, _: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(&self.kernel)?;
        Ok(self.y_shape.clone())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        let taps = forward.transient("taps", DType::U32, y.len());
        forward.save(taps);
        forward.push(self.kernel, &[x, y, taps])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, taps) = (backward.grad(), backward.saved(0));
        backward.give(0, MaxPool2dGrad { shape: self.kernel.shape }, &[dy, taps])
    }
}

impl Operation for Pooling<AvgPool2d> {
    fn name(&self) -> &'static str {
        "avg_pool2d"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x"]
    }

    fn output_shape(&self, _: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(&self.kernel)?;
        Ok(self.y_shape.clone())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(self.kernel, &[x, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        backward.give(0, AvgPool2dGrad { forward: self.kernel }, &[dy])
    }
}

/// The shape of a pooled batch of images. If no window fits, the kernel's check refuses it afterwards.
fn image_shape(images: &Images) -> [usize; 4] {
    [images.n_images, images.height, images.width, images.n_channels]
}
