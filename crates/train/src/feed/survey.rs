//! What a run needs to know about all its rows, read in one pass.

use brisk_loader::{Chunk, Layout, RowMemory, RowSelection, RowSource};
use rayon::prelude::*;

use crate::error::Error;
use crate::row_digest::RowDigest;
use crate::rows::FeedElement;
use crate::rows::inspect::{check_finite, failed};
use crate::standardisation::Moments;

/// The findings of one pass over the rows of a set. Replicas compare digests before any of them refuses its rows, so values that cannot be used are found here and
/// reported by the caller.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) digest: RowDigest,
    /// `[n_rows, n_labels]`.
    pub(crate) labels: Vec<f32>,
    /// [`Error::Value`] if a feature is NaN or infinite.
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
        let layout @ Layout { n_rows, n_labels, .. } = source.layout();
        let block_rows = RowDigest::block_rows(source);
        let chunk_rows = block_rows.saturating_mul(BLOCKS_AT_A_TIME).min(n_rows).max(1);
        let mut memory = RowMemory::new(layout, chunk_rows);
        let mut labels = Vec::with_capacity(n_rows * n_labels);
        let mut blocks = Vec::with_capacity(n_rows.div_ceil(block_rows));
        let mut non_finite = None;
        for first in (0..n_rows).step_by(chunk_rows) {
            let n = chunk_rows.min(n_rows - first);
            let mut rest = memory.buffers(n);
            let of_blocks: Vec<_> = (0..n)
                .step_by(block_rows)
                .map(|start| {
                    let rows = start..n.min(start + block_rows);
                    let (into, others) = std::mem::take(&mut rest).split_at(rows.len(), &layout);
                    rest = others;
                    (first + rows.start..first + rows.end, into)
                })
                .collect();
            let digests = of_blocks.into_par_iter().map(|(rows, mut into)| {
                source.gather(RowSelection::Range(rows.clone()), into.reborrow()).map_err(|error| failed(set, &error))?;
                Ok(RowDigest::of_block(&into.chunk(rows.start)))
            });
            blocks.extend(digests.collect::<Result<Vec<u64>, Error>>()?);
            let Chunk { features, labels: read, .. } = memory.chunk(first, n);
            labels.extend_from_slice(read);
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
