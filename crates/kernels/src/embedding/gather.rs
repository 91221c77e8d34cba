use super::gather_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::{Part, module, part};

/// Picks elements along the middle one of three dimensions: `y[o, k, i] = x[o, index[o, k, i], i]`, or `x[o, index[k], i]` with a
/// [shared](GatherIndex::Shared) index.
///
/// An index beyond the last element is read as 0.
///
/// # Shapes
/// `x`: `[n_outer, n_x, n_inner]`; `y`: `[n_outer, n, n_inner]`; `index`: like `y`, or `[n]` if it is shared; row-major.
/// # Dtypes
/// `index` u32; the rest f32, or f16 and bf16 by [`stored`](crate::stored).
/// # Reference
/// `torch.gather`; with a shared index `torch.index_select`. Both refuse indices beyond the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gather {
    /// The product of the dimensions before the indexed one.
    pub n_outer: usize,
    /// The length of the indexed dimension in `x`.
    pub n_x: usize,
    /// Its length in `index` and `y`.
    pub n: usize,
    /// The product of the dimensions after it.
    pub n_inner: usize,
    /// Which elements have the same index.
    pub index: GatherIndex,
}

/// Which elements of a [`Gather`]'s result have the same index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum GatherIndex {
    /// No two elements: `index` has the shape of the result.
    #[default]
    Each,
    /// All elements that differ only in the outer and inner dimensions: `index` has one element for each `k`.
    Shared,
}

impl Gather {
    fn sizes(&self) -> [(&'static str, usize); 4] {
        [("n_outer", self.n_outer), ("n_x", self.n_x), ("n", self.n), ("n_inner", self.n_inner)]
    }

    const fn n_x_elements(&self) -> usize {
        self.n_outer.saturating_mul(self.n_x).saturating_mul(self.n_inner)
    }

    const fn n_elements(&self) -> usize {
        self.n_outer.saturating_mul(self.n).saturating_mul(self.n_inner)
    }

    const fn n_indices(&self) -> usize {
        match self.index {
            GatherIndex::Each => self.n_elements(),
            GatherIndex::Shared => self.n,
        }
    }

    const fn index_part(&self) -> Part {
        match self.index {
            GatherIndex::Each => part!("gather_index.wgsl"),
            GatherIndex::Shared => part!("gather_shared_index.wgsl"),
        }
    }

    fn params(&self) -> [(&'static str, usize); 3] {
        [("n_x", self.n_x), ("n", self.n), ("n_inner", self.n_inner)]
    }
}

impl Kernel for Gather {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("x", DType::F32, self.n_x_elements()),
            Arg::read("index", DType::U32, self.n_indices()),
            Arg::write("y", DType::F32, self.n_elements()),
        ];
        Signature::new("gather", args).sizes(self.sizes())
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module = module!("gather.wgsl").with(self.index_part());
        let dispatch = Dispatch::elementwise(self.name(), "kernels.gather", module, self.n_elements())?.params(self.params());
        Ok(vec![dispatch.bind(&self.args(), ["x", "index"], ["y"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        gather_cpu::run(self, args.read("x"), args.read("index"), args.write("y"));
    }

    fn cost(&self) -> Cost {
        Cost { flops: 0, bytes: 12 * self.n_elements() as u64 }
    }
}

/// The gradient of [`Gather`]'s `x`: `grad_x[o, j, i] = Σ_k grad_y[o, k, i]` over the `k` with `index[o, k, i] = j`, in order.
///
/// # Shapes
/// `grad_y`: like `y`; `index`: as in the forward kernel; `grad_x`: like `x`.
/// # Cost
/// On a GPU each of the `n_x` elements reads `n` indices, since no two may add to one element; the CPU reads each index once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherGrad {
    /// The kernel whose gradient this is.
    pub forward: Gather,
}

impl Kernel for GatherGrad {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("grad_y", DType::F32, self.forward.n_elements()),
            Arg::read("index", DType::U32, self.forward.n_indices()),
            Arg::write("grad_x", DType::F32, self.forward.n_x_elements()),
        ];
        Signature::new("gather_grad", args).sizes(self.forward.sizes())
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module = module!("gather_grad.wgsl").with(self.forward.index_part());
        let dispatch = Dispatch::elementwise(self.name(), "kernels.gather_grad", module, self.forward.n_x_elements())?
            .params(self.forward.params());
        Ok(vec![dispatch.bind(&self.args(), ["grad_y", "index"], ["grad_x"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        gather_cpu::grad(&self.forward, args.read("grad_y"), args.read("index"), args.write("grad_x"));
    }

    fn cost(&self) -> Cost {
        let (n, n_x) = (self.forward.n_elements() as u64, self.forward.n_x_elements() as u64);
        Cost { flops: n, bytes: 8 * n + 4 * n_x }
    }
}
