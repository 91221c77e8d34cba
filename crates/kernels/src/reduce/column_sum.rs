use super::column_sum_cpu;
use crate::core::module::part;
use crate::core::sizes::check_sizes;
use crate::core::stored_form::{StoredForm, sharing, with_element};
use crate::core::stored_types::{Group, Template};
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

/// Sums of columns by parts (`main`), and their sum (`add_parts`).
pub(crate) const COLUMN_SUM: Template = Template::new(&[part!("column_sum.wgsl")], &[Group::one("X").loads()]);

/// The sum of each column: `y[col] = Σ_row x[row, col]`, the gradient of a bias.
///
/// # Shapes
/// `x`: `[n_rows, n_cols]` row-major; `y`: `[n_cols]`.
/// # Dtypes
/// f32; `x` in f16 and bf16 by [`stored`](crate::stored). Sums of 64 rows are added in order.
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
        let n_parts = self.n_rows.div_ceil(column_sum_cpu::PART_ROWS);
        vec![
            Arg::read("x", DType::F32, self.n_rows * self.n_cols),
            Arg::write("y", DType::F32, self.n_cols),
            Arg::scratch("parts", DType::F32, n_parts * self.n_cols),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n_rows", self.n_rows), ("n_cols", self.n_cols)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[DType::F32], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.stored_twin(&[DType::F32], args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        let n = (self.n_rows * self.n_cols) as u64;
        Cost { flops: n, bytes: 4 * (n + self.n_cols as u64) }
    }
}

impl StoredForm for ColumnSum {
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0], dtypes)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let n_parts = self.n_rows.div_ceil(column_sum_cpu::PART_ROWS);
        let dispatch = |entry, dtype, read, write, n: usize| -> Result<Dispatch, Error> {
            Ok(Dispatch {
                label: "kernels.column_sum",
                wgsl: COLUMN_SUM.module(&[("X", dtype)]),
                entry,
                constants: vec![],
                params: bytemuck::cast_slice(&[self.n_rows as u32, self.n_cols as u32, n_parts as u32, 0]).to_vec(),
                reads: vec![read],
                writes: vec![write],
                workgroups: fold_workgroups(self.name(), n.div_ceil(64))?,
            })
        };
        let sum_parts = dispatch("sum_parts", dtypes[0], 0, 2, n_parts * self.n_cols)?;
        Ok(vec![sum_parts, dispatch("add_parts", DType::F32, 2, 1, self.n_cols)?])
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        with_element!(dtypes[0], T => column_sum_cpu::run::<T>(self.n_cols, args.read(0), args.write(1), args.write(2)));
    }
}
