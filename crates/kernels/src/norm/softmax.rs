use super::softmax_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::reduce::row_dispatch::row_dispatch;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// Softmax of each row: `y[r,c] = exp(x[r,c] - m) / Σ_k exp(x[r,k] - m)` with `m = max_k x[r,k]`; or its logarithm.
///
/// # Shapes
/// `x`, `y`: `[n_rows, n_cols]`, row-major.
/// # Dtypes
/// f32. A row with a NaN in it, or without a finite value, becomes NaN throughout.
/// # Cost
/// Reads `x` twice and writes `y` once; on a GPU the second reading comes from its caches for all but very wide rows.
/// # Reference
/// Milakov & Gimelshein 2018, arXiv:1805.02867; `torch.softmax`, `torch.log_softmax` along the last dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Softmax {
    /// Rows.
    pub n_rows: usize,
    /// Columns: the probabilities of a row.
    pub n_cols: usize,
    /// Probabilities or their logarithms.
    pub form: SoftmaxForm,
}

/// The result of a softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SoftmaxForm {
    /// Probabilities, which sum to 1.
    #[default]
    Probability,
    /// Their natural logarithms, accurate even where the probability underflows.
    Log,
}

impl Softmax {
    const fn shape(&self) -> [usize; 2] {
        [self.n_rows, self.n_cols]
    }

    fn constant(&self) -> (&'static str, f64) {
        ("LOG", f64::from(u8::from(self.form == SoftmaxForm::Log)))
    }
}

impl Kernel for Softmax {
    fn signature(&self) -> Signature {
        let name = match self.form {
            SoftmaxForm::Probability => "softmax",
            SoftmaxForm::Log => "log_softmax",
        };
        let args = [Arg::read("x", DType::F32, self.shape()), Arg::write("y", DType::F32, self.shape())];
        Signature::new(name, args).sizes([("n_rows", self.n_rows), ("n_cols", self.n_cols)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module =
            module!("softmax.wgsl", "../reduce/row_entries.wgsl", "../reduce/join_group.wgsl", "../reduce/exp_sums.wgsl");
        let dispatch = row_dispatch(self, "kernels.softmax", module, adapter, self.shape())?.constants([self.constant()]);
        Ok(vec![dispatch.bind(&self.args(), ["x"], ["y"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        softmax_cpu::run(self, args.read("x"), args.write("y"));
    }

    fn cost(&self) -> Cost {
        let n = (self.n_rows * self.n_cols) as u64;
        Cost { flops: 5 * n, bytes: 8 * n }
    }
}

/// The gradient of [`Softmax`], from its output: `grad_x = y (grad_y - Σ_k grad_y[k] y[k])`; for logarithms
/// `grad_x = grad_y - exp(y) Σ_k grad_y[k]`.
///
/// # Shapes
/// `grad_y`, `y`, `grad_x`: `[n_rows, n_cols]`; `y` as the forward kernel wrote it.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftmaxGrad {
    /// The forward kernel.
    pub forward: Softmax,
}

impl Kernel for SoftmaxGrad {
    fn signature(&self) -> Signature {
        let name = match self.forward.form {
            SoftmaxForm::Probability => "softmax_grad",
            SoftmaxForm::Log => "log_softmax_grad",
        };
        let n = self.forward.shape();
        let args = [Arg::read("grad_y", DType::F32, n), Arg::read("y", DType::F32, n), Arg::write("grad_x", DType::F32, n)];
        Signature::new(name, args).sizes([("n_rows", self.forward.n_rows), ("n_cols", self.forward.n_cols)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module =
            module!("softmax_grad.wgsl", "../reduce/row_entries.wgsl", "../reduce/join_group.wgsl", "../reduce/join_sums.wgsl");
        let dispatch = row_dispatch(self, "kernels.softmax_grad", module, adapter, self.forward.shape())?;
        let dispatch = dispatch.constants([self.forward.constant()]);
        Ok(vec![dispatch.bind(&self.args(), ["grad_y", "y"], ["grad_x"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        softmax_cpu::grad(&self.forward, args.read("grad_y"), args.read("y"), args.write("grad_x"));
    }

    fn cost(&self) -> Cost {
        let n = (self.forward.n_rows * self.forward.n_cols) as u64;
        Cost { flops: 4 * n, bytes: 12 * n }
    }
}
