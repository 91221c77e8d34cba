//! Subexpressions that need not be computed for each element.

use super::Expr;
use super::builder::Builder;
use super::op::{Id, Op};
use crate::sizes::in_u32;

/// Expressions in two parts, as by [`hoist`].
#[derive(Debug, PartialEq)]
pub(crate) struct Hoisted {
    /// The subexpressions, of the original inputs.
    pub(crate) parts: Vec<Expr>,
    /// The original inputs that the expressions still read. They are their first inputs, in this order; the parts are the others.
    pub(crate) inputs: Vec<usize>,
    /// What remains of the expressions.
    pub(crate) rest: Vec<Expr>,
}

impl Hoisted {
    /// Inputs of the rest.
    pub(crate) fn n_inputs(&self) -> usize {
        self.inputs.len() + self.parts.len()
    }
}

/// Divides `exprs` into the largest subexpressions that read only inputs for which `is_fixed` is true, such as factors of
/// channels, and the rest: evaluating the parts first gives the same bits. `None` if there are no such subexpressions.
pub(crate) fn hoist(exprs: &[Expr], is_fixed: &[bool]) -> Option<Hoisted> {
    let mut all = Builder::default();
    let results: Vec<Id> = exprs.iter().map(|expr| all.import(expr)).collect();
    let ops = &all.ops;
    let mut varies: Vec<bool> = Vec::with_capacity(ops.len());
    for op in ops {
        varies.push(match op {
            Op::Input(i) => !is_fixed[*i as usize],
            op => op.arguments().any(|id| varies[id as usize]),
        });
    }
    let mut read: Vec<Id> = ops.iter().zip(&varies).filter(|(_, varies)| **varies).flat_map(|(op, _)| op.arguments()).collect();
    read.extend(&results);
    read.sort_unstable();
    read.dedup();
    let input_of = |id: &Id| if let Op::Input(i) = ops[*id as usize] { Some(i as usize) } else { None };
    let is_part = |id: &Id| !varies[*id as usize] && !matches!(ops[*id as usize], Op::Input(_) | Op::Constant(_));
    let parts: Vec<Id> = read.iter().copied().filter(is_part).collect();
    if parts.is_empty() {
        return None;
    }
    let mut inputs: Vec<usize> = read.iter().filter_map(input_of).collect();
    inputs.sort_unstable();

    let mut rest = Builder::default();
    // Those that parts are computed from may be missing.
    let mut ids: Vec<Option<Id>> = Vec::with_capacity(ops.len());
    for (i, op) in ops.iter().enumerate() {
        let part = parts.iter().position(|part| *part as usize == i).map(|part| inputs.len() + part);
        let input = part.or_else(|| inputs.iter().position(|input| input_of(&in_u32(i)) == Some(*input)));
        let is_computed = input.is_none() && !matches!(op, Op::Input(_)) && op.arguments().all(|id| ids[id as usize].is_some());
        let computed = is_computed.then(|| op.map_arguments(|id| ids[id as usize].expect("it is computed")));
        ids.push(input.map(|input| Op::Input(in_u32(input))).or(computed).map(|op| rest.push(op)));
    }
    let finished = |id: &Id| rest.finish(ids[*id as usize].expect("what a result reads is computed"));
    Some(Hoisted {
        parts: parts.iter().map(|id| all.finish(*id)).collect(),
        inputs,
        rest: results.iter().map(finished).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_subexpressions_of_fixed_inputs_are_parts() {
        let [x, mean, inv_std, weight, bias] = [0, 1, 2, 3, 4].map(Expr::input);
        let is_fixed = [false, true, true, true, true];
        let y = (&x - &mean) * (&inv_std * &weight * 2.0) + (&bias + 1.0) + &bias;
        let hoisted = hoist(&[y], &is_fixed).expect("there are two");
        let [varying, first, bias_left, scale, shift] = [0, 1, 2, 3, 4].map(Expr::input);
        assert_eq!(hoisted.parts, [&inv_std * &weight * 2.0, &bias + 1.0]);
        assert_eq!(hoisted.inputs, [0, 1, 4]);
        assert_eq!(hoisted.rest, [(varying - first) * scale + shift + bias_left]);
        assert_eq!(hoist(&[(&x - &mean) * &inv_std], &is_fixed), None);
        assert_eq!(hoist(&[x * (inv_std + 1.0)], &[false; 5]), None);
    }

    #[test]
    fn a_result_may_be_a_part() {
        let [x, a] = [0, 1].map(Expr::input);
        let hoisted = hoist(&[&a * 3.0, &x + (&a * 3.0)], &[false, true]).expect("there is one");
        assert_eq!(hoisted.parts, [&a * 3.0]);
        assert_eq!((hoisted.inputs, hoisted.rest), (vec![0], vec![Expr::input(1), Expr::input(0) + Expr::input(1)]));
    }
}
