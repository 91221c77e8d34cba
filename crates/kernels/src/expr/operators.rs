//! The operators and functions that expressions are written with.

use std::ops;

use super::Expr;
use super::binary::Binary;
use super::builder::Builder;
use super::unary::{Unary, functions};

impl From<f32> for Expr {
    fn from(value: f32) -> Self {
        Self::constant(value)
    }
}

impl From<&Self> for Expr {
    fn from(expr: &Self) -> Self {
        expr.clone()
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $($expr:ty),*) => {
        $(
            impl<T: Into<Expr>> ops::$trait<T> for $expr {
                type Output = Expr;

                fn $method(self, other: T) -> Expr {
                    self.binary(Binary::$trait, &other.into())
                }
            }

            impl ops::$trait<$expr> for f32 {
                type Output = Expr;

                fn $method(self, other: $expr) -> Expr {
                    Expr::constant(self).binary(Binary::$trait, &other)
                }
            }
        )*
    };
}

operator!(Add, add, Expr, &Expr);
operator!(Sub, sub, Expr, &Expr);
operator!(Mul, mul, Expr, &Expr);
operator!(Div, div, Expr, &Expr);

impl ops::Neg for Expr {
    type Output = Self;

    fn neg(self) -> Self {
        self.negated()
    }
}

impl ops::Neg for &Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        self.negated()
    }
}

macro_rules! methods {
    ($(
        $(#[$doc:meta])*
        $vis:vis $name:ident $method:ident, $wgsl:literal, |$simd:ident, $arguments:tt| $value:expr, |$builder:tt, $x:tt, $y:tt| $slope:expr;
    )*) => {
        /// Functions of one argument. [The module](super) states their errors.
        impl Expr {
            $(
                $(#[$doc])*
                $vis fn $method(&self) -> Self {
                    self.unary(Unary::$name)
                }
            )*
        }
    };
}

functions!(methods);

/// Functions. [The module](super) states their errors.
impl Expr {
    /// `x^n` by repeated squaring, of the reciprocal for a negative `n`. 1 for `n = 0`, even if `x` is NaN.
    pub fn powi(&self, n: i32) -> Self {
        let mut product: Option<Self> = None;
        // The slope of the reciprocal of a product would be finite only where the square of the result is.
        let (mut power, mut rest) = (if n < 0 { self.recip() } else { self.clone() }, n.unsigned_abs());
        while rest > 0 {
            if rest % 2 == 1 {
                product = Some(product.map_or_else(|| power.clone(), |product| product * &power));
            }
            rest /= 2;
            if rest > 0 {
                power = &power * &power;
            }
        }
        product.unwrap_or_else(|| Self::constant(1.0))
    }

    /// `x^y`: NaN for a negative `x`, unless `y` is an integer.
    ///
    /// As in PyTorch, the exponents 0, 1, 2, 3, 0.5, and -0.5, -1, -2 are computed by multiplication, square root and reciprocal.
    pub fn powf(&self, exponent: impl Into<Self>) -> Self {
        let exponent = exponent.into();
        match exponent.as_constant() {
            #[expect(clippy::cast_possible_truncation, reason = "it is one of these")]
            Some(n) if [0.0, 1.0, 2.0, 3.0, -1.0, -2.0].contains(&n) => self.powi(n as i32),
            Some(0.5) => self.sqrt(),
            Some(-0.5) => self.rsqrt(),
            _ => self.binary(Binary::Pow, &exponent),
        }
    }

    /// The greater of two; NaN if either is. `torch.maximum`.
    pub fn max(&self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Max, &other.into())
    }

    /// The lesser of two; NaN if either is. `torch.minimum`.
    pub fn min(&self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Min, &other.into())
    }

    /// `x` limited to `low..=high`; NaN stays NaN. The slope is 0 at the limits, too, as for `torch.clamp`. If `high` is less
    /// than `low`, the result is `high` everywhere; if one of them is NaN, it is NaN everywhere.
    pub fn clamp(&self, low: f32, high: f32) -> Self {
        if low.is_nan() || high.is_nan() {
            return Self::constant(f32::NAN);
        }
        let limited = self.le(low).select(low, self);
        limited.ge(high).select(high, limited)
    }

    /// 1 where it is less than `other`, else 0.
    pub fn lt(&self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Lt, &other.into())
    }

    /// 1 where it is at most `other`, else 0.
    pub fn le(&self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Le, &other.into())
    }

    /// 1 where it is greater than `other`, else 0.
    pub fn gt(&self, other: impl Into<Self>) -> Self {
        other.into().binary(Binary::Lt, self)
    }

    /// 1 where it is at least `other`, else 0.
    pub fn ge(&self, other: impl Into<Self>) -> Self {
        other.into().binary(Binary::Le, self)
    }

    /// 1 where it equals `other`, else 0. (Use `==` to compare two expressions.)
    pub fn eq(&self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Eq, &other.into())
    }

    /// 1 where it does not equal `other`, else 0; 1 where either is NaN.
    pub fn ne(&self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Ne, &other.into())
    }

    /// `if_true` where it is not 0 (NaN is not), else `if_false`: `torch.where(self, if_true, if_false)`.
    ///
    /// The branch that is not taken does not matter, even if it is NaN.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::expr::Expr;
    ///
    /// let x = Expr::input(0);
    /// let safe_log = x.gt(0.0).select(x.log(), 0.0);
    /// assert_eq!(safe_log.evaluate(&[-1.0]), 0.0);
    /// ```
    pub fn select(&self, if_true: impl Into<Self>, if_false: impl Into<Self>) -> Self {
        let mut builder = Builder::default();
        let condition = builder.import(self);
        let (if_true, if_false) = (builder.import(&if_true.into()), builder.import(&if_false.into()));
        let result = builder.select(condition, if_true, if_false);
        builder.finish(result)
    }
}
