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

/// A 2-D convolution with a fused epilogue:
/// `y[b,i,j,o] = epilogue(Σ_{u,v,c} x[b, i sᵧ - pᵧ + u dᵧ, j sₓ - pₓ + v dₓ, c₀(o) + c] weight[o,u,v,c])`, where `c₀(o)` is the
/// first input channel of `o`'s group, and the padding is 0.
///
/// As is usual in deep learning, this is the cross-correlation: the kernel is not flipped.
///
/// # Shapes
/// `x`: `[n_images, height, width, n_channels]`; `weight`: `[n_out, kernel height, kernel width, n_channels / n_groups]` (OHWI);
/// `bias`: `[n_out]`; `y`: [`ConvShape::y`].
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless
/// [f16 is allowed](crate::Adapter::f16_accumulation).
/// # Errors
/// [`Error::Size`] if no window fits, for a dilation of 0, and for groups that do not divide the channels.
/// # Cost
/// `2 n_out` operations per value that a window covers. The CPU first sorts the weights into scratch.
///
/// Without groups and dilation it is an implicit matrix product. Patches are made for a few rows of pixels at a time, never for
/// the whole batch. With a 1 × 1 kernel and stride 1, it is a [`Matmul`](crate::Matmul). With groups or dilation, each result is
/// computed directly: fast for few channels per group, such as one in depthwise convolutions, slow for many.
/// # Reference
/// `torch.nn.functional.conv2d`; Chetlur et al. 2014, *cuDNN*, arXiv:1410.0759, for the implicit product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conv2d {
    /// The sizes.
    pub shape: ConvShape,
    /// The operation on each sum before it is stored.
    pub epilogue: Epilogue,
}

kernel_over_images!(Conv2d, "conv2d", Direction::Forward);
