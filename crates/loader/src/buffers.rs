//! The memory of one batch, and how it is filled.

use std::collections::TryReserveError;

use crate::batch::{Batch, Batching};
use crate::error::Error;
use crate::gather::{BLOCK, Layout, RowBuffers, RowSelection};
use crate::part::Part;
use crate::plan::{Plan, Slots};
use crate::source::{Feature, RowSource};

/// Memory for one batch; allocated once, filled many times.
#[derive(Debug)]
pub struct Buffers<T> {
    features: Vec<T>,
    labels: Vec<f32>,
    weights: Vec<f32>,
    categories: Vec<u32>,
    ids: Vec<u32>,
    layout: Layout,
    n_slots: usize,
    n_real: usize,
    index: usize,
}

/// The number of bytes that one thread copies at a time if rows are consecutive.
const RUN_BYTES: usize = 256 << 10;

/// Which threads fill a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fill {
    /// The calling thread.
    Alone,
    /// The rayon pool that the caller is in.
    Pool,
}

impl<T: Feature> Buffers<T> {
    /// # Panics
    /// If there is not enough memory.
    pub(crate) fn new(size: usize, layout: Layout) -> Self {
        match Self::try_new(size, layout) {
            Ok(buffers) => buffers,
            Err(error) => panic!("no room for another batch of {size} rows of {} columns: {error}", layout.n_cols),
        }
    }

    fn try_new(size: usize, layout: Layout) -> Result<Self, TryReserveError> {
        Ok(Self {
            features: filled(size * layout.n_cols, T::default())?,
            labels: filled(size * layout.n_labels, 0.0)?,
            weights: filled(size, 1.0)?,
            categories: filled(size * layout.n_categories, 0)?,
            ids: filled(size, 0)?,
            layout,
            n_slots: size,
            n_real: size,
            index: 0,
        })
    }

    /// Like [`new`](Self::new), but returns an error for a batch that is empty or for which there is no memory.
    pub(crate) fn checked(batching: &Batching, layout: Layout) -> Result<Self, Error> {
        let size = batching.size;
        let refused = Error::BatchSize { size, n_cols: layout.n_cols };
        match layout.len_bytes::<T>(size) {
            Some(n_bytes) if size > 0 && n_bytes <= isize::MAX as usize => {
                Self::try_new(batching.n_slots(), layout).map_err(|_| refused)
            }
            _ => Err(refused),
        }
    }

    pub(crate) fn batch(&self) -> Batch<'_, T> {
        let n = self.n_slots;
        Batch {
            index: self.index,
            features: &self.features[..n * self.layout.n_cols],
            labels: &self.labels[..n * self.layout.n_labels],
            weights: &self.weights[..n],
            categories: &self.categories[..n * self.layout.n_categories],
            ids: &self.ids[..n],
            rows: self.n_real,
        }
    }

    /// The features of the first `n_slots` slots.
    pub(crate) fn features_of(&mut self, n_slots: usize) -> &mut [T] {
        &mut self.features[..n_slots * self.layout.n_cols]
    }

    /// Takes over the batch of `other` except for the features. `other` keeps the old values, which are no longer needed.
    pub(crate) fn take_all_but_features<U>(&mut self, other: &mut Buffers<U>) {
        std::mem::swap(&mut self.labels, &mut other.labels);
        std::mem::swap(&mut self.weights, &mut other.weights);
        std::mem::swap(&mut self.categories, &mut other.categories);
        std::mem::swap(&mut self.ids, &mut other.ids);
        // The number of real rows belongs to the weights.
        std::mem::swap(&mut self.n_real, &mut other.n_real);
        (self.n_slots, self.index) = (other.n_slots, other.index);
    }

    /// Fills the buffers with batch `nth` of the plan.
    pub(crate) fn fill<S>(&mut self, source: &S, plan: &Plan, nth: usize, fill: Fill) -> Result<(), Error>
    where
        S: RowSource<Feature = T>,
    {
        let of = plan.slots(nth);
        let index = plan.index(nth);
        self.index = index;
        // Consecutive rows are copied by memcpy, so larger pieces are needed to make a thread worthwhile.
        let run = RUN_BYTES / (size_of::<T>() * self.layout.n_cols).max(1);
        let grain = source.layout().grain.max(1);
        let piece = if plan.is_run() && grain >= BLOCK { run.max(grain) } else { grain };
        let gather = |part: Part<'_, T>| part.gather(source, plan, of);
        let result = match fill {
            Fill::Pool if of.n_real >= 3 * piece => self.slots(of.n_real).in_pool(piece, &gather),
            Fill::Alone | Fill::Pool => self.slots(of.n_real).alone(piece, gather),
        };
        result.and_then(|()| self.finish(source, plan, of)).map_err(|error| Error::Source { batch: index, cause: error.into() })
    }

    /// Fills in everything except the real rows: repeated rows, padding, and weights.
    fn finish<S>(&mut self, source: &S, plan: &Plan, of: Slots) -> Result<(), S::Error>
    where
        S: RowSource<Feature = T>,
    {
        let Layout { n_cols, n_labels, n_categories, has_weights, .. } = self.layout;
        for slot in of.n_real..of.n_dealt {
            self.ids[slot] = plan.repeated_id(of, slot);
            // The row counts with weight 0.
            let (_, Part { ids, values, .. }) = self.slots(slot + 1).split_at(slot);
            source.gather(RowSelection::Numbers(ids), RowBuffers { weights: None, ..values })?;
        }
        self.features[of.n_dealt * n_cols..].fill(T::default());
        self.labels[of.n_dealt * n_labels..].fill(0.0);
        self.categories[of.n_dealt * n_categories..].fill(0);
        self.ids[of.n_dealt..].fill(u32::MAX);
        if !has_weights && self.n_real < of.n_real {
            self.weights[..of.n_real].fill(1.0);
        }
        self.weights[of.n_real..].fill(0.0);
        (self.n_real, self.n_slots) = (of.n_real, of.n_slots);
        Ok(())
    }

    /// The first `n` slots.
    fn slots(&mut self, n: usize) -> Part<'_, T> {
        let Layout { n_cols, n_labels, n_categories, has_weights, .. } = self.layout;
        Part {
            from: 0,
            layout: &self.layout,
            ids: &mut self.ids[..n],
            values: RowBuffers {
                features: Some(&mut self.features[..n * n_cols]),
                labels: Some(&mut self.labels[..n * n_labels]),
                categories: Some(&mut self.categories[..n * n_categories]),
                weights: Some(&mut self.weights[..if has_weights { n } else { 0 }]),
            },
        }
    }
}

/// Unlike `vec!`, which ends the process, an error if there is no memory.
fn filled<V: Clone>(n: usize, value: V) -> Result<Vec<V>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(n)?;
    values.resize(n, value);
    Ok(values)
}
