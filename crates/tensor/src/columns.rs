use std::ops::Range;

use brisk_kernels::{ConcatColumns, ShiftColumns};

use crate::error::Error;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// Concatenates this matrix and `others` along their columns. Matrices without columns are left out.
    ///
    /// # Shapes
    /// All: `[n_rows, …]` of two dimensions; the result `[n_rows, Σ columns]`.
    /// # Dtypes
    /// The dtype of all; f32 where they differ.
    /// # Errors
    /// [`Error::Shape`] if one has another number of rows; [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.cat(xs, 1)`.
    #[track_caller]
    pub fn concat_columns(&self, others: &[&Self]) -> Self {
        let mut parts: Vec<&Self> = std::iter::once(self).chain(others.iter().copied()).collect();
        let n_rows = self.shape().first();
        parts.retain(|part| !(part.shape().len() == 2 && part.shape()[1] == 0 && part.shape().first() == n_rows));
        match parts[..] {
            [] => self.clone(),
            [only] if parts.len() <= others.len() => only.clone(),
            _ => self.graph().apply(Concatenation, &parts),
        }
    }

    /// A range of the columns of a matrix.
    ///
    /// # Shapes
    /// `self`: `[n_rows, n_cols]`; the result `[n_rows, columns.len()]`.
    /// # Errors
    /// [`Error::Shape`] if the range is empty or reaches beyond the columns.
    /// # Reference
    /// `x[:, columns]`.
    #[track_caller]
    pub fn columns(&self, columns: Range<usize>) -> Self {
        self.graph().apply(Columns { columns }, &[self])
    }
}

#[derive(Debug)]
struct Concatenation;

const CONCAT: &str = "concat_columns";

impl Concatenation {
    fn kernel<'a>(n_inputs: usize, shape: impl Fn(usize) -> &'a [usize]) -> ConcatColumns {
        ConcatColumns { n_rows: shape(0)[0], widths: (0..n_inputs).map(|i| shape(i)[1]).collect() }
    }
}

impl Operation for Concatenation {
    fn signature(&self) -> Signature {
        Signature::new(CONCAT, &["x"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (n_rows, _) = inputs[0].matrix(CONCAT, "x")?;
        for input in inputs {
            if input.matrix(CONCAT, "x")?.0 != n_rows {
                let expected = format!("{n_rows} rows, as the first has");
                return Err(Error::Shape { op: CONCAT, arg: "x", expected, found: input.shape().to_vec() });
            }
        }
        let kernel = Self::kernel(inputs.len(), |i| inputs[i].shape());
        check_kernel(&kernel)?;
        Ok(vec![n_rows, kernel.n_cols()])
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let n_cols = inputs.iter().map(|input| input.shape().get(1).copied().unwrap_or(1));
        vec![inputs[0].shape().first().copied().unwrap_or(1), n_cols.fold(0, usize::saturating_add)]
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let kernel = Self::kernel(forward.n_inputs(), |i| forward.shape(i));
        forward.compute(kernel)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        let kernel = Self::kernel(backward.n_inputs(), |i| backward.shape(i));
        let (n_rows, n_x_cols) = (kernel.n_rows, kernel.n_cols());
        let mut first = 0;
        for (i, &width) in kernel.widths.iter().enumerate() {
            if backward.wants(i) {
                backward.give(i, ShiftColumns { n_rows, n_x_cols, n_y_cols: width, shift: first as isize }, &[dy])?;
            }
            first += width;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Columns {
    columns: Range<usize>,
}

const COLUMNS: &str = "columns";

impl Columns {
    fn kernel(&self, [n_rows, n_x_cols]: [usize; 2]) -> ShiftColumns {
        ShiftColumns { n_rows, n_x_cols, n_y_cols: self.columns.len(), shift: self.columns.start as isize }
    }
}

impl Operation for Columns {
    fn signature(&self) -> Signature {
        Signature::new(COLUMNS, &["x"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (n_rows, n_cols) = inputs[0].matrix(COLUMNS, "x")?;
        if self.columns.is_empty() || self.columns.end > n_cols {
            let expected = format!("columns {:?}, at least one", self.columns);
            return Err(Error::Shape { op: COLUMNS, arg: "x", expected, found: inputs[0].shape().to_vec() });
        }
        check_kernel(&self.kernel([n_rows, n_cols]))?;
        Ok(vec![n_rows, self.columns.len()])
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        vec![inputs[0].shape().first().copied().unwrap_or(1), self.columns.len()]
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(self.kernel(forward.dims(0)))
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        backward.give(0, self.kernel(backward.dims(0)).grad(), &[dy])
    }
}
