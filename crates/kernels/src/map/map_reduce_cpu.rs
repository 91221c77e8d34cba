//! The twin of [`MapReduce`]: the elements are halved, dimension by dimension, down to leaves that are evaluated in the first-level cache, and
//! the results of the halves are merged.

use super::inputs_cpu::Input;
use super::layout::{Layout, Pattern};
use super::map::Map;
use super::map_reduce::{Fold, MapReduce};
use crate::TwinArgs;
use crate::core::half::Floats;
use crate::core::vectorised::vectorised;
use crate::expr::{BLOCK_LEN, Evaluator, Operand, Scratch};

/// Elements from which halves go to other threads.
const PARALLEL_LEN: usize = 64 * 1024;
/// Elements down to which the halves are cut.
const LEAF_LEN: usize = 1024;
/// The most rows that are added one after the other.
const MAX_ROWS: usize = 64;
/// Sums that are taken beside one another within a block.
const LANES: usize = 16;

pub(super) fn run(reduction: &MapReduce, layout: &Layout, args: &mut TwinArgs<'_>) {
    let inputs = reduction.inputs.iter().zip(&layout.patterns).enumerate();
    let inputs =
        inputs.map(|(i, (input, pattern))| Input::new(Floats::of(args, i, input.dtype), pattern, &layout.sizes)).collect();
    let (expr, fold, result) = reduction.parts();
    let y: &mut [f32] = args.write(reduction.inputs.len());
    let job = Job::new(Evaluator::new(&[expr]), inputs, fold, layout);
    job.reduce(0, job.sizes[0], 0, y, &mut job.memory());
    Evaluator::new(&[result]).run_in_place(y, &[]);
}

struct Job<'a> {
    evaluator: Evaluator,
    inputs: Vec<Input<'a>>,
    fold: Fold,
    /// Of the layout, at least one dimension.
    sizes: Vec<usize>,
    /// Whether each dimension is kept.
    is_kept: Vec<bool>,
    /// Elements within one index of each dimension, and elements of the result within it.
    n_inner: Vec<usize>,
    n_kept_inner: Vec<usize>,
}

impl<'a> Job<'a> {
    fn new(evaluator: Evaluator, inputs: Vec<Input<'a>>, fold: Fold, layout: &Layout) -> Self {
        let mut sizes = layout.sizes.clone();
        let mut is_kept: Vec<bool> = match layout.patterns.last() {
            Some(Pattern::Strided { strides, .. }) => strides.iter().map(|stride| *stride != 0).collect(),
            Some(Pattern::All) => vec![true; sizes.len()],
            _ => vec![false; sizes.len()],
        };
        if sizes.is_empty() {
            sizes.push(1);
            is_kept.push(true);
        }
        let product = |from: usize, only_kept: bool| -> usize {
            (from..sizes.len()).filter(|&dim| is_kept[dim] || !only_kept).map(|dim| sizes[dim]).product()
        };
        let n_inner = (1..=sizes.len()).map(|dim| product(dim, false)).collect();
        let n_kept_inner = (1..=sizes.len()).map(|dim| product(dim, true)).collect();
        Self { evaluator, inputs, fold, sizes, is_kept, n_inner, n_kept_inner }
    }

    /// Reduces `n` indices of dimension `dim`, from element `start` on, into `y`.
    fn reduce(&self, dim: usize, n: usize, start: usize, y: &mut [f32], memory: &mut Memory) {
        let n_elements = n * self.n_inner[dim];
        if n_elements <= LEAF_LEN {
            y.fill(self.fold.identity());
            return self.reduce_block(dim, n, start, y, memory);
        }
        if !self.is_kept[dim] && n <= MAX_ROWS && self.n_kept_inner[dim] == self.n_inner[dim] {
            return self.reduce_rows(dim, n, start, y, memory);
        }
        if n == 1 {
            return self.reduce(dim + 1, self.sizes[dim + 1], start, y, memory);
        }
        let (n_left, n_right) = (n.div_ceil(2), n / 2);
        let middle = start + n_left * self.n_inner[dim];
        let mut merged = Vec::new();
        let (left, right) = if self.is_kept[dim] {
            y.split_at_mut(n_left * self.n_kept_inner[dim])
        } else {
            merged.resize(y.len(), 0.0);
            (&mut *y, &mut merged[..])
        };
        if n_elements >= PARALLEL_LEN {
            rayon::join(
                || self.reduce(dim, n_left, start, left, memory),
                || self.reduce(dim, n_right, middle, right, &mut self.memory()),
            );
        } else {
            self.reduce(dim, n_left, start, left, memory);
            self.reduce(dim, n_right, middle, right, memory);
        }
        if !self.is_kept[dim] {
            self.fold.merge(y, &merged);
        }
    }

    fn memory(&self) -> Memory {
        Memory { scratch: self.evaluator.scratch(), inputs: self.inputs.iter().map(Input::buffer).collect() }
    }

    /// At most [`LEAF_LEN`] elements, whatever their dimensions.
    fn reduce_block(&self, dim: usize, n: usize, start: usize, y: &mut [f32], memory: &mut Memory) {
        let mut values = [0.0; LEAF_LEN];
        let values = &mut values[..n * self.n_inner[dim]];
        for (block, values) in values.chunks_mut(BLOCK_LEN).enumerate() {
            self.evaluate(start + block * BLOCK_LEN, values, memory);
        }
        let last = self.sizes.len() - 1;
        let row_len = if dim == last { n } else { self.sizes[last] };
        for (row, values) in values.chunks_exact(row_len).enumerate() {
            let at = self.result_of_row(dim, row);
            if self.is_kept[last] {
                self.fold.merge(&mut y[at..at + row_len], values);
            } else {
                y[at] = self.fold.of(y[at], self.fold.all(values));
            }
        }
    }

    /// The element of the result for the first element of row `row` of the innermost dimension, counted within dimension `dim`.
    fn result_of_row(&self, dim: usize, row: usize) -> usize {
        let last = self.sizes.len() - 1;
        let (mut rest, mut at) = (row, 0);
        for of in (dim..last).rev() {
            let index = if of == dim { rest } else { rest % self.sizes[of] };
            at += if self.is_kept[of] { index * self.n_kept_inner[of] } else { 0 };
            rest /= self.sizes[of];
        }
        at
    }

    /// At most [`MAX_ROWS`] rows of elements that are all kept, block by block of their columns.
    fn reduce_rows(&self, dim: usize, n: usize, start: usize, y: &mut [f32], memory: &mut Memory) {
        let n_cols = self.n_inner[dim];
        let mut values = [0.0; BLOCK_LEN];
        for (block, y) in y.chunks_mut(BLOCK_LEN).enumerate() {
            self.evaluate(start + block * BLOCK_LEN, y, memory);
            let values = &mut values[..y.len()];
            for row in 1..n {
                self.evaluate(start + row * n_cols + block * BLOCK_LEN, values, memory);
                self.fold.merge(y, values);
            }
        }
    }

    /// The expression for at most [`BLOCK_LEN`] elements from `start` on.
    fn evaluate(&self, start: usize, values: &mut [f32], memory: &mut Memory) {
        let Memory { scratch, inputs: buffers } = memory;
        let mut operands = [Operand::Splat(0.0); Map::MAX_ARGS];
        for ((operand, input), buffer) in operands.iter_mut().zip(&self.inputs).zip(buffers) {
            let buffer_len = buffer.len().min(values.len());
            *operand = input.operand(start..start + values.len(), &self.sizes, &mut buffer[..buffer_len]);
        }
        self.evaluator.run_block(&operands[..self.inputs.len()], &mut [values], scratch);
    }
}

/// What a thread works in.
struct Memory {
    scratch: Scratch,
    /// For inputs that do not lie in f32 as they are needed.
    inputs: Vec<Vec<f32>>,
}

impl Fold {
    const fn identity(self) -> f32 {
        match self {
            Self::Sum => 0.0,
            Self::Max => f32::NEG_INFINITY,
            Self::Min => f32::INFINITY,
        }
    }

    #[inline(always)]
    fn of(self, a: f32, b: f32) -> f32 {
        match self {
            Self::Sum => a + b,
            Self::Max => {
                if a > b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Self::Min => {
                if a < b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
        }
    }

    /// `y = y ∘ values`, element by element.
    fn merge(self, y: &mut [f32], values: &[f32]) {
        vectorised(
            #[inline(always)]
            || match self {
                Self::Sum => y.iter_mut().zip(values).for_each(|(y, v)| *y += v),
                Self::Max => y.iter_mut().zip(values).for_each(|(y, v)| *y = Self::Max.of(*y, *v)),
                Self::Min => y.iter_mut().zip(values).for_each(|(y, v)| *y = Self::Min.of(*y, *v)),
            },
        );
    }

    /// All of a block: [`LANES`] chains, then a tree.
    fn all(self, values: &[f32]) -> f32 {
        if values.len() < LANES {
            return values.iter().fold(self.identity(), |a, b| self.of(a, *b));
        }
        let mut lanes = [self.identity(); LANES];
        vectorised(
            #[inline(always)]
            || {
                let (chunks, rest) = values.as_chunks::<LANES>();
                match self {
                    Self::Sum => chunks.iter().for_each(|chunk| fold_lanes(&mut lanes, chunk, |a, b| a + b)),
                    Self::Max => chunks.iter().for_each(|chunk| fold_lanes(&mut lanes, chunk, |a, b| Self::Max.of(a, b))),
                    Self::Min => chunks.iter().for_each(|chunk| fold_lanes(&mut lanes, chunk, |a, b| Self::Min.of(a, b))),
                }
                lanes.iter_mut().zip(rest).for_each(|(lane, v)| *lane = self.of(*lane, *v));
            },
        );
        let mut n = LANES;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                lanes[i] = self.of(lanes[i], lanes[i + n]);
            }
        }
        lanes[0]
    }
}

#[inline(always)]
fn fold_lanes(lanes: &mut [f32; LANES], values: &[f32; LANES], f: impl Fn(f32, f32) -> f32) {
    for (lane, v) in lanes.iter_mut().zip(values) {
        *lane = f(*lane, *v);
    }
}
