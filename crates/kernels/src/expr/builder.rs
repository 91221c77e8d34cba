//! Builds a list of operations, without duplicates, and simplified where that does not change any bit.

use std::collections::HashMap;

use pulp::Scalar;

use super::binary::Binary;
use super::op::{Id, Op};
use super::unary::Unary;
use super::{Expr, vector};
use crate::sizes::in_u32;

/// A growing list of operations. Each operation comes after its arguments, and occurs once.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(super) ops: Vec<Op>,
    known: HashMap<Op, Id>,
}

impl Builder {
    /// Adds `op` unchanged, unless it exists.
    fn insert(&mut self, op: Op) -> Id {
        if let Some(&id) = self.known.get(&op) {
            return id;
        }
        if let Op::Binary(kind, a, b) = op
            && kind.is_commutative()
            && let Some(&id) = self.known.get(&Op::Binary(kind, b, a))
        {
            return id;
        }
        let id = Id::try_from(self.ops.len()).expect("an expression of fewer than 2^32 operations");
        self.ops.push(op);
        self.known.insert(op, id);
        id
    }

    /// Adds `op`, simplified.
    pub(crate) fn push(&mut self, op: Op) -> Id {
        match op {
            Op::Input(_) | Op::Constant(_) => self.insert(op),
            Op::Unary(kind, a) => self.unary(kind, a),
            Op::Binary(kind, a, b) => self.binary(kind, a, b),
            Op::Select(condition, if_true, if_false) => self.select(condition, if_true, if_false),
        }
    }

    pub(crate) fn constant(&mut self, value: f32) -> Id {
        self.insert(Op::constant(value))
    }

    pub(crate) fn op(&self, id: Id) -> Op {
        self.ops[id as usize]
    }

    /// The value of an operation that is a constant.
    pub(crate) fn as_constant(&self, id: Id) -> Option<f32> {
        self.ops[id as usize].as_constant()
    }

    /// Adds the operations of `expr`, and returns the index of its result.
    pub(crate) fn import(&mut self, expr: &Expr) -> Id {
        self.import_all(&expr.ops, |builder, op| builder.insert(op))
    }

    /// The same with `inputs[i]` in place of input `i`, simplified again.
    pub(crate) fn import_with(&mut self, expr: &Expr, inputs: &[Id]) -> Id {
        self.import_all(&expr.ops, |builder, op| match op {
            Op::Input(i) => inputs[i as usize],
            op => builder.push(op),
        })
    }

    fn import_all(&mut self, ops: &[Op], mut add: impl FnMut(&mut Self, Op) -> Id) -> Id {
        let mut ids: Vec<Id> = Vec::with_capacity(ops.len());
        for &op in ops {
            let op = op.map_arguments(|id| ids[id as usize]);
            ids.push(add(self, op));
        }
        *ids.last().expect("an expression has at least one operation")
    }

    /// The operations that `result` needs, in an order that depends only on the operations.
    pub(crate) fn finish(&self, result: Id) -> Expr {
        Expr { ops: needed(&self.ops, &[result]).0.into() }
    }

    pub(crate) fn unary(&mut self, kind: Unary, a: Id) -> Id {
        if let Some(a) = self.as_constant(a) {
            return self.constant(kind.value(a));
        }
        match (kind, self.ops[a as usize]) {
            (Unary::Neg, Op::Unary(Unary::Neg, inner)) => inner,
            (Unary::Abs, Op::Unary(Unary::Abs | Unary::Exp | Unary::Sqrt | Unary::Sigmoid, _)) => a,
            (Unary::Abs, Op::Unary(Unary::Neg, inner)) => self.unary(Unary::Abs, inner),
            (Unary::Floor, Op::Unary(Unary::Floor | Unary::Sign, _)) => a,
            _ => self.insert(Op::Unary(kind, a)),
        }
    }

    pub(crate) fn binary(&mut self, kind: Binary, a: Id, b: Id) -> Id {
        let (left, right) = (self.as_constant(a), self.as_constant(b));
        if let (Some(left), Some(right)) = (left, right) {
            return self.constant(evaluate_binary(kind, left, right));
        }
        let is = |value: Option<f32>, bits: f32| value.is_some_and(|value| value.to_bits() == bits.to_bits());
        let negated = |builder: &Self, id: Id| match builder.ops[id as usize] {
            Op::Unary(Unary::Neg, inner) => Some(inner),
            _ => None,
        };
        match kind {
            // -0 is the neutral element of addition: -0 + 0 is 0.
            Binary::Add if is(left, -0.0) => return b,
            Binary::Add if is(right, -0.0) => return a,
            Binary::Sub if is(right, 0.0) => return a,
            Binary::Sub if is(left, -0.0) => return self.unary(Unary::Neg, b),
            Binary::Mul if is(left, 1.0) => return b,
            Binary::Mul | Binary::Div | Binary::Pow if is(right, 1.0) => return a,
            Binary::Mul if is(left, -1.0) => return self.unary(Unary::Neg, b),
            Binary::Mul | Binary::Div if is(right, -1.0) => return self.unary(Unary::Neg, a),
            Binary::Div if is(left, 1.0) => return self.unary(Unary::Recip, b),
            Binary::Max | Binary::Min if a == b => return a,
            _ => {}
        }
        if kind == Binary::Div
            && let Some(reciprocal) = right.and_then(exact_reciprocal)
        {
            let reciprocal = self.constant(reciprocal);
            return self.binary(Binary::Mul, a, reciprocal);
        }
        match (kind, negated(self, a), negated(self, b)) {
            (Binary::Add, _, Some(b)) => self.binary(Binary::Sub, a, b),
            (Binary::Add, Some(a), None) => self.binary(Binary::Sub, b, a),
            (Binary::Sub, _, Some(b)) => self.binary(Binary::Add, a, b),
            (Binary::Mul | Binary::Div, Some(a), Some(b)) => self.binary(kind, a, b),
            _ => self.insert(Op::Binary(kind, a, b)),
        }
    }

    pub(crate) fn select(&mut self, condition: Id, if_true: Id, if_false: Id) -> Id {
        if if_true == if_false {
            return if_true;
        }
        match self.as_constant(condition) {
            Some(condition) => {
                if condition == 0.0 {
                    if_false
                } else {
                    if_true
                }
            }
            None => self.insert(Op::Select(condition, if_true, if_false)),
        }
    }
}

/// The operations that `results` need, each after its arguments, in the order of a depth-first walk, and the indices of the
/// results among them.
pub(crate) fn needed(ops: &[Op], results: &[Id]) -> (Vec<Op>, Vec<Id>) {
    let mut place: Vec<Option<Id>> = vec![None; ops.len()];
    let mut kept = Vec::new();
    let mut stack: Vec<Id> = results.iter().rev().copied().collect();
    while let Some(&id) = stack.last() {
        if place[id as usize].is_some() {
            stack.pop();
            continue;
        }
        let op = ops[id as usize];
        let missing: Vec<Id> = op.arguments().filter(|&argument| place[argument as usize].is_none()).collect();
        if missing.is_empty() {
            let new = op.map_arguments(|argument| place[argument as usize].expect("arguments are placed before"));
            place[id as usize] = Some(in_u32(kept.len()));
            kept.push(new);
            stack.pop();
        } else {
            stack.extend(missing.into_iter().rev());
        }
    }
    let results = results.iter().map(|&id| place[id as usize].expect("results are placed")).collect();
    (kept, results)
}

/// `1 / value`, if multiplying by it is bit-identical to dividing by `value`: for powers of two with a normal reciprocal.
fn exact_reciprocal(value: f32) -> Option<f32> {
    let is_power_of_two = value.to_bits() & 0x007F_FFFF == 0;
    let reciprocal = 1.0 / value;
    (is_power_of_two && value.is_normal() && reciprocal.is_normal()).then_some(reciprocal)
}

/// As the vectorised evaluation computes it.
pub(crate) fn evaluate_binary(kind: Binary, a: f32, b: f32) -> f32 {
    let number = |is: bool| if is { 1.0 } else { 0.0 };
    match kind {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Max => vector::max(Scalar, a, b),
        Binary::Min => vector::min(Scalar, a, b),
        Binary::Pow => vector::pow(a, b),
        Binary::Lt => number(a < b),
        Binary::Le => number(a <= b),
        Binary::Eq => number(a == b),
        Binary::Ne => number(a != b),
    }
}
