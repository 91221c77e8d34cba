//! A part of a batch: what one thread gathers at a time.

use crate::gather::{Layout, RowBuffers, RowSelection};
use crate::plan::{Plan, Slots};
use crate::source::{Feature, Hint, RowSource};

/// Some consecutive slots of a batch for real rows.
#[derive(Debug)]
pub(crate) struct Part<'a, T> {
    /// The first of the slots.
    pub(crate) from: usize,
    pub(crate) layout: &'a Layout,
    pub(crate) ids: &'a mut [u32],
    pub(crate) values: RowBuffers<'a, T>,
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
        let rows = if plan.is_run() {
            RowSelection::Range(plan.run(of, self.from..self.from + self.ids.len()))
        } else {
            source.hint(RowSelection::Numbers(self.ids), Hint::WillNeed);
            RowSelection::Numbers(self.ids)
        };
        source.gather(rows, self.values)
    }

    /// The first `n` slots, and the others.
    pub(crate) fn split_at(self, n: usize) -> (Part<'a, T>, Part<'a, T>) {
        let Self { from, layout, ids, values } = self;
        let (ids, more_ids) = ids.split_at_mut(n);
        let (values, more_values) = values.split_at(n, layout);
        (Part { from, layout, ids, values }, Part { from: from + n, layout, ids: more_ids, values: more_values })
    }
}
