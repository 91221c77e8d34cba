//! Expressions as lists of instructions over numbered blocks of memory.

use super::Expr;
use super::binary::Binary;
use super::builder::{Builder, needed};
use super::chains::Chain;
use super::instruction::{Action, Instruction, Source, Target};
use super::op::{Id, Op};
use super::unary::Unary;
use super::vector::NORMAL_DENSITY_AT_0;

/// Instructions that compute expressions for a block of elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tape {
    pub(super) instructions: Vec<Instruction>,
    pub(super) chains: Vec<Chain>,
    pub(super) n_slots: usize,
    /// Whether no chain reads a result that another has written.
    pub(super) is_stream: bool,
}

impl Tape {
    /// Output `i` is `exprs[i]`; common subexpressions are computed once.
    pub(super) fn new(exprs: &[Expr]) -> Self {
        let mut builder = Builder::default();
        let results: Vec<Id> = exprs.iter().map(|expr| builder.import(expr)).collect();
        let (ops, results) = needed(&builder.ops, &results);
        Allocation::new(&ops, &results).into_tape(&ops, &results)
    }

    /// Whether it does no more than add two inputs, or similar, so that it is memory-bound.
    #[cfg(target_arch = "x86_64")]
    pub(super) const fn is_limited_by_memory(&self) -> bool {
        match self.instructions.as_slice() {
            [Instruction { action: Action::Binary(kind, Source::Input(_), Source::Input(_)), .. }] => {
                !matches!(kind, Binary::Pow)
            }
            _ => false,
        }
    }
}

/// Where the value of each operation is kept, and how long.
struct Allocation {
    /// The last operation that reads it, 0 if none does. Results that are also read are kept to the end.
    last_use: Vec<usize>,
    sources: Vec<Option<Source>>,
    free: Vec<usize>,
    n_slots: usize,
    instructions: Vec<Instruction>,
}

impl Allocation {
    fn new(ops: &[Op], results: &[Id]) -> Self {
        let mut last_use = vec![0; ops.len()];
        for (i, op) in ops.iter().enumerate() {
            for id in op.arguments() {
                last_use[id as usize] = i;
                // A selection evaluates its condition, if that is a comparison, from the comparison's arguments.
                if matches!(op, Op::Select(condition, ..) if *condition == id) {
                    for argument in ops[id as usize].arguments() {
                        last_use[argument as usize] = last_use[argument as usize].max(i);
                    }
                }
            }
        }
        for (i, &result) in results.iter().enumerate() {
            let is_read = last_use[result as usize] > 0 || results[..i].contains(&result);
            if is_read {
                last_use[result as usize] = usize::MAX;
            }
        }
        Self { last_use, sources: vec![None; ops.len()], free: vec![], n_slots: 0, instructions: vec![] }
    }

    fn into_tape(mut self, ops: &[Op], results: &[Id]) -> Tape {
        let is_computed = is_computed(ops, results);
        let mut is_written = vec![false; results.len()];
        for (i, &op) in ops.iter().enumerate() {
            let source = |id: Id| self.sources[id as usize].expect("arguments come first, and are computed");
            let action = match op {
                Op::Input(input) => {
                    self.sources[i] = Some(Source::Input(input as usize));
                    continue;
                }
                Op::Constant(bits) => {
                    self.sources[i] = Some(Source::Constant(f32::from_bits(bits)));
                    continue;
                }
                _ if !is_computed[i] => continue,
                Op::Unary(kind, a) => Action::Unary(kind, source(a)),
                Op::Binary(kind, a, b) if kind.is_comparison() => {
                    choose(kind, [source(a), source(b), Source::Constant(1.0), Source::Constant(0.0)])
                }
                Op::Binary(kind, a, b) => Action::Binary(kind, source(a), source(b)),
                Op::Select(condition, a, b) => match ops[condition as usize] {
                    Op::Binary(kind, c, d) if kind.is_comparison() => choose(kind, [source(c), source(d), source(a), source(b)]),
                    _ => choose(Binary::Ne, [source(condition), Source::Constant(0.0), source(a), source(b)]),
                },
            };
            let output = results.iter().position(|&result| result as usize == i).filter(|_| self.last_use[i] == 0);
            let target = match output {
                Some(output) => {
                    is_written[output] = true;
                    Target::Output(output)
                }
                // Before its arguments are released: an instruction does not write to its operands.
                None => {
                    let slot = self.free.pop().unwrap_or_else(|| {
                        self.n_slots += 1;
                        self.n_slots - 1
                    });
                    self.sources[i] = Some(Source::Slot(slot));
                    Target::Slot(slot)
                }
            };
            self.instructions.push(Instruction { action, target });
            self.release(i);
        }
        self.copy_results(results, &is_written)
    }

    /// Slots whose last reader is operation `i`, or that are no longer read.
    fn release(&mut self, i: usize) {
        for (id, source) in self.sources.iter().enumerate().take(i) {
            if let Some(Source::Slot(slot)) = source
                && self.last_use[id] == i
            {
                self.free.push(*slot);
            }
        }
    }

    /// Outputs that are inputs, constants, or also read by other operations; and outputs that are the same expression.
    fn copy_results(mut self, results: &[Id], is_written: &[bool]) -> Tape {
        for (output, &result) in results.iter().enumerate().filter(|(output, _)| !is_written[*output]) {
            let source = self.sources[result as usize].expect("a result that is not written is kept");
            self.instructions.push(Instruction { action: Action::Copy(source), target: Target::Output(output) });
        }
        fuse_gelu_slopes(&mut self.instructions);
        let chains = Chain::all_of(&self.instructions);
        let is_stream = chains.iter().all(|chain| !chain.reads_slots(&self.instructions));
        Tape { instructions: self.instructions, chains, n_slots: self.n_slots, is_stream }
    }
}

/// Replaces the instructions of `Φ(x) + φ(x) x`, as [`Expr::derivative`] writes the derivative of GELU, by one that keeps all
/// intermediate values in registers.
fn fuse_gelu_slopes(instructions: &mut Vec<Instruction>) {
    let mut i = 0;
    while let Some(window) = instructions[i..].first_chunk() {
        if let Some(fused) = gelu_slope(window)
            && !are_read(&window[..6], &fused, &instructions[i + 7..])
        {
            instructions.splice(i..i + 7, [fused]);
        }
        i += 1;
    }
}

/// The one instruction that computes what these compute, if they are the derivative of GELU.
fn gelu_slope(instructions: &[Instruction; 7]) -> Option<Instruction> {
    let Action::Unary(Unary::NormalCdf, x) = instructions[0].action else { return None };
    let of = |i: usize| match instructions[i].target {
        Target::Slot(slot) => Source::Slot(slot),
        // No instruction reads an output.
        Target::Output(_) => Source::Constant(f32::NAN),
    };
    let expected = [
        Action::Binary(Binary::Mul, x, x),
        Action::Binary(Binary::Mul, Source::Constant(-0.5), of(1)),
        Action::Unary(Unary::Exp, of(2)),
        Action::Binary(Binary::Mul, Source::Constant(NORMAL_DENSITY_AT_0), of(3)),
        Action::Binary(Binary::Mul, of(4), x),
        Action::Binary(Binary::Add, of(0), of(5)),
    ];
    let is_slope = instructions[1..].iter().zip(expected).all(|(instruction, action)| instruction.action == action);
    is_slope.then_some(Instruction { action: Action::GeluSlope(x), target: instructions[6].target })
}

/// Whether any instruction after `next`, which follows them, reads a result of `instructions`.
fn are_read(instructions: &[Instruction], next: &Instruction, later: &[Instruction]) -> bool {
    let mut held: Vec<Target> = instructions.iter().map(|instruction| instruction.target).collect();
    held.retain(|target| *target != next.target);
    for instruction in later {
        if instruction.action.sources().any(|source| matches!(source, Source::Slot(slot) if held.contains(&Target::Slot(slot)))) {
            return true;
        }
        held.retain(|target| *target != instruction.target);
    }
    false
}

/// The third where the comparison of the first two is true, else the fourth; `comparison` is one of three.
const fn choose(comparison: Binary, [a, b, c, d]: [Source; 4]) -> Action {
    match comparison {
        Binary::Ne => Action::Choose(Binary::Eq, [a, b, d, c]),
        _ => Action::Choose(comparison, [a, b, c, d]),
    }
}

/// Whether the value of an operation is needed; that of a comparison which only selections read is not.
fn is_computed(ops: &[Op], results: &[Id]) -> Vec<bool> {
    let mut is_computed = vec![false; ops.len()];
    for &result in results {
        is_computed[result as usize] = true;
    }
    for op in ops {
        let skipped = match op {
            Op::Select(condition, ..) if ops[*condition as usize].is_comparison() => 1,
            _ => 0,
        };
        for id in op.arguments().skip(skipped) {
            is_computed[id as usize] = true;
        }
    }
    is_computed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Activation;

    fn n_slopes(exprs: &[Expr]) -> usize {
        let tape = Tape::new(exprs);
        tape.instructions.iter().filter(|instruction| matches!(instruction.action, Action::GeluSlope(_))).count()
    }

    #[test]
    fn the_derivative_of_gelu_is_one_instruction_unless_its_parts_are_read() {
        let grad = Activation::gelu().grad();
        assert_eq!(n_slopes(std::slice::from_ref(&grad)), 1);
        assert_eq!(n_slopes(&[grad.substitute(&[Expr::input(0), Expr::input(1) * 2.0 + 1.0])]), 1);
        // Φ(x) is also an operand of GELU.
        assert_eq!(n_slopes(&[grad, Expr::input(1).gelu()]), 0);
    }
}
