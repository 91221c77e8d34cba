//! Reading all rows of a source in order.

use std::ops::Range;

use crate::gather::{Chunk, Layout, RowBuffers, RowSelection};
use crate::source::{Feature, RowSource};

/// Rows read from a source at a time.
const CHUNK_ROWS: usize = 64 * 1024;

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
    let layout @ Layout { n_rows, .. } = source.layout();
    let mut memory = RowMemory::new(layout, CHUNK_ROWS.min(n_rows));
    for first in (0..n_rows).step_by(CHUNK_ROWS) {
        f(memory.read(source, first..n_rows.min(first + CHUNK_ROWS)).map_err(&failed)?)?;
    }
    Ok(())
}

/// Memory for the values of consecutive rows: allocated once, filled many times.
#[derive(Debug)]
pub struct RowMemory<T> {
    layout: Layout,
    features: Vec<T>,
    labels: Vec<f32>,
    categories: Vec<u32>,
    weights: Vec<f32>,
}

impl<T: Feature> RowMemory<T> {
    /// For up to `most` rows at a time of a source with this layout.
    pub fn new(layout: Layout, most: usize) -> Self {
        Self {
            layout,
            features: vec![T::default(); most * layout.n_cols],
            labels: vec![0.0; most * layout.n_labels],
            categories: vec![0; most * layout.n_categories],
            weights: vec![0.0; if layout.has_weights { most } else { 0 }],
        }
    }

    /// Gathers a range of rows, all their values.
    ///
    /// # Errors
    /// Those of the source.
    /// # Panics
    /// If there are more rows than there is memory for.
    pub fn read<S: RowSource<Feature = T>>(&mut self, source: &S, rows: Range<usize>) -> Result<Chunk<'_, T>, S::Error> {
        let (first, n) = (rows.start, rows.len());
        source.gather(RowSelection::Range(rows), self.buffers(n))?;
        Ok(self.chunk(first, n))
    }

    /// The buffers of the first `n` rows.
    ///
    /// # Panics
    /// If there are more rows than there is memory for.
    pub fn buffers(&mut self, n: usize) -> RowBuffers<'_, T> {
        let all = RowBuffers {
            features: Some(&mut self.features[..]),
            labels: Some(&mut self.labels[..]),
            categories: Some(&mut self.categories[..]),
            weights: Some(&mut self.weights[..]),
        };
        all.split_at(n, &self.layout).0
    }

    /// The values of the first `n` rows, as rows from `first` on.
    ///
    /// # Panics
    /// If there are more rows than there is memory for.
    pub fn chunk(&self, first: usize, n: usize) -> Chunk<'_, T> {
        Chunk {
            first,
            features: &self.features[..n * self.layout.n_cols],
            labels: &self.labels[..n * self.layout.n_labels],
            categories: &self.categories[..n * self.layout.n_categories],
            weights: &self.weights[..if self.layout.has_weights { n } else { 0 }],
        }
    }
}
