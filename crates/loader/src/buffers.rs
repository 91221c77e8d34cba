//! The memory of one batch, and how it is filled.

use rayon::prelude::*;

use crate::plan::{Plan, Slots};
use crate::source::BLOCK;
use crate::{Batch, Error, RowSource};

/// Room for one batch; allocated once, filled many times.
#[derive(Debug)]
pub(crate) struct Buffers {
    features: Vec<f32>,
    labels: Vec<f32>,
    weights: Vec<f32>,
    ids: Vec<u32>,
    n_cols: usize,
    n_slots: usize,
    n_real: usize,
    index: usize,
}

/// How much of a run one thread copies at a time.
const RUN_BYTES: usize = 256 << 10;

/// Who fills a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fill {
    /// The calling thread.
    Alone,
    /// The rayon pool that the caller is in.
    Pool,
}

impl Buffers {
    pub(crate) fn new(size: usize, n_cols: usize) -> Self {
        Self {
            features: vec![0.0; size * n_cols],
            labels: vec![0.0; size],
            weights: vec![1.0; size],
            ids: vec![0; size],
            n_cols,
            n_slots: size,
            n_real: size,
            index: 0,
        }
    }

    pub(crate) fn batch(&self) -> Batch<'_> {
        let n = self.n_slots;
        Batch {
            index: self.index,
            features: &self.features[..n * self.n_cols],
            labels: &self.labels[..n],
            weights: &self.weights[..n],
            ids: &self.ids[..n],
            rows: self.n_real,
        }
    }

    /// Makes this the plan's batch `nth`.
    pub(crate) fn fill<S: RowSource>(&mut self, source: &S, plan: &Plan, nth: usize, fill: Fill) -> Result<(), Error> {
        let of = plan.slots(nth);
        let index = plan.index(nth);
        self.index = index;
        // A run is a memcpy: larger pieces, so that each is worth a thread's while.
        let piece = if plan.is_run() { (RUN_BYTES / size_of::<f32>() / self.n_cols).max(BLOCK) } else { BLOCK };
        let result = match fill {
            Fill::Pool if of.n_real >= 3 * piece => self.gather_in_pool(source, plan, of, piece),
            Fill::Alone | Fill::Pool => self.gather_alone(source, plan, of, piece),
        };
        result.and_then(|()| self.finish(source, plan, of)).map_err(|error| Error::Source { batch: index, source: error.into() })
    }

    fn gather_alone<S: RowSource>(&mut self, source: &S, plan: &Plan, of: Slots, piece: usize) -> Result<(), S::Error> {
        let features = self.features[..of.n_real * self.n_cols].chunks_mut(piece * self.n_cols);
        let labels = self.labels[..of.n_real].chunks_mut(piece);
        let ids = self.ids[..of.n_real].chunks_mut(piece);
        for (i, ((features, labels), ids)) in features.zip(labels).zip(ids).enumerate() {
            gather_piece(source, plan, of, i * piece, features, labels, ids)?;
        }
        Ok(())
    }

    fn gather_in_pool<S: RowSource>(&mut self, source: &S, plan: &Plan, of: Slots, piece: usize) -> Result<(), S::Error> {
        let features = self.features[..of.n_real * self.n_cols].par_chunks_mut(piece * self.n_cols);
        let labels = self.labels[..of.n_real].par_chunks_mut(piece);
        let ids = self.ids[..of.n_real].par_chunks_mut(piece);
        (features, labels, ids)
            .into_par_iter()
            .enumerate()
            .try_for_each(|(i, (features, labels, ids))| gather_piece(source, plan, of, i * piece, features, labels, ids))
    }

    /// Rows that come again, padding, and weights: whatever is not a real row.
    fn finish<S: RowSource>(&mut self, source: &S, plan: &Plan, of: Slots) -> Result<(), S::Error> {
        for slot in of.n_real..of.n_dealt {
            let id = plan.repeated_id(of, slot);
            self.ids[slot] = id;
            source.gather(&[id], &mut self.features[slot * self.n_cols..][..self.n_cols], &mut self.labels[slot..=slot])?;
        }
        self.features[of.n_dealt * self.n_cols..].fill(0.0);
        self.labels[of.n_dealt..].fill(0.0);
        self.ids[of.n_dealt..].fill(u32::MAX);
        if self.n_real != of.n_real {
            self.weights[..of.n_real].fill(1.0);
            self.weights[of.n_real..].fill(0.0);
        }
        (self.n_real, self.n_slots) = (of.n_real, of.n_slots);
        Ok(())
    }
}

/// Fills the slots of a batch from `from` on; what one thread does at a time.
fn gather_piece<S: RowSource>(
    source: &S,
    plan: &Plan,
    of: Slots,
    from: usize,
    features: &mut [f32],
    labels: &mut [f32],
    ids: &mut [u32],
) -> Result<(), S::Error> {
    plan.ids(of, from, ids);
    if plan.is_run() {
        return source.gather_range(plan.run(of, from..from + ids.len()), features, labels);
    }
    source.prefetch(ids);
    source.gather(ids, features, labels)
}
