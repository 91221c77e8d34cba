//! A replica's part of a batch, and the parts of all put together.

use brisk_loader::Shard;
use brisk_nn::tensor::{EpochRows, Graph, Persistent, Reduction, Tensor};

use super::DataParallel;
use crate::error::Error;
use crate::feed::{BatchTensors, Feed, check_batch};
use crate::standardisation::Standardisation;

/// A replica's part of a batch, as it is recorded.
#[derive(Debug)]
pub(crate) struct PartOfBatch {
    /// Its rows, weighted so that the [reduced](DataParallel::reduction) losses of all parts add up to the mean over the batch.
    pub(crate) batch: BatchTensors,
    /// How much each of its rows counts, 0 for padding.
    pub(crate) counts: Tensor,
    /// The sum of the weights of the whole batch, if rows have weights.
    pub(crate) weight: Option<Tensor>,
}

impl DataParallel {
    /// Checks that each replica has at least one row of a batch of a feed; and, if it reads a part, that it is this replica's.
    pub(crate) fn check_feed(&self, feed: &Feed<'_>) -> Result<(), Error> {
        check_batch(feed.batch_rows(), self.world_size())?;
        let mine = [self.rank(), self.world_size()];
        match feed.rank_of_parts() {
            Some(read) if read != mine => {
                let [[rank, world], [my_rank, my_world]] = [read, mine];
                let found = format!("the part of rank {rank} of {world}, on replica {my_rank} of {my_world}");
                let expected = "the part of the replica: `Shard::parts(replica.rank(), replica.world_size())`";
                Err(Error::setting("rank", found, expected))
            }
            _ => Ok(()),
        }
    }

    /// How the losses of the rows of a part are reduced. Those of several parts, weighted by their shares of the whole batch, add
    /// up to its mean.
    pub(crate) fn reduction(&self) -> Reduction {
        if self.is_single() { Reduction::Mean } else { Reduction::Sum }
    }

    /// Records the rows of this replica's part of the batch whose index is in `state`.
    pub(crate) fn record_part(
        &self,
        graph: &Graph,
        feed: &Feed<'_>,
        scale: &Standardisation,
        state: &Persistent,
        epoch: &EpochRows,
    ) -> Result<PartOfBatch, Error> {
        self.check_feed(feed)?;
        let sum_of = |weights: &Tensor| feed.has_weights().then(|| weights.sum(..));
        if self.is_single() {
            let batch = feed.record(graph, scale, state);
            let (counts, weight) = (batch.weights.clone(), sum_of(&batch.weights));
            // A batch whose weights are all 0 has no mean: its loss is computed with weights of 1, and replaced by 0.
            let weights = weight.as_ref().map(|weight| &counts + &weight.map(|weight| weight.eq(0.0)));
            let batch = BatchTensors { weights: weights.unwrap_or_else(|| counts.clone()), ..batch };
            return Ok(PartOfBatch { batch, counts, weight });
        }
        let weights = feed.record_weights(graph, scale, state);
        let (weight, shares) = (sum_of(&weights), weights.shares());
        let batch = feed.record_part(graph, scale, state, epoch.part.clone());
        let counts = shares.narrow(0, epoch.part.clone());
        Ok(PartOfBatch { batch: BatchTensors { weights: counts.clone(), ..batch }, counts, weight })
    }

    /// The values of all rows in their order, given those of this replica's parts of `n_batches` batches: `row_len` values a row.
    pub(crate) fn gather_rows(
        &self,
        mut mine: Vec<f32>,
        n_batches: usize,
        batch_rows: usize,
        row_len: usize,
    ) -> Result<Vec<f32>, Error> {
        if self.is_single() {
            return Ok(mine);
        }
        // Parts may differ by a row; gathered pieces have equal lengths.
        let most = batch_rows.div_ceil(self.world_size()) * row_len;
        mine.resize(n_batches * most, 0.0);
        let gathered = self.all_gather(mine)?;
        let mut all = vec![0.0; n_batches * batch_rows * row_len];
        for (rank, values) in gathered.chunks_exact(n_batches * most).enumerate() {
            let rows = Shard::parts(rank, self.world_size()).part(batch_rows);
            let part = rows.start * row_len..rows.end * row_len;
            for (batch, values) in all.chunks_exact_mut(batch_rows * row_len).zip(values.chunks_exact(part.len())) {
                batch[part.clone()].copy_from_slice(values);
            }
        }
        Ok(all)
    }
}
