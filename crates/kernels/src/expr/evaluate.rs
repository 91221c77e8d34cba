//! Evaluation on the CPU, with the widest vectors that the processor has. It processes a block of elements at a time, which stays
//! in the L1 cache, and within it a chain of operations at a time, whose values stay in registers.

use std::cell::Cell;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::chains::{Chain, Tiles, in_tiles};
use super::instruction::{Action, Source, Target};
use super::loops::{GeluSlope, run_binary, run_choose, run_copy, unary};
use super::operand::{BLOCK_LEN, Operand, Slot};
use super::tape::Tape;
use super::unary::Unary;
use super::{Expr, vector};

/// Elements of a block that is often shorter, and whose memory is cleared in each call.
pub(crate) const SHORT_BLOCK_LEN: usize = 256;

/// Expressions that are prepared for evaluation on the CPU; common subexpressions are computed once.
///
/// The result for an element depends only on its inputs, not on the block that it is in or on the vector width.
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

/// Memory for intermediate values.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// One more slot than the tape has: an instruction writes to the last, which is then swapped with its destination.
    slots: Vec<Slot>,
}

thread_local! {
    /// The slots of [`Evaluator::run_in_place`] between calls, and one for the old values.
    static KEPT_SLOTS: Cell<Vec<Slot>> = const { Cell::new(Vec::new()) };
}

impl Evaluator {
    /// An evaluator whose output `i` is `exprs[i]`.
    pub fn new(exprs: &[Expr]) -> Self {
        let n_inputs = exprs.iter().map(Expr::n_inputs).max().unwrap_or(0);
        Self { tape: Tape::new(exprs), n_inputs, n_outputs: exprs.len() }
    }

    /// Computes all elements, on the current thread.
    ///
    /// # Panics
    /// If there are fewer inputs than the expressions read, if the numbers of outputs and expressions differ, or slices that
    /// differ in length.
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

    /// Replaces `y` by the expression whose input 0 is the old `y` and whose further inputs are `others`, on the current thread:
    /// the epilogue of a kernel that has just written `y`.
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
        // A kernel calls this for each row, for which allocating would take longer than evaluating.
        let mut kept = KEPT_SLOTS.take();
        let n_slots = self.n_slots() + 1;
        if kept.len() < n_slots {
            kept.resize_with(n_slots, Slot::new);
        }
        let [before, slots @ ..] = &mut kept[..n_slots] else { unreachable!("there is at least one") };
        for start in (0..y.len()).step_by(BLOCK_LEN) {
            let range = start..(start + BLOCK_LEN).min(y.len());
            let y = &mut y[range.clone()];
            let before = &mut before.0[..y.len()];
            before.copy_from_slice(y);
            let others = others.iter().map(|input| input.slice(range.clone()));
            let inputs: Vec<_> = std::iter::once(Operand::Slice(before)).chain(others).collect();
            self.run_in_slots(&inputs, &mut [y], slots);
        }
        KEPT_SLOTS.set(kept);
    }

    /// Whether no intermediate value leaves the registers, so that a block may have any length.
    pub(crate) const fn keeps_nothing(&self) -> bool {
        self.tape.is_stream
    }

    /// Memory for [`run_block`](Self::run_block).
    pub(crate) fn scratch(&self) -> Scratch {
        Scratch { slots: (0..self.n_slots()).map(|_| Slot::new()).collect() }
    }

    const fn n_slots(&self) -> usize {
        if self.tape.n_slots > 0 { self.tape.n_slots + 1 } else { 0 }
    }

    /// Computes up to [`BLOCK_LEN`] elements, or any number if the tape [keeps nothing](Self::keeps_nothing).
    pub(crate) fn run_block(&self, inputs: &[Operand<'_>], outputs: &mut [&mut [f32]], scratch: &mut Scratch) {
        self.run_in_slots(inputs, outputs, &mut scratch.slots);
    }

    fn run_in_slots(&self, inputs: &[Operand<'_>], outputs: &mut [&mut [f32]], slots: &mut [Slot]) {
        let len = outputs.first().map_or(0, |output| output.len());
        let block = Block { tape: &self.tape, inputs, outputs, slots, len };
        // For data in memory, vectors of 32 bytes are 7 to 10 % faster than those of 64 (AMD EPYC, 16 Mi elements); for data in
        // the caches they are equally fast.
        #[cfg(target_arch = "x86_64")]
        if len > BLOCK_LEN
            && self.tape.is_limited_by_memory()
            && let Some(v3) = pulp::x86::V3::try_new()
        {
            return Simd::vectorize(v3, block);
        }
        Arch::new().dispatch(block);
    }
}

/// `y = function(y)`, bit-identical to an [`Evaluator`].
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
        let mut before = [0.0; SHORT_BLOCK_LEN];
        for y in self.y.chunks_mut(SHORT_BLOCK_LEN) {
            let before = &mut before[..y.len()];
            before.copy_from_slice(y);
            self.function.run(simd, Operand::Slice(before), y);
        }
    }
}

/// `grad *= GELU'(x)` in one loop, bit-identical to an [`Evaluator`] of [`Activation::grad`](super::Activation::grad).
pub(crate) fn scale_by_gelu_slope(x: &[f32], grad: &mut [f32]) {
    Arch::new().dispatch(ScaleByGeluSlope { x, grad });
}

struct ScaleByGeluSlope<'a> {
    x: &'a [f32],
    grad: &'a mut [f32],
}

impl WithSimd for ScaleByGeluSlope<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (x, rest_of_x) = S::as_simd_f32s(self.x);
        let (grad, rest_of_grad) = S::as_mut_simd_f32s(self.grad);
        for (x, grad) in x.iter().zip(grad) {
            *grad = simd.mul_f32s(vector::gelu_slope(simd, *x), *grad);
        }
        if !rest_of_x.is_empty() {
            let slope = vector::gelu_slope(simd, simd.partial_load_f32s(rest_of_x));
            let scaled = simd.mul_f32s(slope, simd.partial_load_f32s(rest_of_grad));
            simd.partial_store_f32s(rest_of_grad, scaled);
        }
    }
}

/// `y = exp(x - m)` for numbers `x` not above `m`, and the sum of the results.
pub(crate) fn exp_of_differences(x: &[f32], m: f32, y: &mut [f32]) -> f32 {
    Arch::new().dispatch(ExpOfDifferences { x, m, y })
}

struct ExpOfDifferences<'a> {
    x: &'a [f32],
    m: f32,
    y: &'a mut [f32],
}

impl WithSimd for ExpOfDifferences<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let m = simd.splat_f32s(self.m);
        let exp = |x: S::f32s| vector::exp_of_non_positive(simd, simd.sub_f32s(x, m));
        let (x, rest_of_x) = S::as_simd_f32s(self.x);
        let (y, rest_of_y) = S::as_mut_simd_f32s(self.y);
        let mut sums = [simd.splat_f32s(0.0); 4];
        let (x_tiles, y_tiles) = (x.chunks_exact(4), y.chunks_exact_mut(4));
        let single_x = x_tiles.remainder();
        let n_single = single_x.len();
        let n = y_tiles.len() * 4;
        for (x, y) in x_tiles.zip(y_tiles) {
            for i in 0..4 {
                y[i] = exp(x[i]);
                sums[i] = simd.add_f32s(sums[i], y[i]);
            }
        }
        for i in n..n + n_single {
            y[i] = exp(x[i]);
            sums[0] = simd.add_f32s(sums[0], y[i]);
        }
        let mut sum = simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3])));
        if !rest_of_x.is_empty() {
            simd.partial_store_f32s(rest_of_y, exp(simd.partial_load_f32s(rest_of_x)));
            sum += rest_of_y.iter().sum::<f32>();
        }
        sum
    }
}

struct Block<'a, 'b> {
    tape: &'a Tape,
    inputs: &'a [Operand<'a>],
    outputs: &'a mut [&'b mut [f32]],
    slots: &'a mut [Slot],
    len: usize,
}

impl WithSimd for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Block { tape, inputs, outputs, slots, len } = self;
        // Chains for the elements in whole tiles, then single instructions for the rest.
        let n_in_tiles = if tape.chains.len() < tape.instructions.len() { in_tiles(simd, len) } else { 0 };
        if n_in_tiles > 0 {
            for Chain { first, end } in &tape.chains {
                let chain = &tape.instructions[*first..*end];
                let target = tape.instructions[end - 1].target;
                into_target(target, outputs, slots, 0..n_in_tiles, |slots, y| match chain {
                    [single] => run(simd, single.action, inputs, 0, slots, y),
                    _ => simd.vectorize(Tiles { chain, inputs, slots, y }),
                });
            }
        }
        if n_in_tiles < len {
            for instruction in &tape.instructions {
                into_target(instruction.target, outputs, slots, n_in_tiles..len, |slots, y| {
                    run(simd, instruction.action, inputs, n_in_tiles, slots, y);
                });
            }
        }
    }
}

/// Calls `write` to write the elements of `range` of an output, or the first elements of a slot. It may read all slots except the
/// last.
#[inline(always)]
fn into_target(
    target: Target,
    outputs: &mut [&mut [f32]],
    slots: &mut [Slot],
    range: Range<usize>,
    write: impl FnOnce(&[Slot], &mut [f32]),
) {
    match target {
        Target::Output(output) => write(slots, &mut outputs[output][range]),
        Target::Slot(slot) => {
            let last = slots.len() - 1;
            let (others, written) = slots.split_at_mut(last);
            write(others, &mut written[0].0[..range.len()]);
            slots.swap(slot, last);
        }
    }
}

/// Executes one instruction, for as many elements as `y` has, reading inputs from `start` on.
#[inline(always)]
fn run<S: Simd>(simd: S, action: Action, inputs: &[Operand<'_>], start: usize, slots: &[Slot], y: &mut [f32]) {
    let n = y.len();
    let operand = |source: Source| match source {
        Source::Input(i) => inputs[i].slice(start..start + n),
        Source::Slot(i) => Operand::Slice(&slots[i].0[..n]),
        Source::Constant(value) => Operand::Splat(value),
    };
    match action {
        Action::Copy(a) => run_copy(operand(a), y),
        Action::Unary(kind, a) => kind.run(simd, operand(a), y),
        Action::GeluSlope(a) => unary::<S, GeluSlope>(simd, operand(a), y),
        Action::Binary(kind, a, b) => run_binary(simd, kind, operand(a), operand(b), y),
        Action::Choose(kind, [a, b, c, d]) => run_choose(simd, kind, [operand(a), operand(b), operand(c), operand(d)], y),
    }
}
