use super::parts::Parts;
use super::{conv2d_gpu, conv2d_grad_weight_cpu, grouped_cpu, grouped_gpu};
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::arg::Arg;
use crate::conv::conv_shape::{ConvForm, ConvShape};
use crate::conversion::stored_form::{StoredForm, by_stored_form};
use crate::dtype::DType;
use crate::error::Error;
use crate::gemm::transpose::Transpose;
use crate::kernel::floats::Floats;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::product::epilogue::Epilogue;
use crate::product::epilogue_cpu::Finish;
use crate::product::matmul::Matmul;
use crate::shader::dispatch::Dispatch;
use crate::storage::element::with_element;

/// The gradient of a [`Conv2d`](crate::Conv2d) with respect to its weights:
/// `grad_weight[o,u,v,c] = Σ_{b,i,j} grad_y[b,i,j,o] x[b, i sᵧ - pᵧ + u dᵧ, j sₓ - pₓ + v dₓ, c₀(o) + c]`, where `c₀(o)` is the
/// first input channel of `o`'s group.
///
/// The gradient of the bias is a [`MapReduce`](crate::MapReduce), the sum of `grad_y` over all pixels.
///
/// # Shapes
/// `grad_y`: [`ConvShape::y`]; `x`: [`ConvShape::x`]; `grad_weight`:
/// `[n_out, kernel height, kernel width, n_channels / n_groups]`.
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless
/// [f16 is allowed](crate::Adapter::f16_accumulation). The pixels are divided into parts, which depend only on the shape; the
/// sums of the parts are added in order.
/// # Errors
/// [`Error::Size`] if no window fits.
/// # Cost
/// The operations of the forward product, and scratch for up to 32 times the weights, or 256 times with groups or dilation, at
/// most 16 MiB if the weights are smaller.
/// # Reference
/// `torch.nn.grad.conv2d_weight`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conv2dGradWeight {
    /// The sizes of the forward convolution.
    pub shape: ConvShape,
}

/// The maximum number of parts. Higher with groups: the weights of a depthwise convolution are too few to keep a GPU busy.
const MAX_PARTS: usize = 32;
const MAX_PARTS_GROUPED: usize = 256;

impl Conv2dGradWeight {
    fn product(&self) -> Option<Matmul> {
        let ConvShape { x, n_out, .. } = self.shape;
        let matmul = Matmul {
            n_batch: 1,
            m: n_out,
            n: x.n_channels,
            k: x.n_pixels(),
            transpose: Transpose::A,
            epilogue: Epilogue::none(),
        };
        (self.shape.form() == ConvForm::Pointwise).then_some(matmul)
    }

    /// The parts that the pixels are divided into.
    pub(crate) fn parts(&self) -> Parts {
        let max_parts = if self.shape.form() == ConvForm::Grouped { MAX_PARTS_GROUPED } else { MAX_PARTS };
        Parts::of(&self.shape.y(), self.shape.n_weights(), max_parts)
    }

    /// The dispatches of one family, for callers that have measured which is faster; [`Kernel::dispatches`] chooses by adapter
    /// and shape.
    ///
    /// # Errors
    /// [`Error::Size`] if there are more blocks than can be dispatched, [`Error::Unsupported`] if `family` does not run on
    /// `adapter`.
    pub fn dispatches_by(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(&[], family, adapter)
    }

    fn dispatches_of(&self, dtypes: &[DType], family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        match (self.product(), self.shape.form()) {
            (Some(matmul), _) => matmul.dispatches_of(dtypes, family, adapter),
            (None, ConvForm::Grouped) => grouped_gpu::grad_weight(&self.shape, self.parts(), &self.stored_args(dtypes)),
            (None, _) => conv2d_gpu::grad_weight(&self.shape, self.parts(), &self.stored_args(dtypes), family, adapter),
        }
    }
}

impl Kernel for Conv2dGradWeight {
    fn signature(&self) -> Signature {
        let shape = &self.shape;
        let mut args = vec![
            Arg::read("grad_y", DType::F32, shape.y().len()),
            Arg::read("x", DType::F32, shape.x.len()),
            Arg::write("grad_weight", DType::F32, shape.n_weights()),
        ];
        match self.product() {
            Some(matmul) => args.extend(matmul.scratch()),
            None => args.push(Arg::scratch("parts", DType::F32, [self.parts().n, shape.n_weights()])),
        }
        Signature::new("conv2d_grad_weight", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        if let Some(matmul) = self.product() {
            return matmul.twin_over(Finish::none(), ["grad_y", "x", "grad_weight"], args);
        }
        let (grad_y, grad_weight, parts) = (Floats::of(args, "grad_y"), args.write("grad_weight"), args.write("parts"));
        with_element!(args.dtype("x"), T => match self.shape.form() {
            ConvForm::Grouped => {
                grouped_cpu::grad_weight::<T>(&self.shape, self.parts().n_rows, grad_y, args.read("x"), grad_weight, parts)
            },
            _ => conv2d_grad_weight_cpu::run::<T>(self, grad_y, args.read("x"), grad_weight, parts),
        });
    }

    fn cost(&self) -> Cost {
        self.shape.cost()
    }
}

/// Any of the arguments in 16 bits.
impl StoredForm for Conv2dGradWeight {
    /// The sum of the parts is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let nearest = vec![dtypes[0], dtypes[1], DType::F32];
        nearest.iter().any(|dtype| dtype.is_half()).then_some(nearest)
    }

    fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(dtypes, conv2d_gpu::family(adapter), adapter)
    }
}
