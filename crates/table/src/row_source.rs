//! The loader's row source for tables: one implementation for all three kinds, as `f32` or as stored.

use std::ops::Range;

use brisk_loader::{ColumnMoments, Feature, RowSource};

use crate::dtype::{DType, Element};
use crate::error::Error;
use crate::format::{FEATURES, LABELS};
use crate::parts::Part;
use crate::row_store::RowStore;
use crate::shards::ShardedTable;
use crate::streamed::StreamedTable;
use crate::table::Table;
use crate::typed::Typed;

/// Implements the trait for types with a [`RowStore`]: the type itself, or its table.
macro_rules! row_source {
    ($(#[$doc:meta])* [$($generics:tt)*] $source:ty, $Feature:ty, $store:expr, $fill:path) => {
        $(#[$doc])*
        impl<$($generics)*> RowSource for $source {
            type Feature = $Feature;
            type Error = Error;

            fn n_rows(&self) -> usize {
                RowStore::n_rows($store(self))
            }
            fn n_cols(&self) -> usize {
                $store(self).parts().n_cols
            }
            fn n_labels(&self) -> usize {
                $store(self).parts().n_labels()
            }
            fn gather_labels(&self, rows: &[u32], labels: &mut [f32]) -> Result<(), Error> {
                fill_only_labels($store(self), Wanted::of(rows), labels)
            }
            fn gather(&self, rows: &[u32], features: &mut [$Feature], labels: &mut [f32]) -> Result<(), Error> {
                $fill($store(self), "gather", Wanted::Rows(rows), features, labels)
            }
            fn gather_range(&self, rows: Range<usize>, features: &mut [$Feature], labels: &mut [f32]) -> Result<(), Error> {
                $fill($store(self), "gather_range", Wanted::run(rows), features, labels)
            }
            fn n_categories(&self) -> usize {
                $store(self).parts().n_categories()
            }
            fn gather_categories(&self, rows: &[u32], categories: &mut [u32]) -> Result<(), Error> {
                fill_part($store(self), "gather_categories", Part::Categories, 1, Wanted::Rows(rows), categories)
            }
            fn has_weights(&self) -> bool {
                $store(self).parts().weights.is_some()
            }
            fn gather_weights(&self, rows: &[u32], weights: &mut [f32]) -> Result<(), Error> {
                fill_part($store(self), "gather_weights", Part::Weights, 1.0, Wanted::Rows(rows), weights)
            }
            fn column_moments(&self) -> Option<Vec<ColumnMoments>> {
                column_moments($store(self))
            }
            fn fingerprint(&self) -> Option<u64> {
                RowStore::fingerprint($store(self))
            }
            fn check_intact(&self) -> Result<(), Error> {
                RowStore::check_intact($store(self))
            }
            fn column_name(&self, column: usize) -> Option<&str> {
                $store(self).parts().metadata.column_names.get(column).map(String::as_str)
            }
            fn label_name(&self, label: usize) -> Option<&str> {
                $store(self).parts().metadata.label_names.get(label).map(String::as_str)
            }
            fn prefetch_range(&self, rows: Range<usize>) {
                $store(self).will_need(within(rows, RowStore::n_rows($store(self))));
            }
            fn release_range(&self, rows: Range<usize>) {
                $store(self).done_with(within(rows, RowStore::n_rows($store(self))));
            }
        }
    };
}

row_source! {
    /// Features are gathered as `f32`: `f32` rows by memcpy, `u8` and the other [`Element`]s by conversion (`u8` as 0 to 255).
    /// [`Table::typed`] gathers features as they are stored.
    [] Table, f32, itself, fill_as_f32
}
row_source! {
    /// As for [`Table`]. Ranges that the loader announces are read ahead.
    [] StreamedTable, f32, itself, fill_as_f32
}
row_source! {
    /// As for the shards; a batch may have rows of several shards.
    [S: RowStore] ShardedTable<S>, f32, itself, fill_as_f32
}
row_source! {
    /// Features as they are stored; labels are still `f32`.
    [S: RowStore, T: Element + Feature] Typed<'_, S, T>, T, Typed::store, fill_as_stored
}

/// The stored statistics, if there are some for every column and no value is missing or infinite.
fn column_moments<S: RowStore>(store: &S) -> Option<Vec<ColumnMoments>> {
    let (n_rows, statistics) = (store.n_rows() as u64, store.statistics()?);
    let moments = statistics.iter().map(|of| {
        let is_usable = of.count == n_rows && of.mean.is_finite() && of.std.is_finite() && of.std >= 0.0;
        is_usable.then_some(ColumnMoments { mean: of.mean, std: of.std })
    });
    moments.collect::<Option<Vec<_>>>().filter(|moments| moments.len() == store.parts().n_cols)
}

fn itself<S>(store: &S) -> &S {
    store
}

/// Which rows are gathered.
#[derive(Clone)]
enum Wanted<'a> {
    Rows(&'a [u32]),
    Run(Range<usize>),
}

impl Wanted<'_> {
    /// Rows by their numbers. Consecutive rows become a range, which is read with fewer calls.
    fn of(rows: &[u32]) -> Wanted<'_> {
        let is_run = rows.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        match rows {
            [first, .., last] if is_run => Wanted::Run(*first as usize..*last as usize + 1),
            _ => Wanted::Rows(rows),
        }
    }

    /// A range that ends before it starts is empty, even beyond the end of the table.
    fn run(rows: Range<usize>) -> Self {
        Self::Run(if rows.is_empty() { 0..0 } else { rows })
    }

    fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Run(rows) => rows.len(),
        }
    }

    fn check_within<S: RowStore>(&self, store: &S) -> Result<(), Error> {
        match self {
            Self::Run(rows) => store.check_range(rows),
            // Finds the greatest first: a maximum takes one vector instruction for several rows, whereas a search for the first row out of range does not.
            Self::Rows(rows) => match rows.iter().max() {
                Some(&row) if row as usize >= store.n_rows() => Err(store.rows_out_of_range(row as usize..row as usize + 1)),
                _ => Ok(()),
            },
        }
    }
}

fn fill_as_f32<S: RowStore>(
    store: &S,
    op: &'static str,
    wanted: Wanted<'_>,
    features: &mut [f32],
    labels: &mut [f32],
) -> Result<(), Error> {
    check(store, op, &wanted, features.len(), labels.len())?;
    convert_part(store, FEATURES, Part::Features, store.parts().features.dtype, wanted.clone(), features)?;
    fill_labels(store, wanted, labels)
}

fn fill_as_stored<S: RowStore, T: Element>(
    store: &S,
    op: &'static str,
    wanted: Wanted<'_>,
    features: &mut [T],
    labels: &mut [f32],
) -> Result<(), Error> {
    check(store, op, &wanted, features.len(), labels.len())?;
    copy_part(store, Part::Features, wanted.clone(), features)?;
    fill_labels(store, wanted, labels)
}

fn fill_only_labels<S: RowStore>(store: &S, wanted: Wanted<'_>, labels: &mut [f32]) -> Result<(), Error> {
    check_length("gather_labels", "labels", wanted.len().saturating_mul(store.parts().n_labels()), labels.len())?;
    wanted.check_within(store)?;
    fill_labels(store, wanted, labels)
}

fn fill_labels<S: RowStore>(store: &S, wanted: Wanted<'_>, labels: &mut [f32]) -> Result<(), Error> {
    match &store.parts().labels {
        Some(stored) => convert_part(store, LABELS, Part::Labels, stored.dtype, wanted, labels),
        None => {
            labels.fill(0.0);
            Ok(())
        }
    }
}

/// Fills categories or weights, which are gathered as stored. A table without categories gathers none, a table without weights gathers 1.
fn fill_part<S: RowStore, T: Element>(
    store: &S,
    op: &'static str,
    part: Part,
    one: T,
    wanted: Wanted<'_>,
    out: &mut [T],
) -> Result<(), Error> {
    let (arg, width) = if part == Part::Categories { ("categories", store.parts().n_categories()) } else { ("weights", 1) };
    check_length(op, arg, wanted.len().saturating_mul(width), out.len())?;
    wanted.check_within(store)?;
    if store.parts().tensor(part).is_none() {
        out.fill(one);
        return Ok(());
    }
    copy_part(store, part, wanted, out)
}

fn check<S: RowStore>(store: &S, op: &'static str, wanted: &Wanted<'_>, n_features: usize, n_labels: usize) -> Result<(), Error> {
    check_length(op, "labels", wanted.len().saturating_mul(store.parts().n_labels()), n_labels)?;
    // Saturating: a range may have more rows than any buffer could hold, which must return an error rather than overflow.
    check_length(op, "features", wanted.len().saturating_mul(store.parts().n_cols), n_features)?;
    wanted.check_within(store)
}

fn check_length(op: &'static str, arg: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Length { op, arg, expected, found }) }
}

/// Converts stored values to `f32`.
fn convert_part<S: RowStore>(
    store: &S,
    name: &'static str,
    part: Part,
    stored: DType,
    wanted: Wanted<'_>,
    out: &mut [f32],
) -> Result<(), Error> {
    fn converted<S: RowStore, T: Element>(store: &S, part: Part, wanted: Wanted<'_>, out: &mut [f32]) -> Result<(), Error> {
        each::<S, T, f32>(store, part, wanted, out, |stored, out| {
            let stored: &[T] = bytemuck::cast_slice(stored);
            for (out, value) in out.iter_mut().zip(stored) {
                *out = value.to_f32();
            }
        })
    }
    match stored {
        DType::F32 => copy_part(store, part, wanted, out),
        DType::U8 => converted::<S, u8>(store, part, wanted, out),
        DType::U32 => converted::<S, u32>(store, part, wanted, out),
        DType::I32 => converted::<S, i32>(store, part, wanted, out),
        DType::I64 => converted::<S, i64>(store, part, wanted, out),
        DType::F64 => converted::<S, f64>(store, part, wanted, out),
        #[cfg(feature = "half")]
        DType::F16 => converted::<S, half::f16>(store, part, wanted, out),
        #[cfg(feature = "half")]
        DType::BF16 => converted::<S, half::bf16>(store, part, wanted, out),
        stored => Err(Error::NotGathered { path: store.path().to_owned(), tensor: name, stored }),
    }
}

/// Copies stored values.
fn copy_part<S: RowStore, T: Element>(store: &S, part: Part, wanted: Wanted<'_>, out: &mut [T]) -> Result<(), Error> {
    each::<S, T, T>(store, part, wanted, out, |stored, out| bytemuck::cast_slice_mut::<T, u8>(out).copy_from_slice(stored))
}

/// Calls `fill` with pieces of a part, of the stored type `T`, and the position of each in `out`.
fn each<S: RowStore, T: Element, O>(
    store: &S,
    part: Part,
    wanted: Wanted<'_>,
    out: &mut [O],
    fill: impl Fn(&[u8], &mut [O]),
) -> Result<(), Error> {
    let width = out.len() / wanted.len().max(1);
    let take = |place: usize, bytes: &[u8]| fill(bytes, &mut out[place * width..][..bytes.len() / size_of::<T>()]);
    match wanted {
        Wanted::Rows(rows) => store.each_row(part, rows, take),
        Wanted::Run(rows) => store.each_run(part, rows, take),
    }
}

fn within(rows: Range<usize>, n_rows: usize) -> Range<usize> {
    rows.start.min(rows.end).min(n_rows)..rows.end.min(n_rows)
}
