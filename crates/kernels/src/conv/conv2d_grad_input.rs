use super::conv2d::with_whole_words;
use super::{conv2d_gpu, over_images};
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::arg::Arg;
use crate::conv::conv2d::ConvShape;
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

/// The gradient of a [`Conv2d`](crate::Conv2d) with respect to its input: `grad_x[b,h,w,c] = epilogue(Σ_{u,v,o} grad_y[b,i,j,o] weight[o,u,v,c])` over the
/// windows `(i, j)` whose tap `(u, v)` is the pixel `(h, w)`.
///
/// Each pixel gathers its own terms, so there are no atomics, and the order of a sum is fixed. With a stride, the pixels
/// are divided into `sᵧ sₓ` phases, each with its own taps: no products are wasted on zeros between the windows.
///
/// # Shapes
/// `grad_y`: [`ConvShape::y`]; `weight`: `[n_out, kernel height, kernel width, n_channels]`; `operand` of the epilogue, `grad_x`: [`ConvShape::x`].
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless [f16 is allowed](crate::Adapter::f16_accumulation).
/// # Errors
/// [`Error::Size`] if no window fits.
/// # Cost
/// That of the forward product.
/// # Reference
/// `torch.nn.grad.conv2d_input`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conv2dGradInput {
    /// The sizes of the forward convolution.
    pub shape: ConvShape,
    /// The operation on each sum before it is stored.
    pub epilogue: Epilogue,
}

impl Conv2dGradInput {
    fn product(&self) -> Option<Matmul> {
        let Self { shape: ConvShape { x, n_out, .. }, ref epilogue } = *self;
        let matmul = Matmul {
            n_batch: 1,
            m: x.n_pixels(),
            n: x.n_channels,
            k: n_out,
            transpose: Transpose::None,
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
            None => conv2d_gpu::grad_input(self, self.stored_args(dtypes), family, adapter),
        }
    }
}

impl Kernel for Conv2dGradInput {
    fn name(&self) -> &'static str {
        "conv2d_grad_input"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        let mut args = over_images::args(("grad_y", shape.y()), shape.n_weights(), &self.epilogue, ("grad_x", shape.x));
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
            Some(matmul) => matmul.twin_over(Finish::new(&self.epilogue, args), ["grad_y", "weight", "grad_x"], args),
            None => over_images::run(self, &self.epilogue, ["grad_y", "grad_x", "weight_transposed"], args),
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
impl StoredForm for Conv2dGradInput {
    /// A result whose pixels end in the middle of a word is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        match self.product() {
            Some(matmul) => matmul.nearest(dtypes),
            None => with_whole_words(dtypes, self.shape.x.n_channels),
        }
    }

    fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(dtypes, conv2d_gpu::family(adapter), adapter)
    }
}
