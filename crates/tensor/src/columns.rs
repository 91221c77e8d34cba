use std::ops::Range;
use std::rc::Rc;

use brisk_kernels::{ConcatColumns, ShiftColumns};

use crate::{Error, Tensor};

impl Tensor {
    /// This matrix and `others`, side by side.
    ///
    /// # Shapes
    /// All: `[n_rows, …]` of two dimensions; the result `[n_rows, Σ columns]`.
    /// # Dtypes
    /// That of all; f32 where they differ.
    /// # Errors
    /// [`Error::Shape`] if one has another number of rows; [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.cat(xs, 1)`.
    pub fn concat_columns(&self, others: &[&Self]) -> Result<Self, Error> {
        const OP: &str = "concat_columns";
        let graph = self.graph();
        let parts: Vec<&Self> = std::iter::once(self).chain(others.iter().copied()).collect();
        let (n_rows, _) = self.matrix(OP, "x")?;
        let mut widths = Vec::with_capacity(parts.len());
        for part in &parts {
            graph.check_own(OP, "x", part)?;
            let (rows, width) = part.matrix(OP, "x")?;
            if rows != n_rows {
                let expected = format!("{n_rows} rows, as the first has");
                return Err(Error::Shape { op: OP, arg: "x", expected, found: part.shape().to_vec() });
            }
            widths.push(width);
        }
        let kernel = ConcatColumns { n_rows, widths: widths.clone() };
        let n_cols = kernel.n_cols();
        let mut parts: Vec<Self> = parts.into_iter().cloned().collect();
        let dtype = graph.cast_operands(OP, &kernel, &mut parts)?;
        let y = graph.transient(OP, dtype, n_rows * n_cols);
        let args: Vec<_> = parts.iter().map(Self::slice).chain([y]).collect();
        graph.push(kernel, &args)?;
        let ids: Vec<usize> = parts.iter().map(Self::id).collect();
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            let mut first = 0;
            for (&id, &width) in ids.iter().zip(&widths) {
                if backward.wants(id) {
                    let kernel = ShiftColumns { n_rows, n_x_cols: n_cols, n_y_cols: width, shift: first as isize };
                    backward.give(id, kernel, &[dy])?;
                }
                first += width;
            }
            Ok(())
        };
        graph.result(OP, &parts.iter().collect::<Vec<_>>(), y, &[n_rows, n_cols], None, Rc::new(rule))
    }

    /// Some columns of a matrix.
    ///
    /// # Shapes
    /// `self`: `[n_rows, n_cols]`; the result `[n_rows, columns.len()]`.
    /// # Errors
    /// [`Error::Shape`] if there are no such columns.
    /// # Reference
    /// `x[:, columns]`.
    pub fn columns(&self, columns: Range<usize>) -> Result<Self, Error> {
        const OP: &str = "columns";
        let (n_rows, n_x_cols) = self.matrix(OP, "x")?;
        if columns.is_empty() || columns.end > n_x_cols {
            let expected = format!("columns {columns:?}, at least one");
            return Err(Error::Shape { op: OP, arg: "x", expected, found: self.shape().to_vec() });
        }
        let graph = self.graph();
        let kernel = ShiftColumns { n_rows, n_x_cols, n_y_cols: columns.len(), shift: columns.start as isize };
        let (dtype, [x]) = graph.operands(OP, &kernel, [self])?;
        let y = graph.transient(OP, dtype, n_rows * columns.len());
        graph.push(kernel, &[x.slice(), y])?;
        let x_id = x.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, kernel.grad(), &[dy]);
        graph.result(OP, &[&x], y, &[n_rows, columns.len()], None, Rc::new(rule))
    }
}
