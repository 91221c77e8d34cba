use crate::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, cpu, fold_workgroups};

/// Rows of a table, standardised: `y[i, c] = (table[rows[i], c] - mean[c]) * inv_std[c]`.
///
/// # Shapes
/// `table`: `[n_table_rows, n_cols]`; `rows`: `[n]`; `mean`, `inv_std`: `[n_cols]`; `y`: `[n, n_cols]`.
/// # Dtypes
/// `rows` u32, each below `n_table_rows`; the rest f32.
/// # Cost
/// Reads and writes each row once; on hardware neighbouring lanes read neighbouring columns.
/// # Reference
/// `torch.index_select(table, 0, rows)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherRows {
    /// Rows of the table.
    pub n_table_rows: usize,
    /// Columns of the table.
    pub n_cols: usize,
    /// Rows gathered.
    pub n: usize,
}

impl Kernel for GatherRows {
    fn name(&self) -> &'static str {
        "gather_rows"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("table", DType::F32, self.n_table_rows * self.n_cols),
            Arg::read("rows", DType::U32, self.n),
            Arg::read("mean", DType::F32, self.n_cols),
            Arg::read("inv_std", DType::F32, self.n_cols),
            Arg::write("y", DType::F32, self.n * self.n_cols),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n_table_rows", self.n_table_rows), ("n_cols", self.n_cols), ("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.gather_rows",
            wgsl: include_str!("wgsl/gather_rows.wgsl"),
            entry: "main",
            constants: vec![],
            params: bytemuck::cast_slice(&[self.n_cols as u32, 0, 0, 0]).to_vec(),
            reads: vec![0, 1, 2, 3],
            writes: vec![4],
            workgroups: fold_workgroups(self.name(), (self.n * self.n_cols).div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        cpu::gather_rows::run(self.n_cols, args.read(0), args.read(1), args.read(2), args.read(3), args.write(4));
    }

    fn cost(&self) -> Cost {
        let n = (self.n * self.n_cols) as u64;
        Cost { flops: 2 * n, bytes: 8 * n + 4 * self.n as u64 }
    }
}
