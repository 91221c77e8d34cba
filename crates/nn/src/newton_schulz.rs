use brisk_kernels::{DType, Epilogue, MapReduce, Matmul, NewtonSchulzFactor, Reducer, Runs, ScaleRuns, Transpose};
use brisk_tensor::program::{Error, Program, Slice};

/// Moves the singular values of matrices close to 1 and keeps their singular vectors.
///
/// Each matrix is divided by its Frobenius norm, so that none of its singular values is above 1, and then a few quintic steps
/// of a Newton–Schulz iteration are applied. All operations are matrix products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewtonSchulz {
    pub(crate) n_steps: usize,
    pub(crate) coefficients: [f32; 3],
    /// The minimum norm to divide by.
    pub(crate) eps: f32,
}

impl Default for NewtonSchulz {
    /// Steep at 0, so that small singular values grow fast; larger ones end between about 0.7 and 1.2.
    fn default() -> Self {
        Self { n_steps: 5, coefficients: [3.4445, -4.7750, 2.0315], eps: 1e-7 }
    }
}

impl NewtonSchulz {
    /// Records it for a batch of matrices, whose memory it reuses; returns where the result is. `shape` is
    /// `[n_batch, n_rows, n_cols]`.
    pub(crate) fn record(&self, program: &mut Program, x: Slice, state: Slice, shape: [usize; 3]) -> Result<Slice, Error> {
        let [n_batch, n_rows, n_cols] = shape;
        let len = n_rows * n_cols;
        let norms = program.transient("norms", DType::F32, n_batch);
        program.push(MapReduce::of(Reducer::Norm, &[n_batch, len], &[1]), &[x, norms])?;
        program.push(ScaleRuns { runs: Runs::concatenated(n_batch, len), to: 1.0, eps: self.eps }, &[norms, state, x])?;

        // The smaller of the two Gram matrices: X Xᵀ, which multiplies X from the left, or Xᵀ X, which multiplies it from the
        // right.
        let n = n_rows.min(n_cols);
        let mut x = x;
        for _ in 0..self.n_steps {
            let turned = if n_rows <= n_cols { Transpose::B } else { Transpose::A };
            let gram = product(program, n_batch, [n, n, n_rows.max(n_cols)], turned, [x, x])?;
            // Its own transpose, which the twin of a product of a matrix with itself makes use of.
            let square = product(program, n_batch, [n, n, n], Transpose::B, [gram, gram])?;
            let factor = program.transient("factor", DType::F32, n_batch * n * n);
            let kernel = NewtonSchulzFactor { n_batch, n, coefficients: self.coefficients };
            program.push(kernel, &[gram, square, factor])?;
            let factors = if n_rows <= n_cols { [factor, x] } else { [x, factor] };
            x = product(program, n_batch, [n_rows, n_cols, n], Transpose::None, factors)?;
        }
        Ok(x)
    }
}

/// Products of all pairs.
fn product(
    program: &mut Program,
    n_batch: usize,
    [m, n, k]: [usize; 3],
    transpose: Transpose,
    [a, b]: [Slice; 2],
) -> Result<Slice, Error> {
    let y = program.transient("product", DType::F32, n_batch * m * n);
    program.push(Matmul { n_batch, m, n, k, transpose, epilogue: Epilogue::none() }, &[a, b, y])?;
    Ok(y)
}
