use super::{conv2d_gpu, over_images};
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::arg::Arg;
use crate::conv::window::{Images, Window};
use crate::dtype::DType;
use crate::error::Error;
use crate::gemm::transpose::Transpose;
use crate::kernel::kernel::{Cost, Kernel};
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::product::epilogue::Epilogue;
use crate::product::epilogue_cpu::Finish;
use crate::product::matmul::Matmul;
use crate::shader::dispatch::Dispatch;
use crate::stored::stored_form::StoredForm;

/// A 2-D convolution with a fused epilogue, as an implicit matrix product:
/// `y[b,i,j,o] = epilogue(Σ_{u,v,c} x[b, i sᵧ - pᵧ + u, j sₓ - pₓ + v, c] weight[o,u,v,c])`, where the padding is 0.
///
/// As is usual in deep learning, this is the cross-correlation: the kernel is not flipped.
///
/// # Shapes
/// `x`: `[n_images, height, width, n_channels]`; `weight`: `[n_out, kernel height, kernel width, n_channels]` (OHWI); `bias`: `[n_out]`;
/// `y`: `[n_images, height', width', n_out]` with [`Window::n_out`]'s height and width.
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless [f16 is allowed](crate::Adapter::f16_accumulation).
/// # Errors
/// [`Error::Size`] if no window fits.
/// # Cost
/// `2 n_out` operations per value that a window covers. The CPU first transposes the weights into scratch. Patches are made for a few rows of
/// pixels at a time, never for the whole batch. With a 1 × 1 kernel and stride 1, it is a [`Matmul`].
/// # Reference
/// `torch.nn.functional.conv2d`; Chetlur et al. 2014, *cuDNN*, arXiv:1410.0759, for the implicit product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conv2d {
    /// The sizes.
    pub shape: ConvShape,
    /// The operation on each sum before it is stored.
    pub epilogue: Epilogue,
}

/// The sizes of a 2-D convolution, shared with its gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvShape {
    /// The input images.
    pub x: Images,
    /// Output channels.
    pub n_out: usize,
    /// The windows.
    pub window: Window,
}

impl ConvShape {
    /// The output images.
    pub const fn y(&self) -> Images {
        let [height, width] = self.window.n_out([self.x.height, self.x.width]);
        Images { n_images: self.x.n_images, height, width, n_channels: self.n_out }
    }

    /// The number of values that a window covers: the length of the forward product's sums.
    pub const fn n_patch(&self) -> usize {
        self.window.n_taps().saturating_mul(self.x.n_channels)
    }

    /// Elements of the weights.
    pub const fn n_weights(&self) -> usize {
        self.n_patch().saturating_mul(self.n_out)
    }

    /// Whether the channels on both sides can be read as vectors of four.
    pub(crate) const fn reads_vectors(&self) -> bool {
        self.x.n_channels.is_multiple_of(4) && self.n_out.is_multiple_of(4)
    }

    /// Whether a window is a single pixel, so that the convolution is a plain product of `[n_pixels, n_channels]`.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.window == Window::square(1, 0)
    }

    pub(crate) fn check(&self, kernel: &impl Kernel) -> Result<(), Error> {
        self.window.check(kernel.name(), &self.x)?;
        over_images::check(kernel, self.x, self.y(), self.n_patch())
    }

    /// The cost of the convolution, and of either gradient.
    pub(crate) fn cost(&self) -> Cost {
        over_images::cost(self.x, self.y(), self.n_weights())
    }
}

/// The supported types that are closest to `dtypes`; the result, the last, has `n_channels` and is in f32 if a word would contain two pixels.
pub(crate) fn with_whole_words(dtypes: &[DType], n_channels: usize) -> Option<Vec<DType>> {
    let mut nearest = dtypes.to_vec();
    if let (false, Some(result)) = (n_channels.is_multiple_of(2), nearest.last_mut()) {
        *result = DType::F32;
    }
    nearest.iter().any(|dtype| dtype.is_half()).then_some(nearest)
}

impl Conv2d {
    fn product(&self) -> Option<Matmul> {
        let Self { shape: ConvShape { x, n_out, .. }, ref epilogue } = *self;
        let matmul = Matmul {
            n_batch: 1,
            m: x.n_pixels(),
            n: n_out,
            k: x.n_channels,
            transpose: Transpose::B,
            epilogue: epilogue.clone(),
        };
        self.shape.is_pointwise().then_some(matmul)
    }

    /// The dispatches of one family, for callers that have measured which is faster; [`Kernel::dispatches`] chooses by adapter and shape.
    ///
    /// # Errors
    /// [`Error::Size`] if there are more blocks than can be dispatched, [`Error::Unsupported`] if `family` does not run on `adapter`.
    pub fn dispatches_by(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(&[], family, adapter)
    }

    fn dispatches_of(&self, dtypes: &[DType], family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        match self.product() {
            Some(matmul) => matmul.dispatches_of(dtypes, family, adapter),
            None => conv2d_gpu::forward(self, self.stored_args(dtypes), family, adapter),
        }
    }
}

impl Kernel for Conv2d {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        let mut args = over_images::args(("x", shape.x), shape.n_weights(), &self.epilogue, ("y", shape.y()));
        match self.product() {
            Some(matmul) => args.extend(matmul.scratch()),
            None => args.push(Arg::scratch("weight_transposed", DType::F32, shape.n_weights())),
        }
        args
    }

    fn check(&self) -> Result<(), Error> {
        self.epilogue.check(self.name())?;
        self.shape.check(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        match self.product() {
            Some(matmul) => matmul.twin_over(Finish::new(&self.epilogue, args), ["x", "weight", "y"], args),
            None => over_images::run(self, &self.epilogue, ["x", "y", "weight_transposed"], args),
        }
    }

    fn followed_by(&self, map: &Map, input: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { epilogue: self.epilogue.followed_by(map, input)?, ..*self }))
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        self.shape.cost()
    }
}

/// Any of the arguments in 16 bits.
impl StoredForm for Conv2d {
    /// A result whose pixels end in the middle of a word is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        match self.product() {
            Some(matmul) => matmul.nearest(dtypes),
            None => with_whole_words(dtypes, self.shape.n_out),
        }
    }

    fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(dtypes, conv2d_gpu::family(adapter), adapter)
    }
}
