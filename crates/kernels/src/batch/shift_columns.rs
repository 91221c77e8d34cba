use super::shift_columns_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::stored_form::{StoredForm, by_stored_form, sharing};
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::sizes::check_size;
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const SHIFT_COLUMNS: Template = Template::new(&[part!("shift_columns.wgsl")], &[Group::lane("X").loads().stores()]);

/// Shifts columns: `y[row, col] = x[row, col + shift]`, 0 where `x` has no such column.
///
/// A positive shift cuts columns out; the negative shift puts them back in place, which is its gradient.
///
/// # Shapes
/// `x`: `[n_rows, n_x_cols]`; `y`: `[n_rows, n_y_cols]`.
/// # Dtypes
/// f32, or f16 and bf16 by [`stored`](crate::stored).
/// # Reference
/// `x[:, shift : shift + n_y_cols]`, and the backward pass of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShiftColumns {
    /// Rows of both.
    pub n_rows: usize,
    /// Columns of `x`.
    pub n_x_cols: usize,
    /// Columns of `y`.
    pub n_y_cols: usize,
    /// The column of `x` that is the first of `y`; negative if padding comes before the first column of `x`.
    pub shift: isize,
}

impl ShiftColumns {
    /// The same in units of what an invocation processes: one column, or two columns of a 16-bit type, which share a word.
    const fn in_lanes(self, dtype: DType) -> Self {
        let n = if dtype.is_half() { 2 } else { 1 };
        Self { n_x_cols: self.n_x_cols / n, n_y_cols: self.n_y_cols / n, shift: self.shift / n as isize, ..self }
    }

    /// The kernel that maps a gradient of `y` to one of `x`.
    pub fn grad(self) -> Self {
        Self { n_x_cols: self.n_y_cols, n_y_cols: self.n_x_cols, shift: -self.shift, ..self }
    }
}

impl Kernel for ShiftColumns {
    fn signature(&self) -> Signature {
        let args =
            [Arg::read("x", DType::F32, [self.n_rows, self.n_x_cols]), Arg::write("y", DType::F32, [self.n_rows, self.n_y_cols])];
        Signature::new("shift_columns", args)
    }

    fn check(&self) -> Result<(), Error> {
        let shift = self.shift.unsigned_abs();
        check_size(self.name(), ("shift", shift), shift < 1 << 31, "less than 2^31 either way")?;
        check_sizes(self, &[("n_rows", self.n_rows), ("n_x_cols", self.n_x_cols), ("n_y_cols", self.n_y_cols)])
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        with_element!(args.dtype("x"), T => shift_columns_cpu::run::<T>(self, args.read("x"), args.write("y")));
    }

    fn cost(&self) -> Cost {
        Cost { flops: 0, bytes: (8 * self.n_rows * self.n_y_cols) as u64 }
    }
}

impl StoredForm for ShiftColumns {
    /// Each invocation processes two columns.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let is_even = self.n_x_cols.is_multiple_of(2) && self.n_y_cols.is_multiple_of(2) && self.shift % 2 == 0;
        sharing(self, &[0, 1], dtypes).filter(|_| is_even)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let lanes = self.in_lanes(dtypes[0]);
        let module = SHIFT_COLUMNS.module(&[("X", dtypes[0])]);
        let shift = Dispatch::elementwise(self.name(), "kernels.shift_columns", module, self.n_rows * lanes.n_y_cols)?
            .param("n_x_cols", lanes.n_x_cols)
            .param("n_y_cols", lanes.n_y_cols)
            .param("shift", i32::try_from(lanes.shift).unwrap_or(i32::MAX).cast_unsigned());
        Ok(vec![shift.bind(&self.args(), ["x"], [Binding::of("y").elements("X")])?])
    }
}
