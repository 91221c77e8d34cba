use brisk_kernels::{
    AvgPool2d, AvgPool2dGrad, DType, Images, MaxPool2d, MaxPool2dGrad, PoolDivisor, PoolShape, Rounding, Window,
};

use crate::error::Error;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
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
        self.pooled("max_pool2d", Some(pool), None)
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
        self.pooled("avg_pool2d", Some(pool), Some(divisor))
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
        self.pooled("global_max_pool2d", None, None)
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
        self.pooled("global_avg_pool2d", None, Some(PoolDivisor::Padded))
    }

    /// The mean of each window, or its maximum without a divisor; of the whole image without `pool`.
    #[track_caller]
    fn pooled(&self, op: &'static str, pool: Option<&Pool2d>, divisor: Option<PoolDivisor>) -> Self {
        let (shape, y_shape) = match (self.images(op, "x"), pool) {
            // If no window fits, the kernel's check refuses it afterwards.
            (Ok(x), Some(pool)) => (pool.over(x), image_shape(&pool.over(x).y())),
            (Ok(x), None) => (PoolShape::global(x), vec![x.n_images, x.n_channels]),
            (Err(error), Some(_)) => return self.refused(error, self.shape()),
            (Err(error), None) => {
                let ends = [self.shape().first(), self.shape().last()].map(|len| len.copied().unwrap_or(1));
                return self.refused(error, &ends);
            }
        };
        self.graph().apply(Pooling { shape, divisor, y_shape }, &[self])
    }
}

/// A pooling whose result gets the shape `y_shape`: global pooling omits height and width.
#[derive(Debug)]
struct Pooling {
    shape: PoolShape,
    /// `None` for the maximum.
    divisor: Option<PoolDivisor>,
    y_shape: Vec<usize>,
}

impl Operation for Pooling {
    fn signature(&self) -> Signature {
        Signature::new(if self.divisor.is_some() { "avg_pool2d" } else { "max_pool2d" }, &["x"])
    }

    fn output_shape(&self, _: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = self.shape;
        self.divisor.map_or_else(|| check_kernel(&MaxPool2d { shape }), |divisor| check_kernel(&AvgPool2d { shape, divisor }))?;
        Ok(self.y_shape.clone())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let shape = self.shape;
        if let Some(divisor) = self.divisor {
            return forward.compute(AvgPool2d { shape, divisor });
        }
        let (x, y) = (forward.input(0), forward.output());
        let taps = forward.transient("taps", DType::U32, y.len());
        forward.save(taps);
        forward.push(MaxPool2d { shape }, &[x, y, taps])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (shape, dy) = (self.shape, backward.grad());
        match self.divisor {
            Some(divisor) => backward.give(0, AvgPool2dGrad { forward: AvgPool2d { shape, divisor } }, &[dy]),
            None => backward.give(0, MaxPool2dGrad { shape }, &[dy, backward.saved(0)]),
        }
    }
}

/// The shape of a pooled batch of images.
fn image_shape(images: &Images) -> Vec<usize> {
    vec![images.n_images, images.height, images.width, images.n_channels]
}
