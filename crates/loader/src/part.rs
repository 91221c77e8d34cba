//! A part of a batch: what one thread gathers at a time.

use crate::plan::{Plan, Slots};
use crate::source::{Feature, RowSource};

/// Some consecutive slots of a batch for real rows.
#[derive(Debug)]
pub(crate) struct Part<'a, T> {
    /// The first of the slots.
    pub(crate) from: usize,
    pub(crate) features: &'a mut [T],
    pub(crate) labels: &'a mut [f32],
    /// Empty if the source has none.
    pub(crate) weights: &'a mut [f32],
    pub(crate) categories: &'a mut [u32],
    pub(crate) ids: &'a mut [u32],
}

impl<'a, T: Feature> Part<'a, T> {
    /// Calls `work` for one piece after the other, up to the first error.
    pub(crate) fn alone<E>(self, piece: usize, mut work: impl FnMut(Part<'a, T>) -> Result<(), E>) -> Result<(), E> {
        let mut rest = self;
        while rest.ids.len() > piece {
            let (first, others) = rest.split_at(piece);
            work(first)?;
            rest = others;
        }
        work(rest)
    }

    /// Calls `work` for all pieces on the threads of the caller's pool. If there are several errors, returns the first one.
    pub(crate) fn in_pool<E: Send>(self, piece: usize, work: &(impl Fn(Part<'_, T>) -> Result<(), E> + Sync)) -> Result<(), E> {
        let n_pieces = self.ids.len().div_ceil(piece);
        if n_pieces <= 1 {
            return work(self);
        }
        let (left, right) = self.split_at(n_pieces / 2 * piece);
        let (left, right) = rayon::join(|| left.in_pool(piece, work), || right.in_pool(piece, work));
        left.and(right)
    }

    /// Gathers the rows that belong in these slots according to the plan.
    pub(crate) fn gather<S: RowSource<Feature = T>>(self, source: &S, plan: &Plan, of: Slots) -> Result<(), S::Error> {
        plan.ids(of, self.from, self.ids);
        if plan.is_run() {
            source.gather_range(plan.run(of, self.from..self.from + self.ids.len()), self.features, self.labels)?;
        } else {
            source.prefetch(self.ids);
            source.gather(self.ids, self.features, self.labels)?;
        }
        if !self.categories.is_empty() {
            source.gather_categories(self.ids, self.categories)?;
        }
        if !self.weights.is_empty() {
            source.gather_weights(self.ids, self.weights)?;
        }
        Ok(())
    }

    fn split_at(self, n: usize) -> (Part<'a, T>, Part<'a, T>) {
        // A part without slots has no width, and is not split.
        let n_slots = self.ids.len().max(1);
        let (features, more_features) = split(self.features, n, n_slots);
        let (labels, more_labels) = split(self.labels, n, n_slots);
        let (weights, more_weights) = split(self.weights, n, n_slots);
        let (categories, more_categories) = split(self.categories, n, n_slots);
        let (ids, more_ids) = self.ids.split_at_mut(n);
        let first = Part { from: self.from, features, labels, weights, categories, ids };
        let others = Part {
            from: self.from + n,
            features: more_features,
            labels: more_labels,
            weights: more_weights,
            categories: more_categories,
            ids: more_ids,
        };
        (first, others)
    }
}

/// Splits after the values of `n` of `n_slots` slots, which all have the same width.
fn split<T>(values: &mut [T], n: usize, n_slots: usize) -> (&mut [T], &mut [T]) {
    let width = values.len() / n_slots;
    values.split_at_mut(n * width)
}
