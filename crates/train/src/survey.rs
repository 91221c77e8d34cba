//! What a run needs to know about all its rows, read in one pass.

use std::ops::Range;

use brisk_loader::{Chunk, Hint, Layout, RowMemory, RowSelection};
use brisk_nn::CategoricalColumn;
use rayon::prelude::*;

use crate::error::Error;
use crate::moments::Moments;
use crate::row_digest::RowDigest;
use crate::rows::inspect::{
    all_weights_are_zero, failed, first_non_finite, first_unknown_code, heavy_weight, is_weight, non_finite, source_row,
    unknown_code, weight_range,
};
use crate::rows::{Features, FeedElement, FeedRows};

/// The findings of one pass over the rows of a set. Replicas compare rows before any of them refuses its own, so values that
/// cannot be used are found here and reported by the caller.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) digest: RowDigest,
    /// `[n_rows, n_labels]`, if they were asked for.
    pub(crate) labels: Vec<f32>,
    /// The row and the number there of the first label that cannot be used, and the label.
    pub(crate) wrong_label: Option<([usize; 2], f32)>,
    /// Those of all columns, if they were asked for.
    pub(crate) moments: Option<Moments>,
    /// The weight of each row, if it was asked for and rows have weights.
    pub(crate) weights: Vec<f32>,
    /// The first category or weight that cannot be used.
    pub(crate) wrong_code_or_weight: Option<Error>,
    /// The first feature that is NaN or infinite.
    pub(crate) non_finite: Option<Error>,
}

/// What is wanted of a pass, apart from the digest.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Whether the labels of the rows are kept.
    pub(crate) labels: bool,
    /// The first of some labels, `[n, n_labels]`, that cannot be used.
    pub(crate) first_wrong_label: &'a (dyn Fn(&[f32]) -> Option<usize> + Sync),
    /// Whether means and deviations of the columns are computed.
    pub(crate) moments: bool,
    /// Whether the weights of the rows are kept.
    pub(crate) weights: bool,
    /// The model's categorical columns, as many as the rows have.
    pub(crate) columns: &'a [CategoricalColumn],
    /// Weights of so many rows are summed.
    pub(crate) batch_rows: usize,
}

/// The findings in some sections of a source, one after the other: plain values, so that replicas can exchange them.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The digest of each block.
    pub(crate) blocks: Vec<u64>,
    /// The labels of each row, if wanted.
    pub(crate) labels: Vec<f32>,
    /// Of each section, if wanted: the number of rows, then the means, then the squared deviations.
    pub(crate) moments: Vec<f64>,
    /// The sum of the weights of rows that were read together, if rows have weights.
    pub(crate) weight_sums: Vec<f64>,
    /// The weight of each row, if wanted and rows have weights.
    pub(crate) weights: Vec<f32>,
    /// The values that cannot be used: at most one of each kind.
    pub(crate) wrong: Vec<Wrong>,
}

/// A value that cannot be used: its kind, its row, its column, and the code, or the bits of the number.
type Wrong = [u32; 4];

const NON_FINITE: u32 = 0;
const CODE: u32 = 1;
const WEIGHT: u32 = 2;
const HEAVY: u32 = 3;
const LABEL: u32 = 4;

/// Blocks of the digest that are read and hashed at a time, on all threads: about 16 MiB.
const BLOCKS_AT_A_TIME: usize = 16;

/// The most sections that a source is read in, each by one replica. Many numbers of replicas divide it, and the moments of so
/// many take little memory. The moments of columns depend on it.
const MAX_SECTIONS: usize = 240;

/// How the rows of a source are read: in sections of consecutive rows, and those in the blocks of the digest. A source whose rows
/// change in between is asked once.
pub(crate) struct Pass<'a, S> {
    set: &'static str,
    source: &'a S,
    wanted: &'a Wanted<'a>,
    layout: Layout,
    block_rows: usize,
    n_blocks: usize,
    pub(crate) n_sections: usize,
}

impl<'a, S: FeedRows> Pass<'a, S> {
    pub(crate) fn over(set: &'static str, source: &'a S, wanted: &'a Wanted<'a>) -> Self {
        let (layout, block_rows) = (source.layout(), RowDigest::block_rows(source));
        let n_blocks = layout.n_rows.div_ceil(block_rows);
        Self { set, source, wanted, layout, block_rows, n_blocks, n_sections: n_blocks.min(MAX_SECTIONS) }
    }

    /// The first block of a section; the number of blocks for that after the last.
    fn first_block(&self, section: usize) -> usize {
        section * self.n_blocks / self.n_sections.max(1)
    }

    fn rows(&self, blocks: Range<usize>) -> Range<usize> {
        let first_row = |block: usize| self.layout.n_rows.min(block * self.block_rows);
        first_row(blocks.start)..first_row(blocks.end)
    }
}

/// The mean and the squared deviations of all columns, and the first feature that is not finite as an error.
pub(crate) fn moments_of<S: FeedRows>(set: &'static str, source: &S) -> Result<Moments, Error> {
    let mut moments = Moments::new(source.n_cols());
    let wanted =
        Wanted { labels: false, first_wrong_label: &|_| None, moments: true, weights: false, columns: &[], batch_rows: 1 };
    let pass = Pass::over(set, source, &wanted);
    for section in (0..pass.n_sections).step_by(BLOCKS_AT_A_TIME) {
        let found = pass.read(section..pass.n_sections.min(section + BLOCKS_AT_A_TIME))?;
        match found.wrong.iter().find(|[kind, ..]| *kind == NON_FINITE) {
            Some(wrong) => return Err(pass.error(*wrong)),
            None => merge_sections(&mut moments, &found.moments),
        }
    }
    Ok(moments)
}

impl<S: FeedRows> Pass<'_, S> {
    /// Reads some sections, on all threads of the current rayon pool. Meanwhile the source verifies that its rows have not
    /// changed since they were written.
    pub(crate) fn checked(&self, which: Range<usize>) -> Result<Findings, Error> {
        let (intact, found) = rayon::join(|| self.source.check_intact(), || self.read(which));
        intact.map_err(|error| failed(self.set, &error))?;
        found
    }

    fn read(&self, which: Range<usize>) -> Result<Findings, Error> {
        let Self { source, wanted, .. } = self;
        let Layout { n_cols, has_weights, .. } = self.layout;
        let mut found = Findings::default();
        let n_moments = if wanted.moments { n_cols } else { 0 };
        let (mut block, end) = (self.first_block(which.start), self.first_block(which.end));
        let at_once = |block: usize| self.rows(block.min(end)..end.min(block + BLOCKS_AT_A_TIME));
        let mut memory = RowMemory::new(self.layout, at_once(block).len().max(1));
        let (mut section, mut moments) = (which.start, Moments::new(n_moments));
        source.hint(RowSelection::Range(at_once(block)), Hint::WillNeed);
        while block < end {
            // A source on a server reads the next rows meanwhile.
            source.hint(RowSelection::Range(at_once(block + BLOCKS_AT_A_TIME)), Hint::WillNeed);
            let rows = at_once(block);
            for (digest, of_block, wrong) in self.of_blocks(rows.clone(), &mut memory)? {
                found.blocks.push(digest);
                moments.merge(&of_block);
                found.note(&wrong);
                block += 1;
                if block == self.first_block(section + 1) {
                    let moments = std::mem::replace(&mut moments, Moments::new(n_moments));
                    if wanted.moments {
                        found.moments.push(moments.count);
                        found.moments.extend(moments.mean.iter().chain(&moments.squares));
                    }
                    section += 1;
                }
            }
            let read = memory.chunk(rows.start, rows.len());
            if wanted.labels {
                found.labels.extend_from_slice(read.labels);
            }
            found.weight_sums.extend(has_weights.then(|| read.weights.iter().map(|&weight| f64::from(weight)).sum::<f64>()));
            if wanted.weights {
                found.weights.extend_from_slice(read.weights);
            }
        }
        Ok(found)
    }

    /// The digest, the moments and the wrong values of each block of some rows, which are read into `memory`.
    fn of_blocks(
        &self,
        rows: Range<usize>,
        memory: &mut RowMemory<S::Feature>,
    ) -> Result<Vec<(u64, Moments, Vec<Wrong>)>, Error> {
        let &Self { set, source, wanted, ref layout, block_rows, .. } = self;
        let mut rest = memory.buffers(rows.len());
        let blocks: Vec<_> = rows
            .clone()
            .step_by(block_rows)
            .map(|start| {
                let block = start..rows.end.min(start + block_rows);
                let (into, others) = std::mem::take(&mut rest).split_at(block.len(), layout);
                rest = others;
                (block, into)
            })
            .collect();
        let read = blocks.into_par_iter().map(|(rows, mut into)| {
            source.gather(RowSelection::Range(rows.clone()), into.reborrow()).map_err(|error| failed(set, &error))?;
            let read = into.chunk(rows.start);
            let mut moments = Moments::new(if wanted.moments { layout.n_cols } else { 0 });
            if wanted.moments {
                moments.add(read.features);
            }
            Ok((RowDigest::of_block(&read), moments, wrong_in(&read, layout, wanted)))
        });
        read.collect()
    }

    /// What follows from the findings in all sections.
    pub(crate) fn survey(&self, found: Findings) -> Survey {
        let &Self { set, source, wanted, .. } = self;
        let first_of =
            |kinds: &[u32]| found.wrong.iter().filter(|[kind, ..]| kinds.contains(kind)).min_by_key(|[_, row, ..]| *row);
        let first = |kinds: &[u32]| first_of(kinds).map(|wrong| self.error(*wrong));
        let moments = wanted.moments.then(|| {
            let mut moments = Moments::new(source.n_cols());
            merge_sections(&mut moments, &found.moments);
            moments
        });
        let all_zero = !found.weight_sums.is_empty() && found.weight_sums.iter().sum::<f64>() == 0.0;
        let wrong_code_or_weight = first(&[CODE, WEIGHT, HEAVY]);
        Survey {
            digest: RowDigest::of_blocks(source, &found.blocks),
            non_finite: first(&[NON_FINITE]),
            wrong_code_or_weight: wrong_code_or_weight.or_else(|| all_zero.then(|| all_weights_are_zero(set, source.n_rows()))),
            moments,
            wrong_label: first_of(&[LABEL])
                .map(|&[_, row, label, value]| ([row as usize, label as usize], f32::from_bits(value))),
            labels: found.labels,
            weights: found.weights,
        }
    }

    fn error(&self, [kind, row, column, value]: Wrong) -> Error {
        let &Self { set, source, wanted, .. } = self;
        let (row, column) = (source_row(source, row as usize), column as usize);
        let number = f32::from_bits(value);
        match kind {
            NON_FINITE => non_finite(set, row, column, source.names().column(column), number),
            CODE => unknown_code(set, row, column, value, wanted.columns[column].n_codes),
            WEIGHT => weight_range(set, row, number),
            _ => heavy_weight(set, row, number, wanted.largest_weight(source.n_rows()), wanted.batch_rows),
        }
    }
}

impl Findings {
    /// Keeps the first value of each kind.
    pub(crate) fn note(&mut self, wrong: &[Wrong]) {
        for found in wrong {
            if self.wrong.iter().all(|wrong| wrong[0] != found[0]) {
                self.wrong.push(*found);
            }
        }
    }
}

/// Merges the moments of sections, one after the other, so that the result does not depend on which replica read them.
fn merge_sections(moments: &mut Moments, of_sections: &[f64]) {
    let n_cols = moments.mean.len();
    for of_section in of_sections.chunks_exact(1 + 2 * n_cols) {
        let (mean, squares) = of_section[1..].split_at(n_cols);
        moments.merge(&Moments { count: of_section[0], mean: mean.to_vec(), squares: squares.to_vec() });
    }
}

/// The first value of each kind in a block of rows.
fn wrong_in<T: FeedElement>(read: &Chunk<'_, T>, layout: &Layout, wanted: &Wanted<'_>) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    // Row numbers are `u32`.
    let mut add = |kind, row: usize, column: usize, value| wrong.push([kind, (read.first + row) as u32, column as u32, value]);
    if let Features::F32(x) = T::features(read.features)
        && let Some((at, found)) = first_non_finite(x)
    {
        add(NON_FINITE, at / layout.n_cols, at % layout.n_cols, found.to_bits());
    }
    // Codes are checked if there is a column for each.
    let codes = Some(read.categories).filter(|_| wanted.columns.len() == layout.n_categories);
    if let Some((row, column, code)) = codes.and_then(|codes| first_unknown_code(codes, wanted.columns)) {
        add(CODE, row, column, code);
    }
    if let Some(at) = (wanted.first_wrong_label)(read.labels) {
        add(LABEL, at / layout.n_labels, at % layout.n_labels, read.labels[at].to_bits());
    }
    if let Some(row) = read.weights.iter().position(|&weight| !is_weight(weight)) {
        add(WEIGHT, row, 0, read.weights[row].to_bits());
    }
    let largest = wanted.largest_weight(layout.n_rows);
    if let Some(row) = read.weights.iter().position(|&weight| is_weight(weight) && weight > largest) {
        add(HEAVY, row, 0, read.weights[row].to_bits());
    }
    wrong
}

impl Wanted<'_> {
    /// The largest weight of which the sum over a batch is finite.
    fn largest_weight(&self, n_rows: usize) -> f32 {
        f32::MAX / self.batch_rows.clamp(1, n_rows.max(1)) as f32
    }
}
