//! Expressions as WGSL: the parts of which a module is composed.
//!
//! A module computes in one type, which its parts call `V`: `f32`, or vectors of it. [`VectorWidth::part`] declares it,
//! [`functions`] returns the functions that expressions call, and [`function`] is an expression as a function of `V`. Each part
//! must occur once in a module.
//!
//! # Examples
//! ```
//! use brisk_kernels::Module;
//! use brisk_kernels::expr::{Expr, wgsl};
//!
//! let relu = Expr::input(0).relu();
//! let module = Module::new([wgsl::VectorWidth::Four.part(), wgsl::function("act", &relu, 1)])
//!     .with_all(wgsl::functions(std::slice::from_ref(&relu)));
//! assert!(module.source().contains("fn act(x0: V) -> V {"));
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use super::Expr;
use super::binary::Binary;
use super::op::{Id, Op};
use crate::shader::module::{Part, part};
use crate::sizes::in_u32;

/// How many numbers an invocation computes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VectorWidth {
    /// One.
    One,
    /// Two, as a `vec2f`.
    Two,
    /// Four, as a `vec4f`.
    Four,
}

impl VectorWidth {
    /// The number.
    pub const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The types that the other parts compute in: `V` of `f32`, `U` of `u32`, `I` of `i32` and `Mask` of `bool`.
    pub const fn part(self) -> Part {
        let text = match self {
            Self::One => "alias V = f32;\nalias U = u32;\nalias I = i32;\nalias Mask = bool;\n",
            Self::Two => "alias V = vec2f;\nalias U = vec2u;\nalias I = vec2i;\nalias Mask = vec2<bool>;\n",
            Self::Four => "alias V = vec4f;\nalias U = vec4u;\nalias I = vec4i;\nalias Mask = vec4<bool>;\n",
        };
        Part { name: Cow::Borrowed("types"), text: Cow::Borrowed(text), loops_end: true }
    }
}

/// A part with one or a few functions, and the functions of other parts that it calls.
struct Function {
    name: &'static str,
    part: Part,
    needs: &'static [&'static str],
}

static FUNCTIONS: [Function; 23] = [
    Function { name: "is_nan", part: part!("./wgsl/is_nan.wgsl"), needs: &[] },
    Function { name: "is_finite", part: part!("./wgsl/is_finite.wgsl"), needs: &[] },
    Function { name: "from_bits", part: part!("./wgsl/from_bits.wgsl"), needs: &[] },
    Function { name: "less", part: part!("./wgsl/less.wgsl"), needs: &["is_nan"] },
    Function { name: "less_or_equal", part: part!("./wgsl/less_or_equal.wgsl"), needs: &["is_nan"] },
    Function { name: "equal", part: part!("./wgsl/equal.wgsl"), needs: &["is_nan"] },
    Function { name: "maximum", part: part!("./wgsl/maximum.wgsl"), needs: &["is_nan"] },
    Function { name: "minimum", part: part!("./wgsl/minimum.wgsl"), needs: &["is_nan"] },
    Function { name: "sign_of", part: part!("./wgsl/sign_of.wgsl"), needs: &["is_nan"] },
    Function { name: "exp_parts", part: part!("./wgsl/exp_parts.wgsl"), needs: &[] },
    Function { name: "exponential", part: part!("./wgsl/exponential.wgsl"), needs: &["exp_parts", "is_nan"] },
    Function { name: "expm1", part: part!("./wgsl/expm1.wgsl"), needs: &["exp_parts", "is_nan"] },
    Function { name: "log_parts", part: part!("./wgsl/log_parts.wgsl"), needs: &["from_bits", "less"] },
    Function { name: "logarithm", part: part!("./wgsl/logarithm.wgsl"), needs: &["log_parts"] },
    Function { name: "log1p", part: part!("./wgsl/log1p.wgsl"), needs: &["log_parts"] },
    Function { name: "hyperbolic_tangent", part: part!("./wgsl/hyperbolic_tangent.wgsl"), needs: &["expm1"] },
    Function { name: "sigmoid", part: part!("./wgsl/sigmoid.wgsl"), needs: &["exponential", "less"] },
    Function { name: "error_function", part: part!("./wgsl/error_function.wgsl"), needs: &["exponential"] },
    Function { name: "normal_cdf", part: part!("./wgsl/normal_cdf.wgsl"), needs: &["error_function"] },
    Function { name: "sine_parts", part: part!("./wgsl/sine_parts.wgsl"), needs: &["from_bits", "less_or_equal"] },
    Function { name: "sine", part: part!("./wgsl/sine.wgsl"), needs: &["sine_parts"] },
    Function { name: "cosine", part: part!("./wgsl/cosine.wgsl"), needs: &["sine_parts"] },
    Function { name: "power", part: part!("./wgsl/power.wgsl"), needs: &["exponential", "logarithm", "equal"] },
];

/// The functions that `exprs` call, each once.
pub fn functions(exprs: &[Expr]) -> Vec<Part> {
    let mut needed = BTreeSet::new();
    for op in exprs.iter().flat_map(|expr| expr.ops.iter()) {
        need(called(*op), &mut needed);
        if matches!(op, Op::Constant(bits) if !f32::from_bits(*bits).is_finite()) {
            need(Some("from_bits"), &mut needed);
        }
    }
    for expr in exprs {
        let is_number = |id: Id| !expr.ops[id as usize].is_comparison();
        if expr.ops.iter().any(|op| matches!(op, Op::Select(condition, ..) if is_number(*condition))) {
            need(Some("equal"), &mut needed);
        }
    }
    FUNCTIONS.iter().filter(|function| needed.contains(function.name)).map(|function| function.part.clone()).collect()
}

/// Adds the function of that name, and the functions that it calls.
fn need(name: Option<&'static str>, needed: &mut BTreeSet<&'static str>) {
    let Some(function) = FUNCTIONS.iter().find(|function| Some(function.name) == name) else { return };
    needed.insert(function.name);
    function.needs.iter().for_each(|name| need(Some(name), needed));
}

/// The function that an operation calls, unless it is built into WGSL.
fn called(op: Op) -> Option<&'static str> {
    match op {
        Op::Input(_) | Op::Constant(_) | Op::Select(..) => None,
        // Of those that are built in, no part has the name.
        Op::Unary(kind, _) => kind.wgsl().split('(').next(),
        Op::Binary(kind, ..) => match kind {
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => None,
            Binary::Max => Some("maximum"),
            Binary::Min => Some("minimum"),
            Binary::Pow => Some("power"),
            Binary::Lt => Some("less"),
            Binary::Le => Some("less_or_equal"),
            Binary::Eq | Binary::Ne => Some("equal"),
        },
    }
}

/// `expr` as the function `name` of `n_inputs` arguments `x0`, `x1`, ….
///
/// # Panics
/// If the expression has more inputs.
pub fn function(name: &str, expr: &Expr, n_inputs: usize) -> Part {
    assert!(expr.n_inputs() <= n_inputs, "`{name}` has {n_inputs} arguments, expected {} or more", expr.n_inputs());
    let arguments: Vec<String> = (0..n_inputs).map(|i| format!("x{i}: V")).collect();
    let mut text = format!("fn {name}({}) -> V {{\n", arguments.join(", "));
    let body = Body { ops: &expr.ops };
    for (id, op) in (0..).zip(expr.ops.iter()) {
        if !matches!(op, Op::Input(_) | Op::Constant(_)) {
            let _ = writeln!(text, "    let t{id} = {};", body.operation(*op));
        }
    }
    let _ = writeln!(text, "    return {};\n}}", body.number(in_u32(body.ops.len()) - 1));
    Part::own(name.to_owned(), text)
}

struct Body<'a> {
    ops: &'a [Op],
}

impl Body<'_> {
    /// A value of type `V`.
    fn number(&self, id: Id) -> String {
        match self.ops[id as usize] {
            Op::Input(i) => format!("x{i}"),
            Op::Constant(bits) => constant(f32::from_bits(bits)),
            op if op.is_comparison() => format!("select(V(0.0), V(1.0), t{id})"),
            _ => format!("t{id}"),
        }
    }

    /// A value of type `Mask`.
    fn condition(&self, id: Id) -> String {
        if self.ops[id as usize].is_comparison() { format!("t{id}") } else { format!("!equal({}, V(0.0))", self.number(id)) }
    }

    fn operation(&self, op: Op) -> String {
        let number = |id| self.number(id);
        match (op, called(op)) {
            (Op::Unary(kind, a), _) => kind.wgsl().replace("{}", &number(a)),
            (Op::Binary(Binary::Ne, a, b), _) => format!("!equal({}, {})", number(a), number(b)),
            (Op::Binary(_, a, b), Some(name)) => format!("{name}({}, {})", number(a), number(b)),
            (Op::Binary(kind, a, b), None) => format!("{} {kind} {}", number(a), number(b)),
            (Op::Select(condition, a, b), _) => {
                format!("select({}, {}, {})", number(b), number(a), self.condition(condition))
            }
            (Op::Input(_) | Op::Constant(_), _) => unreachable!("leaves are written in place"),
        }
    }
}

/// The exact number as a literal.
fn constant(value: f32) -> String {
    if !value.is_finite() {
        format!("from_bits({:#010x}u)", value.to_bits())
    } else if value != 0.0 && !value.is_normal() {
        // Too small for a decimal literal on some compilers.
        format!("bitcast<V>(U({:#010x}u))", value.to_bits())
    } else {
        format!("V({value:?})")
    }
}
