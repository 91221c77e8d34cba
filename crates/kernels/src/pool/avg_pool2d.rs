use super::avg_pool2d_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::stored_form::{StoredForm, by_stored_form, sharing};
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::pool::pool_shape::PoolShape;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::shader::param::Param;
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const AVG_POOL2D: Template =
    Template::new(&[part!("avg_pool2d.wgsl"), part!("pool_windows.wgsl")], &[Group::lane("X").loads().stores()]);
const AVG_POOL2D_GRAD: Template =
    Template::new(&[part!("avg_pool2d_grad.wgsl"), part!("pool_windows.wgsl")], &[Group::lane("X").loads().stores()]);

/// The mean of the pixels that each window covers.
///
/// # Shapes
/// `x`: `[n_images, height, width, n_channels]`; `y`: [`PoolShape::y`].
/// # Dtypes
/// f32, or f16 and bf16 by [`stored`](crate::stored). A window's pixels are added row by row.
/// # Errors
/// [`Error::Size`] if no window fits or one would be entirely in the padding.
/// # Cost
/// Reads the pixels that the windows cover, writes 4 bytes an element of `y`.
/// # Reference
/// `torch.nn.functional.avg_pool2d`; with [`PoolShape::global`] `x.mean(dim=(1, 2))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvgPool2d {
    /// The sizes.
    pub shape: PoolShape,
    /// The divisor of a sum.
    pub divisor: PoolDivisor,
}

/// The divisor of the sum over a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PoolDivisor {
    /// The number of the window's pixels, including those in the padding: PyTorch's default. Pixels beyond it do not count.
    #[default]
    Padded,
    /// The number of the window's pixels that are in the image: PyTorch's `count_include_pad=False`.
    Inside,
}

impl AvgPool2d {
    fn params(&self) -> Vec<(&'static str, Param)> {
        let padded = u32::from(self.divisor == PoolDivisor::Padded);
        self.shape.params().into_iter().chain([("padded", padded.into())]).collect()
    }

    /// The same with channels counted in words: two 16-bit channels share one.
    fn in_lanes(self, dtype: DType) -> Self {
        Self { shape: self.shape.in_lanes(dtype), ..self }
    }

    /// The number of pixels that window `at` counts along an axis.
    pub(crate) fn n_counted(&self, axis: usize, at: usize) -> usize {
        let PoolShape { x, window, .. } = self.shape;
        match self.divisor {
            PoolDivisor::Inside => self.shape.covered(axis, at).0.len(),
            PoolDivisor::Padded => {
                let padded = [x.height, x.width][axis] + 2 * window.padding[axis];
                window.kernel[axis].min(padded - at * window.stride[axis])
            }
        }
    }
}

impl Kernel for AvgPool2d {
    fn signature(&self) -> Signature {
        let args = [Arg::read("x", DType::F32, self.shape.x.len()), Arg::write("y", DType::F32, self.shape.y().len())];
        Signature::new("avg_pool2d", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        with_element!(args.dtype("x"), T => avg_pool2d_cpu::run::<T>(self, args.read("x"), args.write("y")));
    }

    fn cost(&self) -> Cost {
        let (x, y) = (self.shape.x.len() as u64, self.shape.y().len() as u64);
        Cost { flops: y * self.shape.window.n_taps() as u64, bytes: 4 * (x + y) }
    }
}

impl StoredForm for AvgPool2d {
    /// Each invocation processes two channels.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 1], dtypes).filter(|_| self.shape.x.n_channels.is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let lanes = self.in_lanes(dtypes[0]);
        let module = AVG_POOL2D.module(&[("X", dtypes[0])]);
        let dispatch =
            Dispatch::elementwise(self.name(), "kernels.avg_pool2d", module, lanes.shape.y().len())?.params(lanes.params());
        Ok(vec![dispatch.bind(&self.args(), ["x"], [Binding::of("y").elements("X")])?])
    }
}

/// The gradient of [`AvgPool2d`]: each pixel gathers its share of the gradients of the windows that cover it.
///
/// # Shapes
/// `grad_y`: [`PoolShape::y`]; `grad_x`: [`PoolShape::x`].
/// # Dtypes
/// f32, or f16 and bf16 by [`stored`](crate::stored). The terms of a pixel are added in the order of the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvgPool2dGrad {
    /// The forward kernel.
    pub forward: AvgPool2d,
}

impl Kernel for AvgPool2dGrad {
    fn signature(&self) -> Signature {
        let shape = &self.forward.shape;
        let args = [Arg::read("grad_y", DType::F32, shape.y().len()), Arg::write("grad_x", DType::F32, shape.x.len())];
        Signature::new("avg_pool2d_grad", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.forward.shape.check(self)
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        with_element!(args.dtype("grad_y"), T => avg_pool2d_cpu::grad::<T>(&self.forward, args.read("grad_y"), args.write("grad_x")));
    }

    fn cost(&self) -> Cost {
        self.forward.cost()
    }
}

impl StoredForm for AvgPool2dGrad {
    /// Each invocation processes two channels.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 1], dtypes).filter(|_| self.forward.shape.x.n_channels.is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let lanes = self.forward.in_lanes(dtypes[0]);
        let module = AVG_POOL2D_GRAD.module(&[("X", dtypes[0])]);
        let dispatch =
            Dispatch::elementwise(self.name(), "kernels.avg_pool2d_grad", module, lanes.shape.x.len())?.params(lanes.params());
        Ok(vec![dispatch.bind(&self.args(), [Binding::of("grad_y").elements("X")], [Binding::of("grad_x").elements("X")])?])
    }
}
