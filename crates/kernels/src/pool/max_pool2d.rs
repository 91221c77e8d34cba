use super::max_pool2d_cpu;
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
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const MAX_POOL2D: Template =
    Template::new(&[part!("max_pool2d.wgsl"), part!("pool_windows.wgsl")], &[Group::lane("X").loads().stores()]);
const MAX_POOL2D_GRAD: Template =
    Template::new(&[part!("max_pool2d_grad.wgsl"), part!("pool_windows.wgsl")], &[Group::lane("X").loads().stores()]);

/// The maximum of each window, and its tap.
///
/// If several values are equal to the maximum, the first in row order wins; a NaN wins over all values before it. Padding is
/// never the maximum.
///
/// # Shapes
/// `x`: `[n_images, height, width, n_channels]`; `y`, `taps`: [`PoolShape::y`]. Tap `(u, v)` of a window is number
/// `u * kernel width + v`.
/// # Dtypes
/// `taps` u32; the rest f32, or f16 and bf16 by [`stored`](crate::stored).
/// # Errors
/// [`Error::Size`] if no window fits or one would be entirely in the padding.
/// # Cost
/// Reads the pixels that the windows cover, writes 8 bytes an element of `y`.
/// # Reference
/// `torch.nn.functional.max_pool2d`; with [`PoolShape::global`] `torch.nn.functional.adaptive_max_pool2d` to one pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxPool2d {
    /// The sizes.
    pub shape: PoolShape,
}

impl Kernel for MaxPool2d {
    fn signature(&self) -> Signature {
        let n = self.shape.y().len();
        let args =
            [Arg::read("x", DType::F32, self.shape.x.len()), Arg::write("y", DType::F32, n), Arg::write("taps", DType::U32, n)];
        Signature::new("max_pool2d", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let taps = args.write("taps");
        with_element!(args.dtype("x"), T => max_pool2d_cpu::run::<T>(&self.shape, args.read("x"), args.write("y"), taps));
    }

    fn cost(&self) -> Cost {
        let (x, y) = (self.shape.x.len() as u64, self.shape.y().len() as u64);
        Cost { flops: y * self.shape.window.n_taps() as u64, bytes: 4 * x + 8 * y }
    }
}

impl StoredForm for MaxPool2d {
    /// Each invocation processes two channels.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 1], dtypes).filter(|_| self.shape.x.n_channels.is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let shape = self.shape.in_lanes(dtypes[0]);
        let module = MAX_POOL2D.module(&[("X", dtypes[0])]);
        let dispatch = Dispatch::elementwise(self.name(), "kernels.max_pool2d", module, shape.y().len())?.params(shape.params());
        Ok(vec![dispatch.bind(&self.args(), ["x"], [Binding::of("y").elements("X"), Binding::of("taps").elements("U")])?])
    }
}

/// The gradient of [`MaxPool2d`]: each pixel gathers the gradients of the windows whose maximum it was.
///
/// # Shapes
/// `grad_y`, `taps`: [`PoolShape::y`]; `grad_x`: [`PoolShape::x`].
/// # Dtypes
/// `taps` u32, as the forward kernel wrote it; the rest f32, or f16 and bf16 by [`stored`](crate::stored). The terms of a pixel
/// are added in the order of the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxPool2dGrad {
    /// The sizes of the forward kernel.
    pub shape: PoolShape,
}

impl Kernel for MaxPool2dGrad {
    fn signature(&self) -> Signature {
        let n = self.shape.y().len();
        let args = [
            Arg::read("grad_y", DType::F32, n),
            Arg::read("taps", DType::U32, n),
            Arg::write("grad_x", DType::F32, self.shape.x.len()),
        ];
        Signature::new("max_pool2d_grad", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let taps = args.read("taps");
        with_element!(args.dtype("grad_y"), T => max_pool2d_cpu::grad::<T>(&self.shape, args.read("grad_y"), taps, args.write("grad_x")));
    }

    fn cost(&self) -> Cost {
        let (x, y) = (self.shape.x.len() as u64, self.shape.y().len() as u64);
        Cost { flops: y * self.shape.window.n_taps() as u64, bytes: 4 * x + 8 * y }
    }
}

impl StoredForm for MaxPool2dGrad {
    /// Each invocation processes two channels.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 2], dtypes).filter(|_| self.shape.x.n_channels.is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let shape = self.shape.in_lanes(dtypes[0]);
        let module = MAX_POOL2D_GRAD.module(&[("X", dtypes[0])]);
        let dispatch =
            Dispatch::elementwise(self.name(), "kernels.max_pool2d_grad", module, shape.x.len())?.params(shape.params());
        Ok(vec![dispatch.bind(
            &self.args(),
            [Binding::of("grad_y").elements("X"), Binding::of("taps").elements("U")],
            [Binding::of("grad_x").elements("X")],
        )?])
    }
}
