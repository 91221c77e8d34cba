use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::gather::{BLOCK, Layout, RowBuffers, RowSelection};
use crate::shuffle::{Shuffle, splitmix64_finish};
use crate::source::{Hint, Names, RowSource};

/// Some rows of a source, which are also a source: a training set, a test set, a fold.
///
/// Subsets from [`split`](crate::split) and [`k_fold`](crate::k_fold) store a few integers and compute their row numbers, those
/// from [`split_by_blocks`](crate::split_by_blocks) four bytes per block; those that depend on labels or keys, and those from
/// [`of_rows`](Self::of_rows), store four bytes per row.
#[derive(Clone, Debug)]
pub struct Subset<S> {
    source: S,
    rows: Rows,
}

/// The rows of a subset.
#[derive(Clone, Debug)]
enum Rows {
    /// Consecutive positions of a shuffle, possibly with a gap.
    Shuffled {
        shuffle: Shuffle,
        /// The first position of the subset.
        start: u32,
        n_rows: u32,
        /// From row `gap_at` of the subset on, `gap` positions are skipped: a fold's training set is on both sides of its
        /// validation set.
        gap_at: u32,
        gap: u32,
    },
    /// Whole blocks of the source, in its order. Only the last block of the source may have fewer rows, and it comes last.
    Blocks { blocks: Arc<[u32]>, block_rows: u32, n_rows: u32, n_source_rows: u32 },
    /// A list of rows.
    Listed { rows: Arc<[u32]>, n_source_rows: u32, fingerprint: u64 },
}

impl<S: RowSource> Subset<S> {
    /// The listed rows, in that order; a row may occur more than once.
    ///
    /// # Errors
    /// [`Error::RowOutOfRange`] for a row that the source does not have; [`Error::TooManyRows`] beyond 2³² − 1.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::{RowBuffers, RowSource, Rows, RowSelection, Subset};
    ///
    /// let rows = Rows::new(vec![0.5, 1.5, 2.5], vec![0.0, 1.0, 0.0], 1)?;
    /// let chosen = Subset::of_rows(&rows, vec![2, 0])?;
    /// let (mut features, mut labels) = ([0.0; 2], [0.0; 2]);
    /// chosen.gather(RowSelection::Range(0..2), RowBuffers::new(&mut features, &mut labels))?;
    /// assert_eq!(features, [2.5, 0.5]);
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn of_rows(source: S, rows: impl Into<Arc<[u32]>>) -> Result<Self, Error> {
        let rows = rows.into();
        let n_rows = source.n_rows();
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= n_rows) {
            return Err(Error::RowOutOfRange { row: row as usize, n_rows });
        }
        let n_most = n_rows.max(rows.len());
        if u32::try_from(n_most).is_err() {
            return Err(Error::TooManyRows { n_rows: n_most });
        }
        let fingerprint =
            rows.iter().fold(rows.len() as u64, |hash, &row| splitmix64_finish(hash ^ u64::from(row)).wrapping_add(1));
        Ok(Self { source, rows: Rows::Listed { rows, n_source_rows: n_rows as u32, fingerprint } })
    }

    pub(crate) fn of_positions(source: S, shuffle: Shuffle, range: Range<u32>) -> Self {
        let n_rows = range.end - range.start;
        Self { source, rows: Rows::Shuffled { shuffle, start: range.start, n_rows, gap_at: n_rows, gap: 0 } }
    }

    pub(crate) fn of_all_but(source: S, shuffle: Shuffle, range: Range<u32>) -> Self {
        let gap = range.end - range.start;
        let n_rows = shuffle.n_rows() - gap;
        Self { source, rows: Rows::Shuffled { shuffle, start: 0, n_rows, gap_at: range.start, gap } }
    }

    /// Whole blocks of a source of `n_source_rows` rows, in ascending order.
    pub(crate) fn of_blocks(source: S, blocks: Vec<u32>, block_rows: u32, n_source_rows: u32) -> Self {
        let missing = match (blocks.last(), n_source_rows % block_rows) {
            (Some(&last), rest) if rest > 0 && last == n_source_rows / block_rows => block_rows - rest,
            _ => 0,
        };
        // At most the number of rows of the source.
        let n_rows = (blocks.len() as u64 * u64::from(block_rows) - u64::from(missing)) as u32;
        Self { source, rows: Rows::Blocks { blocks: blocks.into(), block_rows, n_rows, n_source_rows } }
    }

    /// The source that the rows belong to.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The number in [`source`](Self::source) of row `row` of the subset.
    ///
    /// # Panics
    /// If the row does not exist, as when indexing a slice.
    pub fn row(&self, row: u32) -> u32 {
        assert!(row < self.rows.len(), "row {row} is out of range for a subset of {} rows", self.rows.len());
        let mut block = [0; BLOCK];
        self.rows.to_source(&[row], &mut block)[0]
    }
}

impl Rows {
    fn len(&self) -> u32 {
        match self {
            Self::Shuffled { n_rows, .. } | Self::Blocks { n_rows, .. } => *n_rows,
            Self::Listed { rows, .. } => rows.len() as u32,
        }
    }

    fn n_source_rows(&self) -> u32 {
        match self {
            Self::Shuffled { shuffle, .. } => shuffle.n_rows(),
            Self::Blocks { n_source_rows, .. } | Self::Listed { n_source_rows, .. } => *n_source_rows,
        }
    }

    /// The row numbers in the source of a block of rows of the subset.
    fn to_source<'a>(&self, ours: &[u32], block: &'a mut [u32; BLOCK]) -> &'a [u32] {
        let block = &mut block[..ours.len()];
        match self {
            Self::Shuffled { shuffle, start, gap_at, gap, .. } => {
                for (&row, position) in ours.iter().zip(block.iter_mut()) {
                    *position = start + row + if row >= *gap_at { *gap } else { 0 };
                }
                shuffle.permute(block);
            }
            Self::Blocks { blocks, block_rows, .. } => {
                for (&row, to) in ours.iter().zip(block.iter_mut()) {
                    *to = blocks[(row / block_rows) as usize] * block_rows + row % block_rows;
                }
            }
            Self::Listed { rows, .. } => {
                ours.iter().zip(block.iter_mut()).for_each(|(&row, to)| *to = rows[row as usize]);
            }
        }
        block
    }

    /// Calls `f` with the runs of consecutive rows of the source that some consecutive rows of the subset are, and returns
    /// `true`; `false` if they are scattered.
    fn for_each_run<E>(&self, ours: Range<usize>, mut f: impl FnMut(Range<usize>) -> Result<(), E>) -> Result<bool, E> {
        let Self::Blocks { blocks, block_rows, n_rows, .. } = self else { return Ok(false) };
        let (block_rows, end) = (*block_rows as usize, ours.end.min(*n_rows as usize));
        let mut row = ours.start;
        while row < end {
            let next = end.min((row / block_rows + 1) * block_rows);
            let first = blocks[row / block_rows] as usize * block_rows + row % block_rows;
            f(first..first + (next - row))?;
            row = next;
        }
        Ok(true)
    }

    /// Identifies these rows among those of the source.
    fn fingerprint(&self) -> u64 {
        match self {
            Self::Shuffled { shuffle, start, n_rows, gap_at, gap } => {
                let numbers = shuffle.keys().into_iter().chain([shuffle.n_rows(), *start, *n_rows, *gap_at, *gap]);
                numbers.fold(0, |hash, number| splitmix64_finish(hash ^ u64::from(number)).wrapping_add(1))
            }
            Self::Blocks { blocks, block_rows, n_rows, n_source_rows } => {
                let sizes = [*block_rows, *n_rows, *n_source_rows];
                sizes
                    .iter()
                    .chain(&blocks[..])
                    .fold(1, |hash, &number| splitmix64_finish(hash ^ u64::from(number)).wrapping_add(1))
            }
            Self::Listed { fingerprint, .. } => *fingerprint,
        }
    }
}

impl<S: RowSource> RowSource for Subset<S> {
    type Feature = S::Feature;
    type Error = S::Error;

    fn layout(&self) -> Layout {
        Layout { n_rows: self.rows.len() as usize, ..self.source.layout() }
    }

    /// Calls the source. The error for a row beyond the end of the subset names a row equally far beyond the end of the source.
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, S::Feature>) -> Result<(), S::Error> {
        let layout = self.layout();
        if into.check_lengths(rows.len(), &layout).is_err() {
            return self.source.gather(into.mismatched(), into);
        }
        if let Some(row) = rows.first_beyond(layout.n_rows) {
            let beyond = u32::try_from(row - layout.n_rows).unwrap_or(u32::MAX).saturating_add(self.rows.n_source_rows());
            return self.source.gather(RowSelection::Numbers(&[beyond]), into.split_at(1, &layout).0);
        }
        let (mut rest, mut block) = (into, [0; BLOCK]);
        if let RowSelection::Range(rows) = &rows {
            let gather = |rows: Range<usize>| {
                let (into, others) = std::mem::take(&mut rest).split_at(rows.len(), &layout);
                rest = others;
                self.source.gather(RowSelection::Range(rows), into)
            };
            if self.rows.for_each_run(rows.clone(), gather)? {
                return Ok(());
            }
        }
        rows.for_each_block(|_, rows| {
            let (into, others) = std::mem::take(&mut rest).split_at(rows.len(), &layout);
            rest = others;
            self.source.gather(RowSelection::Numbers(self.rows.to_source(rows, &mut block)), into)
        })
    }

    fn names(&self) -> Names<'_> {
        self.source.names()
    }

    /// Combines the fingerprint of the source with that of the selected rows.
    fn fingerprint(&self) -> Option<u64> {
        Some(splitmix64_finish(self.source.fingerprint()? ^ self.rows.fingerprint()))
    }

    /// Checks the whole source.
    fn check_intact(&self) -> Result<(), S::Error> {
        self.source.check_intact()
    }

    fn source_row(&self, row: u32) -> u32 {
        if row < self.rows.len() { self.source.source_row(self.row(row)) } else { row }
    }

    /// Passes on what is said of rows by number, and of ranges of a subset of whole blocks; a range of another subset is
    /// scattered over its source.
    fn hint(&self, rows: RowSelection<'_>, hint: Hint) {
        match rows {
            RowSelection::Range(rows) => {
                let Ok(_) = self.rows.for_each_run(rows, |rows| {
                    self.source.hint(RowSelection::Range(rows), hint);
                    Ok::<(), Infallible>(())
                });
            }
            RowSelection::Numbers(rows) => {
                let mut block = [0; BLOCK];
                for rows in rows.chunks(BLOCK).filter(|rows| rows.iter().all(|&row| row < self.rows.len())) {
                    self.source.hint(RowSelection::Numbers(self.rows.to_source(rows, &mut block)), hint);
                }
            }
        }
    }
}
