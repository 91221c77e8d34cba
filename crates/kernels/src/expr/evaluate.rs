//! Evaluation on the CPU: a block of elements at a time, which stays in the first-level cache, with the widest vectors the processor has.

use pulp::{Arch, Simd, WithSimd};

use super::Expr;
use super::loops::{run_binary, run_choose, run_copy, run_unary};
use super::op::Unary;
use super::tape::{Action, Instruction, Source, Tape, Target};

/// Elements of a block: one operation after the other goes over it in the first-level cache. The processor prefetches about as much of the next block meanwhile. With 1024
/// elements, chains over arrays in memory take twice as long, since each block then starts by waiting for memory.
pub(crate) const BLOCK_LEN: usize = 256;

/// Expressions made ready for evaluation on the CPU; what they share is computed once.
///
/// Results depend on an element's inputs only, not on the block that it is in or on the vector width.
///
/// # Examples
/// ```
/// use brisk_kernels::expr::{Evaluator, Expr, Operand};
///
/// let (x, bias) = (Expr::input(0), Expr::input(1));
/// let mut y = [0.0; 3];
/// Evaluator::new(&[(x + bias).relu()]).run(&[Operand::Slice(&[-2.0, 0.5, 3.0]), Operand::Splat(1.0)], &mut [&mut y]);
/// assert_eq!(y, [0.0, 1.5, 4.0]);
/// ```
#[derive(Debug, Clone)]
pub struct Evaluator {
    tape: Tape,
    n_inputs: usize,
    n_outputs: usize,
}

/// An input of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand<'a> {
    /// A value for each element.
    Slice(&'a [f32]),
    /// The same for all.
    Splat(f32),
}

impl Operand<'_> {
    /// Element `i`.
    pub(super) fn at(&self, i: usize) -> f32 {
        match self {
            Self::Slice(values) => values[i],
            Self::Splat(value) => *value,
        }
    }

    /// The elements of `range`.
    fn slice(&self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::Slice(values) => Self::Slice(&values[range]),
            Self::Splat(value) => Self::Splat(*value),
        }
    }
}

/// Memory for intermediate values.
#[derive(Debug)]
pub(crate) struct Scratch {
    slots: Vec<Vec<f32>>,
}

impl Evaluator {
    /// Output `i` will be `exprs[i]`.
    pub fn new(exprs: &[Expr]) -> Self {
        let n_inputs = exprs.iter().map(Expr::n_inputs).max().unwrap_or(0);
        Self { tape: Tape::new(exprs), n_inputs, n_outputs: exprs.len() }
    }

    /// Computes all elements, on the current thread.
    ///
    /// # Panics
    /// If there are fewer inputs than the expressions read, another number of outputs than expressions, or slices that differ in length.
    pub fn run(&self, inputs: &[Operand<'_>], outputs: &mut [&mut [f32]]) {
        let n = outputs.first().map_or(0, |output| output.len());
        assert!(inputs.len() >= self.n_inputs, "got {} inputs, expected {}", inputs.len(), self.n_inputs);
        assert_eq!(outputs.len(), self.n_outputs, "outputs, expected one for each expression");
        assert!(outputs.iter().all(|output| output.len() == n), "outputs differ in length");
        for (i, input) in inputs.iter().enumerate() {
            let fits = matches!(input, Operand::Splat(_)) || matches!(input, Operand::Slice(values) if values.len() == n);
            assert!(fits, "input {i} is not of the {n} elements of the outputs");
        }
        let mut scratch = self.scratch();
        for start in (0..n).step_by(BLOCK_LEN) {
            let range = start..(start + BLOCK_LEN).min(n);
            let inputs: Vec<_> = inputs.iter().map(|input| input.slice(range.clone())).collect();
            let mut outputs: Vec<&mut [f32]> = outputs.iter_mut().map(|output| &mut output[range.clone()]).collect();
            self.run_block(&inputs, &mut outputs, &mut scratch);
        }
    }

    /// Replaces `y` by the expression whose input 0 is the old `y` and whose further inputs are `others`, on the current thread: the epilogue of a kernel that
    /// has just written `y`.
    ///
    /// # Panics
    /// If there is not exactly one expression, if there are fewer inputs than it reads, or slices that differ in length.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::expr::{Evaluator, Expr, Operand};
    ///
    /// let (product, bias) = (Expr::input(0), Expr::input(1));
    /// let mut y = [-2.0, 0.5, 3.0];
    /// Evaluator::new(&[(product + bias).relu()]).run_in_place(&mut y, &[Operand::Slice(&[1.0, 1.0, -1.0])]);
    /// assert_eq!(y, [0.0, 1.5, 2.0]);
    /// ```
    pub fn run_in_place(&self, y: &mut [f32], others: &[Operand<'_>]) {
        assert!(others.len() + 1 >= self.n_inputs, "got {} inputs, expected {}", others.len() + 1, self.n_inputs);
        assert_eq!(self.n_outputs, 1, "expressions, expected the one that `y` becomes");
        let mut scratch = self.scratch();
        let mut before = [0.0; BLOCK_LEN];
        for start in (0..y.len()).step_by(BLOCK_LEN) {
            let range = start..(start + BLOCK_LEN).min(y.len());
            let y = &mut y[range.clone()];
            let before = &mut before[..y.len()];
            before.copy_from_slice(y);
            let others = others.iter().map(|input| input.slice(range.clone()));
            let inputs: Vec<_> = std::iter::once(Operand::Slice(before)).chain(others).collect();
            self.run_block(&inputs, &mut [y], &mut scratch);
        }
    }

    /// Whether no operation reads the result of another, so that a block may be of any length.
    pub(crate) const fn keeps_nothing(&self) -> bool {
        self.tape.n_slots == 0
    }

    /// Memory for [`run_block`](Self::run_block).
    pub(crate) fn scratch(&self) -> Scratch {
        Scratch { slots: vec![vec![0.0; BLOCK_LEN]; self.tape.n_slots] }
    }

    /// Computes up to [`BLOCK_LEN`] elements, or any number if the tape [keeps nothing](Self::keeps_nothing).
    pub(crate) fn run_block(&self, inputs: &[Operand<'_>], outputs: &mut [&mut [f32]], scratch: &mut Scratch) {
        let len = outputs.first().map_or(0, |output| output.len());
        Arch::new().dispatch(Block { instructions: &self.tape.instructions, inputs, outputs, slots: &mut scratch.slots, len });
    }
}

/// `y = function(y)`, with the bits that an [`Evaluator`] gives.
pub(crate) fn apply(function: Unary, y: &mut [f32]) {
    Arch::new().dispatch(Apply { function, y });
}

struct Apply<'a> {
    function: Unary,
    y: &'a mut [f32],
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut before = [0.0; BLOCK_LEN];
        for y in self.y.chunks_mut(BLOCK_LEN) {
            let before = &mut before[..y.len()];
            before.copy_from_slice(y);
            run_unary(simd, self.function, Operand::Slice(before), y);
        }
    }
}

struct Block<'a, 'b> {
    instructions: &'a [Instruction],
    inputs: &'a [Operand<'a>],
    outputs: &'a mut [&'b mut [f32]],
    slots: &'a mut [Vec<f32>],
    len: usize,
}

impl WithSimd for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Block { instructions, inputs, outputs, slots, len } = self;
        for instruction in instructions {
            match instruction.target {
                Target::Output(output) => run(simd, instruction.action, inputs, slots, outputs[output]),
                Target::Slot(slot) => {
                    // Out of the others' way while it is written; no instruction reads what it writes.
                    let mut values = std::mem::take(&mut slots[slot]);
                    run(simd, instruction.action, inputs, slots, &mut values[..len]);
                    slots[slot] = values;
                }
            }
        }
    }
}

#[inline(always)]
fn run<S: Simd>(simd: S, action: Action, inputs: &[Operand<'_>], slots: &[Vec<f32>], y: &mut [f32]) {
    let n = y.len();
    let operand = |source: Source| match source {
        Source::Input(i) => inputs[i],
        Source::Slot(i) => Operand::Slice(&slots[i][..n]),
        Source::Constant(value) => Operand::Splat(value),
    };
    match action {
        Action::Copy(a) => run_copy(operand(a), y),
        Action::Unary(kind, a) => run_unary(simd, kind, operand(a), y),
        Action::Binary(kind, a, b) => run_binary(simd, kind, operand(a), operand(b), y),
        Action::Choose(kind, [a, b, c, d]) => run_choose(simd, kind, [operand(a), operand(b), operand(c), operand(d)], y),
    }
}
