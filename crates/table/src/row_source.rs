//! The loader's row source for tables: one implementation for all three kinds, as `f32` or as stored.

use brisk_loader::{
    ColumnMoments, Encoding, Error as LoaderError, Feature, Hint, Layout, Names, RowBuffers, RowSelection, RowSource,
};

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

            fn layout(&self) -> Layout {
                layout($store(self))
            }
            fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, $Feature>) -> Result<(), Error> {
                gather($store(self), rows, into, $fill)
            }
            fn names(&self) -> Names<'_> {
                names($store(self))
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
            fn hint(&self, rows: RowSelection<'_>, hint: Hint) {
                pass_on($store(self), rows, hint);
            }
        }
    };
}

row_source! {
    /// Features are gathered as `f32`: `f32` rows by memcpy, `u8` and the other [`Element`]s by conversion (`u8` as 0 to 255).
    /// Whole numbers that `f32` would round are an error, [`Error::Rounded`].
    /// [`Table::typed`] gathers features as they are stored.
    [] Table, f32, itself, convert_part
}
row_source! {
    /// As for [`Table`]. Ranges that the loader announces are read ahead.
    [] StreamedTable, f32, itself, convert_part
}
row_source! {
    /// As for the shards; a batch may have rows of several shards.
    [S: RowStore] ShardedTable<S>, f32, itself, convert_part
}
row_source! {
    /// Features as they are stored; labels are still `f32`.
    [S: RowStore, T: Element + Feature] Typed<'_, S, T>, T, Typed::store, copy_part
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

fn names<S: RowStore>(store: &S) -> Names<'_> {
    let metadata = &store.parts().metadata;
    Names {
        columns: &metadata.column_names,
        labels: &metadata.label_names,
        classes: &metadata.classes,
        categories: metadata.dictionaries.iter().map(|of| (of.name(), of.values())).collect(),
        encoding: Encoding::default(),
    }
}

fn itself<S>(store: &S) -> &S {
    store
}

fn layout<S: RowStore>(store: &S) -> Layout {
    let parts = store.parts();
    Layout {
        n_labels: parts.n_labels(),
        n_categories: parts.n_categories(),
        has_weights: parts.weights.is_some(),
        reads_blocks: store.reads_blocks(),
        ..Layout::new(store.n_rows(), parts.n_cols)
    }
}

/// Only a range is read ahead and released: rows by number are touched together when they are gathered.
fn pass_on<S: RowStore>(store: &S, rows: RowSelection<'_>, hint: Hint) {
    let RowSelection::Range(rows) = rows else { return };
    let n_rows = store.n_rows();
    let rows = rows.start.min(rows.end).min(n_rows)..rows.end.min(n_rows);
    match hint {
        Hint::WillNeed => store.will_need(rows, false),
        Hint::WillNeedLater => store.will_need(rows, true),
        Hint::DontNeed => store.done_with(rows),
    }
}

/// Gathers what is wanted, the features with `fill`; categories and weights as stored.
fn gather<S: RowStore, T>(
    store: &S,
    rows: RowSelection<'_>,
    into: RowBuffers<'_, T>,
    fill: impl FnOnce(&S, Part, &RowSelection<'_>, &mut [T]) -> Result<(), Error>,
) -> Result<(), Error> {
    if let Err(LoaderError::Length { op, arg, expected, found }) = into.check_lengths(rows.len(), &layout(store)) {
        return Err(Error::Length { op, arg, expected, found });
    }
    if let Some(row) = rows.first_beyond(store.n_rows()) {
        return Err(store.rows_out_of_range(match &rows {
            RowSelection::Numbers(_) => row..row + 1,
            RowSelection::Range(rows) => rows.clone(),
        }));
    }
    // Labels without features may be of consecutive rows, which are read with fewer calls.
    let rows = match rows {
        RowSelection::Numbers(numbers) if into.features.is_none() => RowSelection::of(numbers),
        RowSelection::Range(rows) if rows.is_empty() => return Ok(()),
        rows => rows,
    };
    if let Some(features) = into.features.filter(|features| !features.is_empty()) {
        fill(store, Part::Features, &rows, features)?;
    }
    match into.labels.filter(|labels| !labels.is_empty()) {
        // The table was opened without labels.
        Some(labels) if store.parts().labels.is_none() => labels.fill(0.0),
        Some(labels) => convert_part(store, Part::Labels, &rows, labels)?,
        None => {}
    }
    if let Some(categories) = into.categories.filter(|categories| !categories.is_empty()) {
        copy_part(store, Part::Categories, &rows, categories)?;
    }
    if let Some(weights) = into.weights.filter(|weights| !weights.is_empty()) {
        copy_part(store, Part::Weights, &rows, weights)?;
    }
    Ok(())
}

/// Converts stored values to `f32`.
fn convert_part<S: RowStore>(store: &S, part: Part, rows: &RowSelection<'_>, out: &mut [f32]) -> Result<(), Error> {
    fn converted<S: RowStore, T: Element>(store: &S, part: Part, rows: &RowSelection<'_>, out: &mut [f32]) -> Result<(), Error> {
        each::<S, T, f32>(store, part, rows, out, |stored, out| {
            let stored: &[T] = bytemuck::cast_slice(stored);
            for (out, value) in out.iter_mut().zip(stored) {
                *out = value.to_f32();
            }
        })
    }
    let tensor = if part == Part::Labels { LABELS } else { FEATURES };
    let Some(stored) = store.parts().tensor(part).map(|tensor| tensor.dtype) else { return Ok(()) };
    match stored {
        DType::F32 => copy_part(store, part, rows, out),
        DType::U8 => converted::<S, u8>(store, part, rows, out),
        DType::U32 => whole_numbers::<S, u32>(store, (part, tensor, stored), rows, out),
        DType::I32 => whole_numbers::<S, i32>(store, (part, tensor, stored), rows, out),
        DType::I64 => whole_numbers::<S, i64>(store, (part, tensor, stored), rows, out),
        DType::F64 => converted::<S, f64>(store, part, rows, out),
        #[cfg(feature = "half")]
        DType::F16 => converted::<S, half::f16>(store, part, rows, out),
        #[cfg(feature = "half")]
        DType::BF16 => converted::<S, half::bf16>(store, part, rows, out),
        stored => Err(Error::NotGathered { path: store.path().to_owned(), tensor, stored }),
    }
}

/// Up to here, `f32` holds every whole number.
const EXACT_LIMIT: u64 = 1 << 24;

/// Converts whole numbers, none of which `f32` may round: two of them could become one.
fn whole_numbers<S: RowStore, T: Element + Into<i64>>(
    store: &S,
    (part, tensor, stored): (Part, &'static str, DType),
    rows: &RowSelection<'_>,
    out: &mut [f32],
) -> Result<(), Error> {
    let mut rounded: Option<i64> = None;
    each::<S, T, f32>(store, part, rows, out, |stored, out| {
        let stored: &[T] = bytemuck::cast_slice(stored);
        for (out, &value) in out.iter_mut().zip(stored) {
            *out = value.to_f32();
            let whole: i64 = value.into();
            if whole.unsigned_abs() > EXACT_LIMIT && *out as i128 != i128::from(whole) {
                rounded.get_or_insert(whole);
            }
        }
    })?;
    match rounded {
        None => Ok(()),
        Some(value) => {
            Err(Error::Rounded { path: store.path().to_owned(), tensor, stored, value, nearest: f64::from(value as f32) })
        }
    }
}

/// Copies stored values.
fn copy_part<S: RowStore, T: Element>(store: &S, part: Part, rows: &RowSelection<'_>, out: &mut [T]) -> Result<(), Error> {
    each::<S, T, T>(store, part, rows, out, |stored, out| bytemuck::cast_slice_mut::<T, u8>(out).copy_from_slice(stored))
}

/// Calls `fill` with pieces of a part, of the stored type `T`, and the position of each in `out`.
fn each<S: RowStore, T: Element, O>(
    store: &S,
    part: Part,
    rows: &RowSelection<'_>,
    out: &mut [O],
    mut fill: impl FnMut(&[u8], &mut [O]),
) -> Result<(), Error> {
    let width = out.len() / rows.len().max(1);
    let take = |place: usize, bytes: &[u8]| fill(bytes, &mut out[place * width..][..bytes.len() / size_of::<T>()]);
    match rows {
        RowSelection::Numbers(rows) => store.each_row(part, rows, take),
        RowSelection::Range(rows) => store.each_run(part, rows.clone(), take),
    }
}
