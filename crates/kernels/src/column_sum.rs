use crate::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, cpu, fold_workgroups};

/// The sum of each column: `y[col] = Σ_row x[row, col]`, the gradient of a bias.
///
/// # Shapes
/// `x`: `[n_rows, n_cols]` row-major; `y`: `[n_cols]`.
/// # Dtypes
/// f32. Sums of 64 rows are added in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSum {
    /// Rows summed over.
    pub n_rows: usize,
    /// Columns, each with a sum.
    pub n_cols: usize,
}

impl Kernel for ColumnSum {
    fn name(&self) -> &'static str {
        "column_sum"
    }

    fn args(&self) -> Vec<Arg> {
        let n_parts = self.n_rows.div_ceil(cpu::column_sum::PART_ROWS);
        vec![
            Arg::read("x", DType::F32, self.n_rows * self.n_cols),
            Arg::write("y", DType::F32, self.n_cols),
            Arg::scratch("parts", DType::F32, n_parts * self.n_cols),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n_rows", self.n_rows), ("n_cols", self.n_cols)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let n_parts = self.n_rows.div_ceil(cpu::column_sum::PART_ROWS);
        let dispatch = |entry, read, write, n: usize| -> Result<Dispatch, Error> {
            Ok(Dispatch {
                label: "kernels.column_sum",
                wgsl: include_str!("wgsl/column_sum.wgsl"),
                entry,
                constants: vec![],
                types: vec![],
                params: bytemuck::cast_slice(&[self.n_rows as u32, self.n_cols as u32, n_parts as u32, 0]).to_vec(),
                reads: vec![read],
                writes: vec![write],
                workgroups: fold_workgroups(self.name(), n.div_ceil(64))?,
            })
        };
        Ok(vec![dispatch("sum_parts", 0, 2, n_parts * self.n_cols)?, dispatch("add_parts", 2, 1, self.n_cols)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        cpu::column_sum::run(self.n_cols, args.read(0), args.write(1), args.write(2));
    }

    fn cost(&self) -> Cost {
        let n = (self.n_rows * self.n_cols) as u64;
        Cost { flops: n, bytes: 4 * (n + self.n_cols as u64) }
    }
}
