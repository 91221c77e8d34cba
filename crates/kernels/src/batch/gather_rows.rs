//! Gathering the rows of a batch.
//!
//! A table that exceeds one binding is gathered by one kernel per window of rows, not by one kernel with many bindings: adapters
//! guarantee only eight storage buffers per kernel.

use super::gather_rows_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::stored_form::{StoredForm, by_stored_form, sharing};
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const GATHER_ROWS: Template = Template::new(&[part!("gather_rows.wgsl")], &[Group::lane("X").stores()]);

/// Rows of a table, standardised: `y[i, c] = (table[rows[i] - first_row, c] - mean[c]) * inv_std[c]`.
///
/// The buffer may hold a window of a larger table, starting at `first_row`. The window that starts at row 0 writes all of `y`,
/// with zeros for the rows that are not in it; a later one writes its own rows and leaves the others unchanged. So a table that
/// is too large for one binding is gathered by one kernel per window, the first window first.
///
/// # Shapes
/// `table`: `[n_table_rows, n_cols]`; `rows`: `[n]`; `mean`, `inv_std`: `[n_cols]`; `y`: `[n, n_cols]`.
/// # Dtypes
/// `table` f32 or u8, whose values are 0 to 255; `rows` u32; the rest f32, `y` also in f16 and bf16 by [`stored`](crate::stored).
/// # Cost
/// Reads and writes each row once; on hardware neighbouring invocations read neighbouring columns.
/// # Reference
/// `torch.index_select(table, 0, rows)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherRows {
    /// Element type of the table.
    pub dtype: DType,
    /// The row of the whole table that this buffer starts with; 0 for a whole table.
    pub first_row: usize,
    /// Rows that this buffer holds.
    pub n_table_rows: usize,
    /// Columns of the table.
    pub n_cols: usize,
    /// Rows gathered.
    pub n: usize,
}

impl Kernel for GatherRows {
    fn signature(&self) -> Signature {
        let y = if self.first_row == 0 { Arg::write } else { Arg::read_write };
        let args = [
            Arg::read("table", self.dtype, [self.n_table_rows, self.n_cols]),
            Arg::read("rows", DType::U32, self.n),
            Arg::read("mean", DType::F32, self.n_cols),
            Arg::read("inv_std", DType::F32, self.n_cols),
            y("y", DType::F32, [self.n, self.n_cols]),
        ];
        Signature::new("gather_rows", args)
    }

    fn check(&self) -> Result<(), Error> {
        let is_known = matches!(self.dtype, DType::F32 | DType::U8);
        check_supported(self.name(), is_known, || format!("a table of {:?}", self.dtype), "F32 or U8")?;
        let end = self.first_row.saturating_add(self.n_table_rows);
        check_sizes(self, &[("n_table_rows", self.n_table_rows), ("n_cols", self.n_cols), ("n", self.n), ("last row", end)])
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (rows, mean, inv_std) = (args.read("rows"), args.read("mean"), args.read("inv_std"));
        with_element!(args.dtype("y"), Y => match self.dtype {
            DType::U8 => gather_rows_cpu::run::<u8, Y>(self, args.read("table"), rows, mean, inv_std, args.write("y")),
            _ => gather_rows_cpu::run::<f32, Y>(self, args.read("table"), rows, mean, inv_std, args.write("y")),
        });
    }

    fn cost(&self) -> Cost {
        let n = (self.n * self.n_cols) as u64;
        Cost { flops: 2 * n, bytes: (self.dtype.size_bytes() as u64 + 4) * n + 4 * self.n as u64 }
    }
}

impl StoredForm for GatherRows {
    /// Each invocation processes two columns.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[4], dtypes).filter(|_| self.dtype == DType::F32 && self.n_cols.is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let y = dtypes[4];
        let n_lanes = if y.is_half() { self.n_cols / 2 } else { self.n_cols };
        let load = if self.dtype == DType::U8 { part!("table_u8.wgsl") } else { part!("table_f32.wgsl") };
        let module = GATHER_ROWS.module(&[("X", y)]).with(load);
        let vectors = |name| Binding::of(name).elements("V");
        let gather = Dispatch::elementwise(self.name(), "kernels.gather_rows", module, self.n * n_lanes)?
            .param("n_cols", n_lanes)
            .param("first_row", self.first_row)
            .param("n_table_rows", self.n_table_rows);
        let table = if self.dtype == DType::U8 { "table".into() } else { vectors("table") };
        let y = Binding::of("y").elements("X");
        Ok(vec![gather.bind(&self.args(), [table, "rows".into(), vectors("mean"), vectors("inv_std")], [y])?])
    }
}
