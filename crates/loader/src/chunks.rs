//! Reading all rows of a source in order.

use crate::source::RowSource;

/// Rows read from a source at a time.
const CHUNK_ROWS: usize = 64 * 1024;

/// Rows that have been read, in order.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a, T> {
    /// The number of its first row.
    pub first: usize,
    /// `[n, n_cols]`
    pub features: &'a [T],
    /// `[n, n_labels]`
    pub labels: &'a [f32],
    /// `[n, n_categories]`
    pub categories: &'a [u32],
    /// `[n]`; empty if the source has no weights.
    pub weights: &'a [f32],
}

/// Calls `f` for all rows of a source, up to 65,536 at a time, in order.
///
/// # Errors
/// The first error of `f`; that of the source, as `failed` converts it.
/// # Examples
/// ```
/// use brisk_loader::{Error, Rows, for_each_chunk};
///
/// let rows = Rows::new(vec![1.0_f32, 2.0, 3.0, 4.0], vec![0.0, 1.0], 2)?;
/// let mut sum = 0.0;
/// for_each_chunk(&rows, |error: Error| error, |chunk| Ok(sum += chunk.features.iter().sum::<f32>()))?;
/// assert_eq!(sum, 10.0);
/// # Ok::<(), Error>(())
/// ```
pub fn for_each_chunk<S: RowSource, E>(
    source: &S,
    failed: impl Fn(S::Error) -> E,
    mut f: impl FnMut(Chunk<'_, S::Feature>) -> Result<(), E>,
) -> Result<(), E> {
    let (n_rows, n_cols, n_labels) = (source.n_rows(), source.n_cols(), source.n_labels());
    let most = CHUNK_ROWS.min(n_rows);
    let mut features = vec![S::Feature::default(); most * n_cols];
    let mut labels = vec![0.0; most * n_labels];
    let mut others = CodesAndWeights::new(source, most);
    for first in (0..n_rows).step_by(CHUNK_ROWS) {
        let n = most.min(n_rows - first);
        let (features, labels) = (&mut features[..n * n_cols], &mut labels[..n * n_labels]);
        source.gather_range(first..first + n, features, labels).map_err(&failed)?;
        let (categories, weights) = others.gather(source, first, n).map_err(&failed)?;
        f(Chunk { first, features, labels, categories, weights })?;
    }
    Ok(())
}

/// Buffers for the categories and weights of consecutive rows, if a source has them.
#[derive(Debug)]
pub struct CodesAndWeights {
    ids: Vec<u32>,
    categories: Vec<u32>,
    weights: Vec<f32>,
}

impl CodesAndWeights {
    /// For up to `n` rows of a source.
    pub fn new<S: RowSource>(source: &S, n: usize) -> Self {
        let n_weights = if source.has_weights() { n } else { 0 };
        let has_any = source.n_categories() > 0 || source.has_weights();
        let ids = vec![0; if has_any { n } else { 0 }];
        Self { ids, categories: vec![0; n * source.n_categories()], weights: vec![0.0; n_weights] }
    }

    /// The categories and the weights of `n` rows from `first` on.
    ///
    /// # Shapes
    /// Categories: `[n, n_categories]`; weights: `[n]`, or empty if the source has none.
    /// # Errors
    /// Those of the source.
    pub fn gather<S: RowSource>(&mut self, source: &S, first: usize, n: usize) -> Result<(&[u32], &[f32]), S::Error> {
        for (id, row) in self.ids.iter_mut().zip(first as u32..) {
            *id = row;
        }
        let categories = &mut self.categories[..n * source.n_categories()];
        if !categories.is_empty() {
            source.gather_categories(&self.ids[..n], categories)?;
        }
        let weights = if source.has_weights() { &mut self.weights[..n] } else { &mut [] };
        if !weights.is_empty() {
            source.gather_weights(&self.ids[..n], weights)?;
        }
        Ok((categories, weights))
    }
}
