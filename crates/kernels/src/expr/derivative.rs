//! Symbolic derivatives, with PyTorch's conventions at ties and kinks.

use super::Expr;
use super::binary::Binary;
use super::builder::Builder;
use super::op::{Id, Op};
use super::unary::{Unary, functions};
use super::vector::NORMAL_DENSITY_AT_0;

impl Expr {
    /// The derivative with respect to input `input`, as an expression of the same inputs.
    ///
    /// It is the value that PyTorch's `backward` gives, also at points without a derivative: at 0, `abs` and [`relu`](Expr::relu)
    /// have slope 0; where the arguments of `max` or `min` are equal each gets half; [`clamp`](Expr::clamp) has slope 0 at its
    /// limits; `floor`, `sign`, `is_finite` and comparisons have slope 0. A condition of [`select`](Expr::select) has no
    /// derivative. Terms that do not depend on the input are left out rather than multiplied by zero, so that they add no NaN.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::expr::Expr;
    ///
    /// let x = Expr::input(0);
    /// assert_eq!((&x * &x + 3.0).derivative(0), &x + &x);
    /// assert_eq!(x.tanh().derivative(0), 1.0 - x.tanh() * x.tanh());
    /// ```
    pub fn derivative(&self, input: usize) -> Self {
        let mut builder = Builder::default();
        // The derivative of each operation; `None` if it does not depend on the input.
        let mut ids: Vec<Id> = Vec::with_capacity(self.ops.len());
        let mut slopes: Vec<Option<Id>> = Vec::with_capacity(self.ops.len());
        for &op in self.ops.iter() {
            let id = builder.push(op.map_arguments(|id| ids[id as usize]));
            let slope_of = |id: Id| slopes[id as usize];
            let slope = match op {
                Op::Input(i) => (i as usize == input).then(|| builder.constant(1.0)),
                Op::Constant(_) => None,
                Op::Unary(kind, a) => slope_of(a)
                    .and_then(|slope| kind.slope(&mut builder, ids[a as usize], id).map(|by| (by, slope)))
                    .map(|(by, slope)| times(&mut builder, by, slope)),
                Op::Binary(kind, a, b) => {
                    let arguments = [ids[a as usize], ids[b as usize]];
                    binary_slope(&mut builder, kind, arguments, id, [slope_of(a), slope_of(b)])
                }
                Op::Select(condition, a, b) => match (slope_of(a), slope_of(b)) {
                    (None, None) => None,
                    (a, b) => {
                        let [a, b] = [a, b].map(|slope| slope.unwrap_or_else(|| builder.constant(0.0)));
                        Some(builder.select(ids[condition as usize], a, b))
                    }
                },
            };
            ids.push(id);
            slopes.push(slope);
        }
        let slope = slopes.last().copied().flatten().unwrap_or_else(|| builder.constant(0.0));
        builder.finish(slope)
    }

    /// This derivative times a gradient, as a backward pass needs it: where the derivative is the constant 0, like that of a ReLU
    /// below 0, the result is 0, even if the gradient is infinite or NaN.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::expr::Expr;
    ///
    /// let (x, dy) = (Expr::input(0), Expr::input(1));
    /// let dx = x.relu().derivative(0).times_gradient(&dy);
    /// assert_eq!(dx.evaluate(&[-1.0, f32::INFINITY]), 0.0);
    /// ```
    pub fn times_gradient(&self, grad: &Self) -> Self {
        let mut builder = Builder::default();
        let (slope, grad) = (builder.import(self), builder.import(grad));
        let result = times_gradient(&mut builder, slope, grad);
        builder.finish(result)
    }
}

macro_rules! slopes {
    ($(
        $(#[$doc:meta])*
        $vis:vis $name:ident $method:ident, $wgsl:literal, |$simd:ident, $arguments:tt| $value:expr, |$builder:tt, $x:tt, $y:tt| $slope:expr;
    )*) => {
        impl Unary {
            /// The derivative at `x`, given the value `y`; `None` if it is zero everywhere.
            fn slope(self, builder: &mut Builder, x: Id, y: Id) -> Option<Id> {
                match self {
                    $(Self::$name => {
                        let ($builder, $x, $y) = (builder, x, y);
                        $slope
                    })*
                }
            }
        }
    };
}

functions!(slopes);

fn times_gradient(builder: &mut Builder, slope: Id, grad: Id) -> Id {
    match builder.op(slope) {
        Op::Constant(_) if builder.as_constant(slope) == Some(0.0) => builder.constant(0.0),
        Op::Binary(kind, ..) if kind.is_comparison() => {
            let zero = builder.constant(0.0);
            builder.select(slope, grad, zero)
        }
        Op::Select(condition, a, b) if builder.as_constant(a).is_some() || builder.as_constant(b).is_some() => {
            let (a, b) = (times_gradient(builder, a, grad), times_gradient(builder, b, grad));
            builder.select(condition, a, b)
        }
        _ => times(builder, slope, grad),
    }
}

fn times(builder: &mut Builder, a: Id, b: Id) -> Id {
    builder.binary(Binary::Mul, a, b)
}

/// The derivative of `y = a ∘ b`, from those of `a` and `b`; `None` if it is zero everywhere.
fn binary_slope(builder: &mut Builder, kind: Binary, [a, b]: [Id; 2], y: Id, slopes: [Option<Id>; 2]) -> Option<Id> {
    let [da, db] = slopes;
    match kind {
        Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne => None,
        Binary::Add => sum(builder, da, db),
        Binary::Sub => {
            let db = db.map(|db| builder.unary(Unary::Neg, db));
            sum(builder, da, db)
        }
        Binary::Mul => {
            let da = da.map(|da| times(builder, da, b));
            let db = db.map(|db| times(builder, db, a));
            sum(builder, da, db)
        }
        Binary::Div => {
            let da = da.map(|da| builder.binary(Binary::Div, da, b));
            let db = db.map(|db| {
                let by = builder.binary(Binary::Div, y, b);
                let by = builder.unary(Unary::Neg, by);
                times(builder, db, by)
            });
            sum(builder, da, db)
        }
        // The argument that is not chosen gets 0, equal arguments get half each, and both get all of it where one is NaN.
        Binary::Max | Binary::Min => {
            let [low, high] = if kind == Binary::Max { [a, b] } else { [b, a] };
            let a_loses = builder.binary(Binary::Lt, low, high);
            let b_loses = builder.binary(Binary::Lt, high, low);
            let equal = builder.binary(Binary::Eq, a, b);
            let (zero, half, one) = (builder.constant(0.0), builder.constant(0.5), builder.constant(1.0));
            let share = builder.select(equal, half, one);
            let mut part = |slope: Option<Id>, loses| {
                slope.map(|slope| {
                    let share = builder.select(loses, zero, share);
                    times(builder, slope, share)
                })
            };
            let (da, db) = (part(da, a_loses), part(db, b_loses));
            sum(builder, da, db)
        }
        Binary::Pow => {
            let da = da.map(|da| {
                let by = slope_of_base(builder, a, b);
                times(builder, da, by)
            });
            let db = db.map(|db| {
                let by = slope_of_exponent(builder, a, b, y);
                times(builder, db, by)
            });
            sum(builder, da, db)
        }
    }
}

fn sum(builder: &mut Builder, a: Option<Id>, b: Option<Id>) -> Option<Id> {
    match (a, b) {
        (Some(a), Some(b)) => Some(builder.binary(Binary::Add, a, b)),
        (a, b) => a.or(b),
    }
}

/// `b a^(b - 1)`, and 0 where `b` is 0.
fn slope_of_base(builder: &mut Builder, a: Id, b: Id) -> Id {
    let (zero, one) = (builder.constant(0.0), builder.constant(1.0));
    let exponent = builder.binary(Binary::Sub, b, one);
    let power = builder.binary(Binary::Pow, a, exponent);
    let slope = times(builder, b, power);
    let is_zero = builder.binary(Binary::Eq, b, zero);
    builder.select(is_zero, zero, slope)
}

/// `y log(a)`, and 0 where `a` is 0 and `b` is not negative.
fn slope_of_exponent(builder: &mut Builder, a: Id, b: Id, y: Id) -> Id {
    let zero = builder.constant(0.0);
    let log = builder.unary(Unary::Log, a);
    let slope = times(builder, y, log);
    let is_zero = builder.binary(Binary::Eq, a, zero);
    let is_not_negative = builder.binary(Binary::Le, zero, b);
    let slope_at_zero = builder.select(is_not_negative, zero, slope);
    builder.select(is_zero, slope_at_zero, slope)
}
