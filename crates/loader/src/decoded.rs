use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{BoxedError, Error, panic_message};
use crate::gather::{Layout, RowBuffers, RowSelection};
use crate::source::{Feature, RowSource};

/// A source whose rows are produced one by one by a function: images that are decoded, files that are parsed.
///
/// Prefetching workers decode different batches in parallel; without workers, the threads of the caller's pool share a batch, one
/// row at a time.
///
/// # Errors
/// Gathering returns [`Error::Decode`] for an error of the function, and [`Error::DecodePanicked`] for a panic. Both name the
/// row.
///
/// # Examples
/// ```
/// use std::num::ParseFloatError;
/// use brisk_loader::{Batching, Decoded, Loader};
///
/// let lines = ["1 0.5 0.25", "0 1.5 2.5", "1 3 4"];
/// let rows = Decoded::new(lines.len(), 2, |row, features: &mut [f32]| {
///     let mut numbers = lines[row as usize].split(' ').map(str::parse);
///     let label = numbers.next().unwrap_or(Ok(0.0))?;
///     for (feature, number) in features.iter_mut().zip(numbers) {
///         *feature = number?;
///     }
///     Ok::<f32, ParseFloatError>(label)
/// });
/// let mut loader = Loader::new(&rows, Batching::of(3))?;
/// let mut batches = loader.epoch(0);
/// let batch = batches.next_batch()?.expect("a batch of three");
/// assert_eq!((batch.features, batch.labels), (&[0.5, 0.25, 1.5, 2.5, 3.0, 4.0][..], &[1.0, 0.0, 1.0][..]));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
pub struct Decoded<F, T = f32, E = Error> {
    n_rows: usize,
    n_cols: usize,
    decode: F,
    types: PhantomData<fn() -> (T, E)>,
}

impl<F, T, E> Decoded<F, T, E>
where
    F: Fn(u32, &mut [T]) -> Result<f32, E> + Sync,
    T: Feature,
    E: Into<BoxedError>,
{
    /// `n_rows` rows of `n_cols` features. `decode` gets the number of a row and its features to fill, and returns its label. It
    /// must give the same result every time, on any thread. (Random augmentations belong in
    /// [`Loader::map_rows`](crate::Loader::map_rows), which knows the epoch.)
    pub fn new(n_rows: usize, n_cols: usize, decode: F) -> Self {
        Self { n_rows, n_cols, decode, types: PhantomData }
    }
}

impl<F, T, E> RowSource for Decoded<F, T, E>
where
    F: Fn(u32, &mut [T]) -> Result<f32, E> + Sync,
    T: Feature,
    E: Into<BoxedError>,
{
    type Feature = T;
    type Error = Error;

    /// A single row is enough work for a thread.
    fn layout(&self) -> Layout {
        Layout { grain: 1, ..Layout::new(self.n_rows, self.n_cols) }
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, T>) -> Result<(), Error> {
        let layout = self.layout();
        into.check(&rows, &layout)?;
        let at = Cell::new(0);
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            // A row is decoded as a whole, even if only its label is wanted.
            let mut unwanted = vec![T::default(); if into.features.is_none() { self.n_cols } else { 0 }];
            into.for_each_row(&rows, &layout, |row, into| {
                at.set(row);
                let label = (self.decode)(row, into.features.unwrap_or(&mut unwanted))?;
                into.labels.into_iter().flatten().for_each(|to| *to = label);
                Ok(())
            })
        }));
        match decoded {
            Ok(decoded) => decoded.map_err(|error: E| Error::Decode { row: at.get(), cause: error.into() }),
            Err(thrown) => Err(Error::DecodePanicked { row: at.get(), message: panic_message(thrown) }),
        }
    }
}

impl<F, T, E> fmt::Debug for Decoded<F, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded").field("n_rows", &self.n_rows).field("n_cols", &self.n_cols).finish_non_exhaustive()
    }
}
