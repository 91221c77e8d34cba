//! An expression as a formula.

use std::fmt;

use super::Expr;
use super::op::{Id, Op};
use super::unary::Unary;
use crate::sizes::in_u32;

/// As a formula: `max(x0 + 1, 0)`. Subexpressions used more than once are named and listed after `where`.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut n_uses = vec![0; self.ops.len()];
        for argument in self.ops.iter().flat_map(|op| op.arguments()) {
            n_uses[argument as usize] += 1;
        }
        let is_leaf = |op: &Op| matches!(op, Op::Input(_) | Op::Constant(_));
        let mut n_names = 0;
        let names: Vec<Option<String>> = self
            .ops
            .iter()
            .zip(n_uses)
            .map(|(op, n_uses)| {
                (n_uses > 1 && !is_leaf(op)).then(|| {
                    n_names += 1;
                    format!("t{}", n_names - 1)
                })
            })
            .collect();
        let formula = Formula { ops: &self.ops, names: &names };
        formula.write(f, in_u32(self.ops.len()) - 1, 0)?;
        let mut before = " where ";
        for (id, name) in names.iter().enumerate() {
            if let Some(name) = name {
                write!(f, "{before}{name} = ")?;
                formula.write_op(f, self.ops[id], 0)?;
                before = ", ";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({self})")
    }
}

struct Formula<'a> {
    ops: &'a [Op],
    names: &'a [Option<String>],
}

impl Formula<'_> {
    /// Operation `id`, in brackets if it binds less tightly than `tightness`.
    fn write(&self, f: &mut fmt::Formatter<'_>, id: Id, tightness: u8) -> fmt::Result {
        match &self.names[id as usize] {
            Some(name) => f.write_str(name),
            None => self.write_op(f, self.ops[id as usize], tightness),
        }
    }

    fn write_op(&self, f: &mut fmt::Formatter<'_>, op: Op, tightness: u8) -> fmt::Result {
        match op {
            Op::Input(i) => write!(f, "x{i}"),
            Op::Constant(bits) => write!(f, "{}", f32::from_bits(bits)),
            Op::Unary(Unary::Neg, a) => {
                f.write_str("-")?;
                self.write(f, a, 4)
            }
            Op::Unary(kind, a) => self.write_call(f, kind, &[a]),
            Op::Binary(kind, a, b) => match kind.infix() {
                None => self.write_call(f, kind, &[a, b]),
                Some((sign, own)) => {
                    let brackets = own < tightness;
                    f.write_str(if brackets { "(" } else { "" })?;
                    self.write(f, a, own)?;
                    write!(f, " {sign} ")?;
                    self.write(f, b, own + 1)?;
                    f.write_str(if brackets { ")" } else { "" })
                }
            },
            Op::Select(condition, a, b) => self.write_call(f, "select", &[condition, a, b]),
        }
    }

    fn write_call(&self, f: &mut fmt::Formatter<'_>, name: impl fmt::Display, arguments: &[Id]) -> fmt::Result {
        write!(f, "{name}(")?;
        for (i, &argument) in arguments.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            self.write(f, argument, 0)?;
        }
        f.write_str(")")
    }
}
