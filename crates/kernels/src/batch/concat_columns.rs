use super::concat_columns_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::stored_form::{StoredForm, by_stored_form, sharing};
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const CONCAT_COLUMNS: Template = Template::new(&[part!("concat_columns.wgsl")], &[Group::lane("X").loads().stores()]);

/// Matrices side by side: `y[row, ..] = x₀[row, ..], x₁[row, ..], …`.
///
/// # Shapes
/// `x`, one argument for each of `widths`: `[n_rows, width]`; `y`: `[n_rows, Σ widths]`.
/// # Dtypes
/// f32, or f16 and bf16 by [`stored`](crate::stored).
/// # Cost
/// One dispatch per matrix, so that their number is not limited by the bindings of an adapter.
/// # Reference
/// `torch.cat(xs, 1)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcatColumns {
    /// Rows of each.
    pub n_rows: usize,
    /// Columns of each, in order.
    pub widths: Vec<usize>,
}

impl ConcatColumns {
    /// Columns of the result.
    pub fn n_cols(&self) -> usize {
        self.widths.iter().fold(0, |n_cols, width| n_cols.saturating_add(*width))
    }
}

impl Kernel for ConcatColumns {
    fn signature(&self) -> Signature {
        let xs = self.widths.iter().map(|width| Arg::read("x", DType::F32, [self.n_rows, *width]));
        let args: Vec<Arg> = xs.chain([Arg::write("y", DType::F32, [self.n_rows, self.n_cols()])]).collect();
        let sizes = [("n_rows", self.n_rows), ("number of matrices", self.widths.len())].into_iter();
        let sizes: Vec<_> = sizes.chain(self.widths.iter().map(|&width| ("width", width))).collect();
        Signature::new("concat_columns", args).sizes(sizes)
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        with_element!(args.dtype("y"), T => {
            let y = args.write::<T>("y");
            let mut first = 0;
            for (i, &width) in self.widths.iter().enumerate() {
                concat_columns_cpu::run(self.n_cols(), first, width, args.read(i), y);
                first += width;
            }
        });
    }

    fn cost(&self) -> Cost {
        Cost { flops: 0, bytes: (8 * self.n_rows * self.n_cols()) as u64 }
    }
}

impl StoredForm for ConcatColumns {
    /// Each invocation processes two columns.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let is_even = self.widths.iter().all(|width| width.is_multiple_of(2));
        let all: Vec<usize> = (0..=self.widths.len()).collect();
        sharing(self, &all, dtypes).filter(|_| is_even)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let n_in_lane = if dtypes[0].is_half() { 2 } else { 1 };
        let n_cols = self.n_cols() / n_in_lane;
        let args = self.args();
        let mut first = 0;
        let mut dispatches = Vec::with_capacity(self.widths.len());
        for (i, width) in self.widths.iter().map(|width| width / n_in_lane).enumerate() {
            let module = CONCAT_COLUMNS.module(&[("X", dtypes[0])]);
            let copy = Dispatch::elementwise(self.name(), "kernels.concat_columns", module, self.n_rows * width)?
                .param("width", width)
                .param("n_cols", n_cols)
                .param("first", first);
            dispatches.push(copy.bind(&args, [Binding::at(i)], [Binding::of("y").elements("X")])?);
            first += width;
        }
        Ok(dispatches)
    }
}
