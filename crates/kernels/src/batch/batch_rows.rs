use super::batch_rows_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::run_state::{ORDER_LEN, STATE_LEN};
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;
use crate::sizes::in_u32;

/// The rows of the current batch, or of a part of it: `rows[i] = order(state.batch * stride + offset + first + i)`.
///
/// Positions beyond the last row have weight 0, so that the same recorded program also handles the short last batch. They repeat
/// the rows of that batch, starting with its first, so that layers that use all rows of a batch, such as batch normalisation, see
/// only these rows. A batch without any row, and all positions of an order whose `bits` or `n_rounds` are not those that
/// [`shuffled_order`](crate::shuffled_order) describes, yield row 0 with weight 0.
///
/// # Shapes
/// `order`: [`ORDER_LEN`]; `state`: [`STATE_LEN`]; `rows`, `weights`: `[n]`.
/// # Dtypes
/// `order`, `state`, `rows` u32; `weights` f32, 1 for a row and 0 for padding.
/// # Reference
/// Luby & Rackoff 1988 (Feistel networks as permutations); cycle walking: Black & Rogaway 2002.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRows {
    /// The number of rows of the batch before these.
    pub first: usize,
    /// Number of rows.
    pub n: usize,
}

impl Kernel for BatchRows {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("order", DType::U32, ORDER_LEN),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::write("rows", DType::U32, self.n),
            Arg::write("weights", DType::F32, self.n),
        ];
        Signature::new("batch_rows", args).sizes([("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let rows = Dispatch::elementwise(self.name(), "kernels.batch_rows", module!("batch_rows.wgsl"), self.n)?;
        Ok(vec![rows.param("first", self.first).bind(&self.args(), ["order", "state"], ["rows", "weights"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        batch_rows_cpu::run(
            in_u32(self.first),
            args.read("order"),
            args.read("state"),
            args.write("rows"),
            args.write("weights"),
        );
    }
}
