//! Chains of instructions, each of which reads the result of the previous one. They are evaluated a tile at a time, and these
//! results stay in registers.

use pulp::{Simd, WithSimd};

use super::binary::Binary;
use super::instruction::{Action, Instruction, Source, Target};
use super::loops::*;
use super::operand::{Operand, Slot};
use super::unary::WithFunction;
use crate::vectorised::inlined;

/// Vectors of a tile: enough independent results of one operation to hide its latency, and few enough for the registers.
const TILE: usize = 4;
/// The maximum number of instructions of a chain.
const MAX_LEN: usize = 12;

/// Instructions `first..end` of a tape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chain {
    pub(super) first: usize,
    pub(super) end: usize,
}

impl Chain {
    /// Divides a tape into chains that are as long as possible.
    pub(super) fn all_of(instructions: &[Instruction]) -> Vec<Self> {
        let mut chains: Vec<Self> = Vec::new();
        for i in 0..instructions.len() {
            match chains.last_mut() {
                Some(last) if i - last.first < MAX_LEN && hands_on(instructions, i - 1) => last.end = i + 1,
                _ => chains.push(Self { first: i, end: i + 1 }),
            }
        }
        chains
    }

    /// Whether it reads a result that another chain has written.
    pub(super) fn reads_slots(&self, instructions: &[Instruction]) -> bool {
        let own = &instructions[self.first..self.end];
        own.iter().enumerate().any(|(i, instruction)| {
            let handed_on = if i > 0 { slot_of(own[i - 1]) } else { None };
            instruction.action.sources().any(|source| matches!(source, Source::Slot(slot) if Some(slot) != handed_on))
        })
    }
}

fn slot_of(instruction: Instruction) -> Option<usize> {
    match instruction.target {
        Target::Slot(slot) => Some(slot),
        Target::Output(_) => None,
    }
}

/// Whether only the next instruction reads the result of instruction `i`, and both are computed in registers.
fn hands_on(instructions: &[Instruction], i: usize) -> bool {
    let Some(slot) = slot_of(instructions[i]) else { return false };
    let reads = |instruction: &Instruction| instruction.action.sources().any(|source| source == Source::Slot(slot));
    let is_read_later = || {
        let later = instructions[i + 2..].iter().find(|later| reads(later) || slot_of(**later) == Some(slot));
        slot_of(instructions[i + 1]) != Some(slot) && later.is_some_and(reads)
    };
    let in_registers = |i: usize| instructions[i].action.is_in_registers();
    in_registers(i) && in_registers(i + 1) && reads(&instructions[i + 1]) && !is_read_later()
}

/// An argument of a step of a chain.
#[derive(Clone, Copy)]
enum Argument<'a, V> {
    /// The result of the previous step.
    Result,
    One(f32),
    Vectors(&'a [V]),
}

/// An instruction and its arguments.
#[derive(Clone, Copy)]
struct Step<'a, V> {
    action: Action,
    arguments: [Argument<'a, V>; 4],
}

/// The evaluation of a chain, for elements in whole [tiles](in_tiles).
pub(super) struct Tiles<'a, 'b> {
    pub(super) chain: &'a [Instruction],
    pub(super) inputs: &'a [Operand<'a>],
    pub(super) slots: &'a [Slot],
    pub(super) y: &'b mut [f32],
}

impl<'a> WithSimd for Tiles<'a, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { chain, inputs, slots, y } = self;
        let none = Step { action: Action::Copy(Source::Constant(0.0)), arguments: [Argument::Result; 4] };
        let mut steps = [none; MAX_LEN];
        let mut handed_on = None;
        for (step, instruction) in steps.iter_mut().zip(chain) {
            step.action = instruction.action;
            for (argument, source) in step.arguments.iter_mut().zip(instruction.action.sources()) {
                let n = y.len();
                let values = |x: &'a [f32]| S::as_simd_f32s(&x[..n]).0;
                *argument = match source {
                    Source::Slot(slot) if Some(slot) == handed_on => Argument::Result,
                    Source::Slot(slot) => Argument::Vectors(values(&slots[slot].0)),
                    Source::Constant(value) => Argument::One(value),
                    Source::Input(i) => match inputs[i] {
                        Operand::Slice(x) => Argument::Vectors(values(x)),
                        Operand::Splat(value) => Argument::One(value),
                    },
                };
            }
            handed_on = slot_of(*instruction);
        }
        let steps = &steps[..chain.len()];
        for (tile, y) in S::as_mut_simd_f32s(y).0.chunks_exact_mut(TILE).enumerate() {
            let mut results = [simd.splat_f32s(0.0); TILE];
            for step in steps {
                results = step.run(simd, TILE * tile, results);
            }
            y.copy_from_slice(&results);
        }
    }
}

impl<V: Copy> Step<'_, V> {
    #[inline(always)]
    fn run<S: Simd<f32s = V>>(&self, simd: S, start: usize, results: [V; TILE]) -> [V; TILE] {
        macro_rules! call {
            ($function:ty, $n:literal) => {
                self.call::<S, $function, $n>(simd, start, results)
            };
        }
        match self.action {
            Action::Unary(kind, _) => kind.with(InTile { step: self, simd, start, results }),
            Action::GeluSlope(_) => call!(GeluSlope, 1),
            Action::Binary(Binary::Add, ..) => call!(Add, 2),
            Action::Binary(Binary::Sub, ..) => call!(Sub, 2),
            Action::Binary(Binary::Mul, ..) => call!(Mul, 2),
            Action::Binary(Binary::Div, ..) => call!(Div, 2),
            Action::Binary(Binary::Max, ..) => call!(Max, 2),
            Action::Binary(Binary::Min, ..) => call!(Min, 2),
            Action::Choose(Binary::Lt, _) => call!(IfLess, 4),
            Action::Choose(Binary::Le, _) => call!(IfLessOrEqual, 4),
            Action::Choose(..) => call!(IfEqual, 4),
            Action::Copy(_) | Action::Binary(..) => {
                unreachable!("{:?} is not in a chain", self.action)
            }
        }
    }

    #[inline(always)]
    fn call<S: Simd<f32s = V>, F: Function, const N: usize>(&self, simd: S, start: usize, results: [V; TILE]) -> [V; TILE] {
        let mut x = [results; N];
        for (x, argument) in x.iter_mut().zip(&self.arguments) {
            match argument {
                Argument::Result => {}
                Argument::One(value) => *x = [simd.splat_f32s(*value); TILE],
                Argument::Vectors(values) => x.copy_from_slice(&values[start..start + TILE]),
            }
        }
        let mut y = results;
        for i in 0..TILE {
            y[i] = F::call(simd, inlined!(|k| x[k][i]));
        }
        y
    }
}

/// A function of one argument over a tile.
struct InTile<'s, 'a, S: Simd> {
    step: &'s Step<'a, S::f32s>,
    simd: S,
    start: usize,
    results: [S::f32s; TILE],
}

impl<S: Simd> WithFunction for InTile<'_, '_, S> {
    type Output = [S::f32s; TILE];

    #[inline(always)]
    fn call<F: Function>(self) -> Self::Output {
        self.step.call::<S, F, 1>(self.simd, self.start, self.results)
    }
}

/// The number of elements, out of `len`, that are in whole tiles of these vectors.
#[inline(always)]
pub(super) fn in_tiles<S: Simd>(_: S, len: usize) -> usize {
    len - len % (TILE * S::F32_LANES)
}
