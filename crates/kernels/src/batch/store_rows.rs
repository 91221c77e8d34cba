use super::store_rows_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::run_state::STATE_LEN;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// Appends a batch's rows to a result: `y[state.batch * n + i, c] = x[i, c]`; rows beyond the end of `y` are left out.
///
/// The last element of `y` becomes NaN for a batch without a row that fits: `y` is too short, or the batch index was not reset
/// for a new epoch. This way, missing results are not mistaken for earlier ones.
///
/// It collects an evaluation's scores, or a run's losses, on the device, where they are read once.
///
/// # Shapes
/// `x`: `[n, n_cols]`; `state`: [`STATE_LEN`]; `y`: `[n_total, n_cols]`.
/// # Dtypes
/// `state` u32; the rest f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreRows {
    /// Rows of a batch.
    pub n: usize,
    /// Columns.
    pub n_cols: usize,
    /// Rows of the whole result.
    pub n_total: usize,
}

impl Kernel for StoreRows {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("x", DType::F32, [self.n, self.n_cols]),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("y", DType::F32, [self.n_total, self.n_cols]),
        ];
        Signature::new("store_rows", args).sizes([("n", self.n), ("n_cols", self.n_cols), ("n_total", self.n_total)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let store = Dispatch::elementwise(self.name(), "kernels.store_rows", module!("store_rows.wgsl"), self.n * self.n_cols)?;
        let store = store.param("nan_bits", f32::NAN.to_bits());
        Ok(vec![store.bind(&self.args(), ["x", "state"], ["y"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        store_rows_cpu::run(args.read("x"), args.read("state"), args.write("y"));
    }
}
