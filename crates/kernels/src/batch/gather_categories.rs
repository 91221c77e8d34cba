use super::gather_categories_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// The codes of a table's rows: `y[i, c] = table[rows[i] - first_row, c]`.
///
/// As with [`GatherRows`](crate::GatherRows) the buffer may hold a window of a larger table: the one that starts at row 0 writes
/// all of `y`, with code 0 for the rows that are not in it, and later ones their own rows.
///
/// # Shapes
/// `table`: `[n_table_rows, n_cols]`; `rows`: `[n]`; `y`: `[n, n_cols]`.
/// # Dtypes
/// u32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherCategories {
    /// The row of the whole table that this buffer starts with; 0 for a whole table.
    pub first_row: usize,
    /// Rows that this buffer holds.
    pub n_table_rows: usize,
    /// Categorical columns.
    pub n_cols: usize,
    /// Rows gathered.
    pub n: usize,
}

impl Kernel for GatherCategories {
    fn signature(&self) -> Signature {
        let y = if self.first_row == 0 { Arg::write } else { Arg::read_write };
        let args = [
            Arg::read("table", DType::U32, [self.n_table_rows, self.n_cols]),
            Arg::read("rows", DType::U32, self.n),
            y("y", DType::U32, [self.n, self.n_cols]),
        ];
        let end = self.first_row.saturating_add(self.n_table_rows);
        let sizes = [("n_table_rows", self.n_table_rows), ("n_cols", self.n_cols), ("n", self.n), ("last row", end)];
        Signature::new("gather_categories", args).sizes(sizes)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module = module!("gather_categories.wgsl");
        let gather = Dispatch::elementwise(self.name(), "kernels.gather_categories", module, self.n * self.n_cols)?
            .param("n_cols", self.n_cols)
            .param("first_row", self.first_row)
            .param("n_table_rows", self.n_table_rows);
        Ok(vec![gather.bind(&self.args(), ["table", "rows"], ["y"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        gather_categories_cpu::run(self, args.read("table"), args.read("rows"), args.write("y"));
    }

    fn cost(&self) -> Cost {
        let n = (self.n * self.n_cols) as u64;
        Cost { flops: 0, bytes: 8 * n + 4 * self.n as u64 }
    }
}
