use super::conv2d_gpu;
use super::kernel_over_images::kernel_over_images;
use super::over_images::{Direction, OverImages};
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::conv::conv_shape::ConvShape;
use crate::conversion::stored_form::StoredForm;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::product::epilogue::Epilogue;
use crate::shader::dispatch::Dispatch;

/// The gradient of a [`Conv2d`](crate::Conv2d) with respect to its input:
/// `grad_x[b,h,w,c] = epilogue(Σ_{u,v,o} grad_y[b,i,j,o] weight[o,u,v,c])` over the windows `(i, j)` whose tap `(u, v)` is the
/// pixel `(h, w)`, and the output channels of `c`'s group.
///
/// Each pixel gathers its own terms, so there are no atomics, and the order of a sum is fixed. With a stride, the pixels
/// are divided into `sᵧ sₓ` phases, each with its own taps: no products are wasted on zeros between the windows.
///
/// # Shapes
/// `grad_y`: [`ConvShape::y`]; `weight`: `[n_out, kernel height, kernel width, n_channels / n_groups]`; `operand` of the
/// epilogue, `grad_x`: [`ConvShape::x`].
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless
/// [f16 is allowed](crate::Adapter::f16_accumulation).
/// # Errors
/// As the forward kernel.
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

kernel_over_images!(Conv2dGradInput, "conv2d_grad_input", Direction::Backward);
