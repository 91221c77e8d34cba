//! What a run needs to know about all its rows, read in one pass.

use brisk_loader::{CodesAndWeights, RowSource};
use rayon::prelude::*;

use super::element::FeedElement;
use super::inspect::{check_finite, failed};
use crate::error::Error;
use crate::row_digest::RowDigest;
use crate::standardisation::Moments;

/// The findings of one pass over the rows of a set. Replicas compare digests before any of them refuses its rows, so values that cannot be used are found here and
/// reported by the caller.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) digest: RowDigest,
    /// `[n_rows, n_labels]`.
    pub(crate) labels: Vec<f32>,
    /// [`Error::NonFinite`] if a feature is NaN or infinite.
    pub(crate) non_finite: Option<Error>,
}

/// Blocks of the digest that are read and hashed at a time, on all threads: about 16 MiB.
const BLOCKS_AT_A_TIME: usize = 16;

impl Survey {
    /// Reads all rows once, on all threads of the current rayon pool, and adds them to `moments`. Meanwhile the source verifies that they have not changed since they were written.
    ///
    /// # Errors
    /// [`Error::Rows`] if the source fails, or its rows are damaged.
    pub(crate) fn of<S: RowSource<Feature: FeedElement>>(
        set: &'static str,
        source: &S,
        moments: Option<&mut Moments>,
    ) -> Result<Self, Error> {
        // Columns are added up by one thread, which leaves another for the check.
        let (intact, survey) = rayon::join(|| source.check_intact(), || Self::read(set, source, moments));
        intact.map_err(|error| failed(set, &error))?;
        survey
    }

    fn read<S: RowSource<Feature: FeedElement>>(
        set: &'static str,
        source: &S,
        mut moments: Option<&mut Moments>,
    ) -> Result<Self, Error> {
        let (n_rows, n_cols, n_labels) = (source.n_rows(), source.n_cols(), source.n_labels());
        let block_rows = RowDigest::block_rows(source);
        let chunk_rows = block_rows.saturating_mul(BLOCKS_AT_A_TIME).min(n_rows).max(1);
        let mut features = vec![S::Feature::default(); chunk_rows * n_cols];
        let mut labels = vec![0.0; n_rows * n_labels];
        let mut blocks = Vec::with_capacity(n_rows.div_ceil(block_rows));
        let mut non_finite = None;
        for first in (0..n_rows).step_by(chunk_rows) {
            let n_in_chunk = chunk_rows.min(n_rows - first);
            let features = &mut features[..n_in_chunk * n_cols];
            let labels = &mut labels[first * n_labels..][..n_in_chunk * n_labels];
            let ranges = (0..n_in_chunk).step_by(block_rows).map(|start| start..n_in_chunk.min(start + block_rows));
            let (mut features_left, mut labels_left) = (&mut features[..], labels);
            let of_blocks: Vec<_> = ranges
                .map(|rows| {
                    let features = features_left.split_off_mut(..rows.len() * n_cols).unwrap_or_default();
                    let labels = labels_left.split_off_mut(..rows.len() * n_labels).unwrap_or_default();
                    (rows, features, labels)
                })
                .collect();
            let digests = of_blocks.into_par_iter().map_init(
                || CodesAndWeights::new(source, block_rows.min(n_rows)),
                |others, (rows, features, labels)| {
                    let rows = first + rows.start..first + rows.end;
                    source.gather_range(rows.clone(), features, labels).map_err(|error| failed(set, &error))?;
                    let (categories, weights) =
                        others.gather(source, rows.start, rows.len()).map_err(|error| failed(set, &error))?;
                    Ok(RowDigest::of_block(features, labels, categories, weights))
                },
            );
            blocks.extend(digests.collect::<Result<Vec<u64>, Error>>()?);
            if non_finite.is_none() {
                non_finite = check_finite(set, source, features, |row| first + row).err();
            }
            if let Some(moments) = &mut moments {
                moments.add(features);
            }
        }
        Ok(Self { digest: RowDigest::of_blocks(source, &blocks), labels, non_finite })
    }
}
