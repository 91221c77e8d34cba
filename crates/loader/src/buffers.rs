//! The memory of one batch, and how it is filled.

use crate::batch::Batch;
use crate::error::Error;
use crate::part::Part;
use crate::plan::{Plan, Slots};
use crate::source::BLOCK;
use crate::source::{Feature, RowSource};

/// Memory for one batch; allocated once, filled many times.
#[derive(Debug)]
pub struct Buffers<T> {
    features: Vec<T>,
    labels: Vec<f32>,
    weights: Vec<f32>,
    categories: Vec<u32>,
    ids: Vec<u32>,
    widths: Widths,
    n_slots: usize,
    n_real: usize,
    index: usize,
}

/// The number of values per row.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    pub(crate) n_cols: usize,
    pub(crate) n_labels: usize,
    pub(crate) n_categories: usize,
    pub(crate) has_weights: bool,
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

impl Widths {
    pub(crate) fn of<S: RowSource>(source: &S) -> Self {
        Self {
            n_cols: source.n_cols(),
            n_labels: source.n_labels(),
            n_categories: source.n_categories(),
            has_weights: source.has_weights(),
        }
    }

    /// The size of a batch of `size` rows in bytes; `None` if it overflows.
    pub(crate) fn len_bytes<T>(self, size: usize) -> Option<usize> {
        let features = self.n_cols.checked_mul(size_of::<T>())?;
        let categories = self.n_categories.checked_mul(size_of::<u32>())?;
        let labels = self.n_labels.checked_mul(size_of::<f32>())?;
        let others = size_of::<f32>() + size_of::<u32>();
        let row = features.checked_add(categories)?.checked_add(labels)?.checked_add(others)?;
        row.checked_mul(size)
    }
}

impl<T: Feature> Buffers<T> {
    pub(crate) fn new(size: usize, widths: Widths) -> Self {
        Self {
            features: vec![T::default(); size * widths.n_cols],
            labels: vec![0.0; size * widths.n_labels],
            weights: vec![1.0; size],
            categories: vec![0; size * widths.n_categories],
            ids: vec![0; size],
            widths,
            n_slots: size,
            n_real: size,
            index: 0,
        }
    }

    /// Like [`new`](Self::new), but returns an error for a batch that is empty or larger than the address space.
    pub(crate) fn checked(size: usize, widths: Widths) -> Result<Self, Error> {
        let is_possible = widths.len_bytes::<T>(size).is_some_and(|n| n <= isize::MAX as usize);
        if size == 0 || !is_possible {
            return Err(Error::BatchSize { size, n_cols: widths.n_cols });
        }
        Ok(Self::new(size, widths))
    }

    pub(crate) fn batch(&self) -> Batch<'_, T> {
        let n = self.n_slots;
        Batch {
            index: self.index,
            features: &self.features[..n * self.widths.n_cols],
            labels: &self.labels[..n * self.widths.n_labels],
            weights: &self.weights[..n],
            categories: &self.categories[..n * self.widths.n_categories],
            ids: &self.ids[..n],
            rows: self.n_real,
        }
    }

    /// The features of the first `n_slots` slots.
    pub(crate) fn features_of(&mut self, n_slots: usize) -> &mut [T] {
        &mut self.features[..n_slots * self.widths.n_cols]
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
        let run = RUN_BYTES / (size_of::<T>() * self.widths.n_cols).max(1);
        let grain = source.grain().max(1);
        let piece = if plan.is_run() && grain >= BLOCK { run.max(grain) } else { grain };
        let gather = |part: Part<'_, T>| part.gather(source, plan, of);
        let result = match fill {
            Fill::Pool if of.n_real >= 3 * piece => self.real(of.n_real).in_pool(piece, &gather),
            Fill::Alone | Fill::Pool => self.real(of.n_real).alone(piece, gather),
        };
        result.and_then(|()| self.finish(source, plan, of)).map_err(|error| Error::Source { batch: index, cause: error.into() })
    }

    /// Fills in everything except the real rows: repeated rows, padding, and weights.
    fn finish<S>(&mut self, source: &S, plan: &Plan, of: Slots) -> Result<(), S::Error>
    where
        S: RowSource<Feature = T>,
    {
        let Widths { n_cols, n_labels, n_categories, has_weights } = self.widths;
        for slot in of.n_real..of.n_dealt {
            let id = [plan.repeated_id(of, slot)];
            self.ids[slot] = id[0];
            let labels = &mut self.labels[slot * n_labels..][..n_labels];
            source.gather(&id, &mut self.features[slot * n_cols..][..n_cols], labels)?;
            if n_categories > 0 {
                source.gather_categories(&id, &mut self.categories[slot * n_categories..][..n_categories])?;
            }
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

    /// The slots of real rows.
    fn real(&mut self, n_real: usize) -> Part<'_, T> {
        let Widths { n_cols, n_labels, n_categories, has_weights } = self.widths;
        Part {
            from: 0,
            features: &mut self.features[..n_real * n_cols],
            labels: &mut self.labels[..n_real * n_labels],
            weights: &mut self.weights[..if has_weights { n_real } else { 0 }],
            categories: &mut self.categories[..n_real * n_categories],
            ids: &mut self.ids[..n_real],
        }
    }
}
