use std::fmt;

use brisk_loader::{Chunk, RowMemory, RowSource};
use bytemuck::{Pod, cast_slice};
use rayon::prelude::*;
use twox_hash::XxHash3_64;

use crate::error::Error;
use crate::rows::inspect::failed;
use crate::rows::{FeedElement, FeedRows};

/// A digest of a set of rows: it differs if a single bit of a feature, label, category or weight does, or the order of the rows.
///
/// Replicas compare digests before the first step, and a checkpoint keeps the digests of the rows that the model was trained on.
/// The digest depends only on the values: not on the number of threads, nor on whether the rows come from a file or from memory.
/// It is not cryptographic: it finds accidents, not forgeries.
///
/// # Examples
/// ```
/// use brisk_loader::Rows;
/// use brisk_train::RowDigest;
///
/// let rows = |label| Rows::new(vec![1.0, 2.0, 3.0, 4.0], vec![0.0, label], 2).expect("two rows of two columns");
/// let digest = RowDigest::of("train", &rows(1.0))?;
/// assert_eq!(digest, RowDigest::of("train", &rows(1.0))?);
/// assert_ne!(digest, RowDigest::of("train", &rows(0.0))?);
/// # Ok::<(), brisk_train::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowDigest(u64);

/// Bytes that are read and hashed at a time by one thread; small enough for a core's cache. Digests depend on it.
const BLOCK_BYTES: usize = 1 << 20;

impl RowDigest {
    /// Reads all rows once, on all threads of the current rayon pool, in blocks of about 1 MiB per thread.
    ///
    /// `set` names the rows in errors: `train`, `valid`, `test`.
    ///
    /// # Errors
    /// [`Error::Rows`] if the source fails.
    pub fn of<S: FeedRows>(set: &'static str, source: &S) -> Result<Self, Error> {
        let (n_rows, block_rows) = (source.n_rows(), Self::block_rows(source));
        let blocks = (0..n_rows.div_ceil(block_rows))
            .into_par_iter()
            .map_init(
                || RowMemory::new(source.layout(), block_rows.min(n_rows)),
                |memory, block| {
                    let first = block * block_rows;
                    let read = memory.read(source, first..n_rows.min(first + block_rows));
                    Ok(Self::of_block(&read.map_err(|error| failed(set, &error))?))
                },
            )
            .collect::<Result<Vec<u64>, Error>>()?;
        Ok(Self::of_blocks(source, &blocks))
    }

    pub(crate) fn block_rows<S: RowSource>(source: &S) -> usize {
        let others = (source.n_labels() + source.n_categories() + 1) * size_of::<u32>();
        let row_bytes = source.n_cols().saturating_mul(size_of::<S::Feature>()).saturating_add(others);
        (BLOCK_BYTES / row_bytes).max(1)
    }

    pub(crate) fn of_block<T: FeedElement>(rows: &Chunk<'_, T>) -> u64 {
        hash(&[hash(rows.features), hash(rows.labels), hash(rows.categories), hash(rows.weights)])
    }

    /// The digest of all rows of `source`, given those of its blocks.
    pub(crate) fn of_blocks<S: RowSource>(source: &S, blocks: &[u64]) -> Self {
        let (n_rows, n_cols, n_labels) = (source.n_rows(), source.n_cols(), source.n_labels());
        let has_weights = usize::from(source.has_weights());
        let shape = [n_rows, n_cols, source.n_categories(), has_weights, size_of::<S::Feature>()];
        // With one label per row, the digest is the same as in versions that did not support several.
        let several_labels = (n_labels > 1).then_some(n_labels);
        let shape: Vec<u64> = shape.into_iter().chain(several_labels).map(|size| size as u64).collect();
        Self(hash(&[hash(&shape), hash(blocks)]))
    }
}

impl fmt::Display for RowDigest {
    /// 16 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(digest) = self;
        write!(f, "{digest:016x}")
    }
}

fn hash<T: Pod>(values: &[T]) -> u64 {
    XxHash3_64::oneshot(cast_slice(values))
}

#[cfg(test)]
mod tests;
