//! The twin of [`MapReduce`]: the elements are halved, dimension by dimension, down to leaves that are evaluated in the L1 cache,
//! and the results of the halves are merged.

use rayon::prelude::*;

use crate::aligned::AlignedFloats;
use crate::cpu::room::read_in_f32;
use crate::cpu::team::OnTeam;
use crate::elementwise::inputs_cpu::Input;
use crate::expr::{BLOCK_LEN, Evaluator, Expr, Operand, Scratch};
use crate::kernel::floats::Floats;
use crate::kernel::twin::TwinArgs;
use crate::map::layout::{Layout, Pattern};
use crate::map::map::{INPUTS, Map};
use crate::reduce::map_reduce::MapReduce;
use crate::reduce::reduce_op::Fold;
use crate::storage::element::{Element, widen};
use crate::vectorised::{inlined, vectorised};

/// The minimum number of elements for which halves are separate tasks.
const PARALLEL_LEN: usize = 64 * 1024;
/// The number of elements at which halving stops.
const LEAF_LEN: usize = 1024;
/// The same if the rows of a matrix are added; these are added a block at a time.
const ROWS_LEAF_LEN: usize = 16 * 1024;
/// The maximum number of rows that are added sequentially.
const MAX_ROWS: usize = 64;
/// The number of sums that are computed in parallel within a block.
const LANES: usize = 64;

pub(super) fn run(reduction: &MapReduce, layout: &Layout, args: &mut TwinArgs<'_>) {
    let inputs = INPUTS.iter().copied().zip(&reduction.inputs).zip(&layout.patterns);
    let inputs = inputs.map(|((name, input), pattern)| Input::new(args, name, input, pattern, &layout.sizes)).collect();
    let results = reduction.results_of_folds();
    let y: &mut [f32] = args.write("y");
    let job = Job::new(&reduction.elements(), inputs, reduction.op.fold(), layout);
    if results == [Expr::input(0)] {
        return job.run(&mut [y]);
    }
    let n_kept = reduction.n_kept();
    let mut folds = vec![vec![0.0; n_kept]; reduction.exprs.len()];
    job.run(&mut folds.iter_mut().map(|fold| &mut fold[..]).collect::<Vec<_>>());
    let folds: Vec<Operand<'_>> = folds.iter().map(|fold| Operand::Slice(fold)).collect();
    let mut y: Vec<&mut [f32]> = y.chunks_exact_mut(n_kept).collect();
    Evaluator::new(&results).run(&folds, &mut y);
}

/// Elements that one thread reduces: `n` indices of dimension `dim`, starting at element `start`.
struct Task {
    dim: usize,
    n: usize,
    start: usize,
    /// The results, for each expression.
    y: Vec<Vec<f32>>,
}

/// How the results of the tasks are combined.
enum Tree {
    Task(usize),
    /// Concatenated, the first `n_left` long.
    Kept {
        n_left: usize,
        halves: Box<[Tree; 2]>,
    },
    /// Element by element.
    Merged(Box<[Tree; 2]>),
}

/// A part of the folds of each expression.
type Folds<'a> = [&'a mut [f32]];

struct Job<'a> {
    evaluator: Evaluator,
    n_exprs: usize,
    /// Whether the only expression is its input, as long as the elements.
    is_identity: bool,
    inputs: Vec<Input<'a>>,
    fold: Fold,
    /// The sizes of the layout, at least one dimension.
    sizes: Vec<usize>,
    /// Whether each dimension is kept.
    is_kept: Vec<bool>,
    /// Elements within one index of each dimension, and elements of a result within it.
    n_inner: Vec<usize>,
    n_kept_inner: Vec<usize>,
}

impl<'a> Job<'a> {
    fn new(exprs: &[Expr], inputs: Vec<Input<'a>>, fold: Fold, layout: &Layout) -> Self {
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
        let is_identity = exprs == [Expr::input(0)] && matches!(inputs[..], [Input::All(_)]);
        let evaluator = Evaluator::new(exprs);
        Self { evaluator, n_exprs: exprs.len(), is_identity, inputs, fold, sizes, is_kept, n_inner, n_kept_inner }
    }

    /// Reduces all elements into `y`.
    fn run(&self, y: &mut Folds<'_>) {
        let mut tasks = Vec::new();
        let tree = self.cut(0, self.sizes[0], 0, &mut tasks);
        if tasks.len() == 1 {
            return self.reduce(0, self.sizes[0], 0, y, &mut self.memory());
        }
        let run = |memory: &mut Memory, task: &mut Task| {
            let mut y: Vec<&mut [f32]> = task.y.iter_mut().map(|y| &mut y[..]).collect();
            self.reduce(task.dim, task.n, task.start, &mut y, memory);
        };
        tasks.par_iter_mut().for_each_init_on_team(|| self.memory(), run);
        self.merge(&tree, &tasks, y);
    }

    /// The tree of halves above the tasks that go to other threads.
    fn cut(&self, dim: usize, n: usize, start: usize, tasks: &mut Vec<Task>) -> Tree {
        let n_elements = n * self.n_inner[dim];
        if n_elements < PARALLEL_LEN || self.are_rows(dim, n) {
            let n_results = if self.is_kept[dim] { n } else { 1 } * self.n_kept_inner[dim];
            tasks.push(Task { dim, n, start, y: vec![vec![0.0; n_results]; self.n_exprs] });
            return Tree::Task(tasks.len() - 1);
        }
        if n == 1 {
            return self.cut(dim + 1, self.sizes[dim + 1], start, tasks);
        }
        let (n_left, n_right) = (n.div_ceil(2), n / 2);
        let left = self.cut(dim, n_left, start, tasks);
        let right = self.cut(dim, n_right, start + n_left * self.n_inner[dim], tasks);
        let halves = Box::new([left, right]);
        if self.is_kept[dim] { Tree::Kept { n_left: n_left * self.n_kept_inner[dim], halves } } else { Tree::Merged(halves) }
    }

    /// `y` = the results of the tasks, merged along the tree.
    fn merge(&self, tree: &Tree, tasks: &[Task], y: &mut Folds<'_>) {
        match tree {
            Tree::Task(i) => y.iter_mut().zip(&tasks[*i].y).for_each(|(y, results)| y.copy_from_slice(results)),
            Tree::Kept { n_left, halves: of } => {
                let (mut left, mut right): (Vec<_>, Vec<_>) = y.iter_mut().map(|y| y.split_at_mut(*n_left)).unzip();
                self.merge(&of[0], tasks, &mut left);
                self.merge(&of[1], tasks, &mut right);
            }
            Tree::Merged(of) => {
                self.merge(&of[0], tasks, y);
                let mut right: Vec<Vec<f32>> = y.iter().map(|y| vec![0.0; y.len()]).collect();
                self.merge(&of[1], tasks, &mut right.iter_mut().map(|right| &mut right[..]).collect::<Vec<_>>());
                y.iter_mut().zip(&right).for_each(|(y, right)| self.fold.merge(y, right));
            }
        }
    }

    /// Whether `n` indices of dimension `dim` are a few long rows whose elements are all kept.
    fn are_rows(&self, dim: usize, n: usize) -> bool {
        !self.is_kept[dim] && n <= MAX_ROWS && self.n_kept_inner[dim] == self.n_inner[dim]
    }

    /// Reduces `n` indices of dimension `dim`, starting at element `start`, into `y`.
    fn reduce(&self, dim: usize, n: usize, start: usize, y: &mut Folds<'_>, memory: &mut Memory) {
        let n_elements = n * self.n_inner[dim];
        if self.has_short_rows(dim) && n_elements <= ROWS_LEAF_LEN {
            return self.reduce_short_rows(n_elements, start, y, memory);
        }
        if n_elements <= LEAF_LEN {
            return self.reduce_block(dim, n, start, y, memory);
        }
        if self.are_rows(dim, n) {
            return self.reduce_rows(dim, n, start, y, memory);
        }
        if n == 1 {
            return self.reduce(dim + 1, self.sizes[dim + 1], start, y, memory);
        }
        let (n_left, n_right) = (n.div_ceil(2), n / 2);
        let middle = start + n_left * self.n_inner[dim];
        let mut halves = |left: &mut Folds<'_>, right: &mut Folds<'_>| {
            self.reduce(dim, n_left, start, left, memory);
            self.reduce(dim, n_right, middle, right, memory);
        };
        if self.is_kept[dim] {
            let at = n_left * self.n_kept_inner[dim];
            let (mut left, mut right): (Vec<_>, Vec<_>) = y.iter_mut().map(|y| y.split_at_mut(at)).unzip();
            halves(&mut left, &mut right);
        } else {
            let mut merged: Vec<Vec<f32>> = y.iter().map(|y| vec![0.0; y.len()]).collect();
            halves(y, &mut merged.iter_mut().map(|merged| &mut merged[..]).collect::<Vec<_>>());
            y.iter_mut().zip(&merged).for_each(|(y, merged)| self.fold.merge(y, merged));
        }
    }

    fn memory(&self) -> Memory {
        Memory {
            scratch: self.evaluator.scratch(),
            inputs: self.inputs.iter().map(Input::buffer).collect(),
            values: (0..if self.plain().is_some() { 0 } else { self.n_exprs }).map(|_| AlignedFloats::new(LEAF_LEN)).collect(),
        }
    }

    /// The values of the only input, if only that is reduced and they are in f32, so that no evaluation is needed.
    fn plain(&self) -> Option<&[f32]> {
        if let Some(Floats::F32(x)) = self.stored() { Some(x) } else { None }
    }

    /// The only input, if only that is reduced.
    fn stored(&self) -> Option<Floats<'_>> {
        match self.inputs[..] {
            [Input::All(x)] if self.is_identity => Some(x),
            _ => None,
        }
    }

    /// Reduces at most [`LEAF_LEN`] elements, in any number of dimensions.
    fn reduce_block(&self, dim: usize, n: usize, start: usize, y: &mut Folds<'_>, memory: &mut Memory) {
        let n_elements = n * self.n_inner[dim];
        if let Some(x) = self.plain() {
            return self.fold_block(dim, n, &x[start..start + n_elements], y[0]);
        }
        let mut values = std::mem::take(&mut memory.values);
        for block in (0..n_elements).step_by(BLOCK_LEN) {
            let end = (block + BLOCK_LEN).min(n_elements);
            let mut values: Vec<&mut [f32]> = values.iter_mut().map(|values| &mut values[block..end]).collect();
            self.evaluate(start + block, &mut values, memory);
        }
        y.iter_mut().zip(&values).for_each(|(y, values)| self.fold_block(dim, n, &values[..n_elements], y));
        memory.values = values;
    }

    /// Whether the indices of dimension `dim` are rows to be added, several of which fit a block.
    fn has_short_rows(&self, dim: usize) -> bool {
        dim + 2 == self.sizes.len() && !self.is_kept[dim] && self.is_kept[dim + 1] && 2 * self.sizes[dim + 1] <= BLOCK_LEN
    }

    /// Reduces at most [`ROWS_LEAF_LEN`] elements that are such rows.
    fn reduce_short_rows(&self, n_elements: usize, start: usize, y: &mut Folds<'_>, memory: &mut Memory) {
        let row_len = y[0].len();
        let range = start..start + n_elements;
        match self.stored() {
            Some(Floats::F32(x)) => return self.fold.rows(&x[range], row_len, y[0]),
            Some(Floats::Bf16(x)) => return self.fold.rows(&x[range], row_len, y[0]),
            // Slices of f16 are converted faster than single elements.
            Some(Floats::F16(x)) => return read_in_f32(&x[range], |x| self.fold.rows(x, row_len, y[0])),
            None => {}
        }
        let mut of_block = [0.0; BLOCK_LEN / 2];
        let mut add = |is_first: bool, values: &[f32], y: &mut [f32]| {
            if is_first {
                return self.fold.rows(values, row_len, y);
            }
            self.fold.rows(values, row_len, &mut of_block[..row_len]);
            self.fold.merge(y, &of_block[..row_len]);
        };
        let mut values = std::mem::take(&mut memory.values);
        let block_len = BLOCK_LEN / row_len * row_len;
        for block in (0..n_elements).step_by(block_len) {
            let end = (block + block_len).min(n_elements);
            let mut values: Vec<&mut [f32]> = values.iter_mut().map(|values| &mut values[..end - block]).collect();
            self.evaluate(start + block, &mut values, memory);
            y.iter_mut().zip(&values).for_each(|(y, values)| add(block == 0, values, y));
        }
        memory.values = values;
    }

    /// Folds the values of `n` indices of dimension `dim` into `y`.
    fn fold_block(&self, dim: usize, n: usize, values: &[f32], y: &mut [f32]) {
        let last = self.sizes.len() - 1;
        let row_len = if dim == last { n } else { self.sizes[last] };
        if self.is_kept[last] && y.len() == row_len {
            return self.fold.rows(values, row_len, y);
        }
        y.fill(self.fold.identity());
        for (row, values) in values.chunks_exact(row_len).enumerate() {
            let at = self.result_of_row(dim, row);
            if self.is_kept[last] {
                self.fold.merge(&mut y[at..at + row_len], values);
            } else {
                y[at] = self.fold.of(y[at], self.fold.all(values));
            }
        }
    }

    /// The element of a result for the first element of row `row` of the innermost dimension, counted within dimension `dim`.
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

    /// Reduces at most [`MAX_ROWS`] rows of elements that are all kept, a range of columns at a time.
    fn reduce_rows(&self, dim: usize, n: usize, start: usize, y: &mut Folds<'_>, memory: &mut Memory) {
        let n_cols = self.n_inner[dim];
        let cols_per_task = (PARALLEL_LEN / n).next_multiple_of(BLOCK_LEN);
        if n_cols < 2 * cols_per_task {
            return self.reduce_columns([n, n_cols], start, y, memory);
        }
        let mut tasks: Vec<Vec<&mut [f32]>> = (0..n_cols.div_ceil(cols_per_task)).map(|_| Vec::new()).collect();
        for y in y {
            tasks.iter_mut().zip(y.chunks_mut(cols_per_task)).for_each(|(task, y)| task.push(y));
        }
        tasks.into_par_iter().enumerate().for_each_on_team(|(i, mut y)| {
            self.reduce_columns([n, n_cols], start + i * cols_per_task, &mut y, &mut self.memory());
        });
    }

    /// The rows of `n` by `n_cols` elements, reduced for the columns of `y`; the first is element `start`.
    fn reduce_columns(&self, [n, n_cols]: [usize; 2], start: usize, y: &mut Folds<'_>, memory: &mut Memory) {
        if let Some(x) = self.plain() {
            let end = start + (n - 1) * n_cols + y[0].len();
            return self.fold.rows(&x[start..end], n_cols, y[0]);
        }
        let mut values = std::mem::take(&mut memory.values);
        let n_own_cols = y[0].len();
        for block in (0..n_own_cols).step_by(BLOCK_LEN) {
            let end = (block + BLOCK_LEN).min(n_own_cols);
            let mut y: Vec<&mut [f32]> = y.iter_mut().map(|y| &mut y[block..end]).collect();
            let mut values: Vec<&mut [f32]> = values.iter_mut().map(|values| &mut values[..end - block]).collect();
            self.evaluate(start + block, &mut y, memory);
            for row in 1..n {
                self.evaluate(start + row * n_cols + block, &mut values, memory);
                y.iter_mut().zip(&values).for_each(|(y, values)| self.fold.merge(y, values));
            }
        }
        memory.values = values;
    }

    /// The expressions for at most [`BLOCK_LEN`] elements from `start` on.
    fn evaluate(&self, start: usize, values: &mut [&mut [f32]], memory: &mut Memory) {
        let len = values[0].len();
        if let Some(x) = self.stored() {
            return x.widen_into(start..start + len, values[0]);
        }
        let Memory { scratch, inputs: buffers, .. } = memory;
        let mut operands = [Operand::Splat(0.0); Map::MAX_ARGS];
        for ((operand, input), buffer) in operands.iter_mut().zip(&self.inputs).zip(buffers) {
            let buffer_len = buffer.len().min(len);
            *operand = input.operand(start..start + len, &self.sizes, &mut buffer[..buffer_len]);
        }
        self.evaluator.run_block(&operands[..self.inputs.len()], values, scratch);
    }
}

/// The working memory of a thread.
struct Memory {
    scratch: Scratch,
    /// For inputs that are not stored in f32 in the order of the elements.
    inputs: Vec<AlignedFloats>,
    /// The values of a leaf, for each expression.
    values: Vec<AlignedFloats>,
}

impl Fold {
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
        vectorised(inlined!(|| match self {
            Self::Sum => y.iter_mut().zip(values).for_each(|(y, v)| *y += v),
            Self::Max => y.iter_mut().zip(values).for_each(|(y, v)| *y = Self::Max.of(*y, *v)),
            Self::Min => y.iter_mut().zip(values).for_each(|(y, v)| *y = Self::Min.of(*y, *v)),
        }));
    }

    /// `y` = the sum of the rows of `values`, each `row_len` apart and at least as long as `y`, in order.
    fn rows<T: Element>(self, values: &[T], row_len: usize, y: &mut [f32]) {
        vectorised(inlined!(|| match self {
            Self::Sum => fold_rows(values, row_len, y, |a, b| a + b),
            Self::Max => fold_rows(values, row_len, y, |a, b| Self::Max.of(a, b)),
            Self::Min => fold_rows(values, row_len, y, |a, b| Self::Min.of(a, b)),
        }));
    }

    /// The fold of a block: [`LANES`] chains, then a tree.
    fn all(self, values: &[f32]) -> f32 {
        if values.len() < LANES {
            return values.iter().fold(self.identity(), |a, b| self.of(a, *b));
        }
        let mut lanes = [self.identity(); LANES];
        vectorised(inlined!(|| {
            // A local copy, which stays in registers.
            let mut sums = lanes;
            let (chunks, rest) = values.as_chunks::<LANES>();
            match self {
                Self::Sum => chunks.iter().for_each(|chunk| fold_lanes(&mut sums, chunk, |a, b| a + b)),
                Self::Max => chunks.iter().for_each(|chunk| fold_lanes(&mut sums, chunk, |a, b| Self::Max.of(a, b))),
                Self::Min => chunks.iter().for_each(|chunk| fold_lanes(&mut sums, chunk, |a, b| Self::Min.of(a, b))),
            }
            sums.iter_mut().zip(rest).for_each(|(lane, v)| *lane = self.of(*lane, *v));
            lanes = sums;
        }));
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
fn fold_rows<T: Element>(values: &[T], row_len: usize, y: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    if y.len() == row_len {
        let n_rows = values.len() / row_len;
        if LANES.is_multiple_of(row_len) && n_rows * row_len >= LANES {
            return fold_rows_together::<T, LANES>(values, y, f);
        }
        // Such as 24 or 48 columns.
        if (3 * LANES).is_multiple_of(row_len) && n_rows * row_len >= 3 * LANES {
            return fold_rows_together::<T, { 3 * LANES }>(values, y, f);
        }
    }
    // Several columns at a time, whose sums stay in registers.
    let (wide, narrow) = y.as_chunks_mut::<LANES>();
    let n_wide = wide.len() * LANES;
    for (i, y) in wide.iter_mut().enumerate() {
        let columns = &values[i * LANES..];
        let others = columns.get(row_len..).unwrap_or_default();
        let mut lanes = widened::<T, LANES>(columns.first_chunk().expect("as many columns"));
        for row in others.chunks(row_len).filter_map(<[T]>::first_chunk) {
            fold_lanes(&mut lanes, row, &f);
        }
        *y = lanes;
    }
    if !narrow.is_empty() {
        let columns = &values[n_wide..];
        widen(&columns[..narrow.len()], narrow);
        for row in columns.get(row_len..).unwrap_or_default().chunks(row_len) {
            narrow.iter_mut().zip(row).for_each(|(y, v)| *y = f(*y, v.widen()));
        }
    }
}

/// The same for rows as long as `y`, of which `N` elements at a time are whole rows, so that no sum waits for the previous one.
#[inline(always)]
fn fold_rows_together<T: Element, const N: usize>(values: &[T], y: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    let (chunks, rest) = values.as_chunks::<N>();
    let mut lanes = widened(&chunks[0]);
    chunks[1..].iter().for_each(|chunk| fold_lanes(&mut lanes, chunk, &f));
    let (first, others) = lanes.split_at(y.len());
    y.copy_from_slice(first);
    for row in others.chunks_exact(y.len()) {
        y.iter_mut().zip(row).for_each(|(y, v)| *y = f(*y, *v));
    }
    for row in rest.chunks_exact(y.len()) {
        y.iter_mut().zip(row).for_each(|(y, v)| *y = f(*y, v.widen()));
    }
}

/// By value, so that the lanes stay in registers.
#[inline(always)]
fn widened<T: Element, const N: usize>(values: &[T; N]) -> [f32; N] {
    let mut lanes = [0.0; N];
    for (lane, v) in lanes.iter_mut().zip(values) {
        *lane = v.widen();
    }
    lanes
}

#[inline(always)]
fn fold_lanes<T: Element, const N: usize>(lanes: &mut [f32; N], values: &[T; N], f: impl Fn(f32, f32) -> f32) {
    for (lane, v) in lanes.iter_mut().zip(values) {
        *lane = f(*lane, v.widen());
    }
}
