use super::cumulative_sum_cpu;
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

const CUMULATIVE_SUM: Template = Template::new(&[part!("cumulative_sum.wgsl")], &[Group::one("X").loads()]);

/// Cumulative sums along the middle one of three dimensions: `y[o, k, i] = Σ_(j ≤ k) x[o, j, i]`.
///
/// # Shapes
/// `x`, `y`: `[n_outer, n, n_inner]`, row-major.
/// # Dtypes
/// f32; `x` in f16 and bf16 by [`stored`](crate::stored). The CPU adds in f64, like PyTorch; a GPU in f32, in a tree if long.
/// # Reference
/// `torch.cumsum`, and with [`SumOrder::Reverse`] its gradient. Hillis & Steele 1986 for the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CumulativeSum {
    /// The product of the dimensions before the summed one.
    pub n_outer: usize,
    /// The length of the summed dimension.
    pub n: usize,
    /// The product of the dimensions after it.
    pub n_inner: usize,
    /// The end at which sums start.
    pub order: SumOrder,
}

/// The end at which a [`CumulativeSum`] starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumOrder {
    /// At the first element: each result is the sum of an element and all before it.
    Forward,
    /// At the last element: each result is the sum of an element and all after it.
    Reverse,
}

impl CumulativeSum {
    /// The kernel that computes the gradient of `x` from that of `y`.
    pub const fn grad(self) -> Self {
        let order = match self.order {
            SumOrder::Forward => SumOrder::Reverse,
            SumOrder::Reverse => SumOrder::Forward,
        };
        Self { order, ..self }
    }
}

impl Kernel for CumulativeSum {
    fn signature(&self) -> Signature {
        let n = [self.n_outer, self.n, self.n_inner];
        let args = [Arg::read("x", DType::F32, n), Arg::write("y", DType::F32, n)];
        Signature::new("cumulative_sum", args).sizes([("n_outer", self.n_outer), ("n", self.n), ("n_inner", self.n_inner)])
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        with_element!(args.dtype("x"), T => cumulative_sum_cpu::run::<T>(self, args.read("x"), args.write("y")));
    }

    fn cost(&self) -> Cost {
        let n = (self.n_outer * self.n * self.n_inner) as u64;
        Cost { flops: n, bytes: 8 * n }
    }
}

impl StoredForm for CumulativeSum {
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0], dtypes)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let is_reverse = f64::from(u8::from(self.order == SumOrder::Reverse));
        let Self { n_outer, n, n_inner, .. } = *self;
        let wgsl = CUMULATIVE_SUM.module(&[("X", dtypes[0])]);
        let dispatch = series_dispatch(self, "kernels.cumulative_sum", wgsl, [n_outer, n, n_inner])?;
        Ok(vec![dispatch.constants([("REVERSE", is_reverse)])])
    }
}
