use super::arg_max_cpu;
use super::series::series_dispatch;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::stored_form::{StoredForm, by_stored_form, sharing};
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const ARG_MAX: Template = Template::new(&[part!("arg_max.wgsl"), part!("../shader/nan.wgsl")], &[Group::one("X").loads()]);

/// The index of the maximum along the middle of three dimensions: `y[o, i] = argmax_k x[o, k, i]`.
///
/// If several values are equal to the maximum, the first counts; NaN is greater than all numbers.
///
/// # Shapes
/// `x`: `[n_outer, n, n_inner]`, row-major; `y`: `[n_outer, n_inner]`.
/// # Dtypes
/// `x` f32, or f16 and bf16 by [`stored`](crate::stored); `y` u32.
/// # Reference
/// `torch.argmax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgMax {
    /// The product of the dimensions before the reduced one.
    pub n_outer: usize,
    /// The length of the reduced dimension.
    pub n: usize,
    /// The product of the dimensions after it.
    pub n_inner: usize,
}

impl Kernel for ArgMax {
    fn signature(&self) -> Signature {
        let Self { n_outer, n, n_inner } = *self;
        let args = [Arg::read("x", DType::F32, [n_outer, n, n_inner]), Arg::write("y", DType::U32, [n_outer, n_inner])];
        Signature::new("arg_max", args).sizes([("n_outer", self.n_outer), ("n", self.n), ("n_inner", self.n_inner)])
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        with_element!(args.dtype("x"), T => arg_max_cpu::run::<T>(self, args.read("x"), args.write("y")));
    }

    fn cost(&self) -> Cost {
        let n_series = (self.n_outer * self.n_inner) as u64;
        Cost { flops: n_series * self.n as u64, bytes: 4 * n_series * (self.n as u64 + 1) }
    }
}

impl StoredForm for ArgMax {
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0], dtypes)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let Self { n_outer, n, n_inner } = *self;
        let wgsl = ARG_MAX.module(&[("X", dtypes[0])]);
        Ok(vec![series_dispatch(self, "kernels.arg_max", wgsl, [n_outer, n, n_inner])?])
    }
}
