//! The functions of one argument, each in one row: its name in formulas, which is that of its method, its WGSL, its value, its
//! derivative. Their errors are stated by [the module](super).

use std::fmt;

use pulp::{Scalar, Simd};

use super::loops::{Function, replace_large, unary};
use super::operand::Operand;
use super::vector;

/// The functions, as the rows that `$generate` reads. Values are those over a vector `x(0)`; derivatives are expressions of the
/// argument `x` and the value `y`, or `None` if they are zero everywhere.
macro_rules! functions {
    ($generate:ident) => {
        $generate! {
            pub(super) Neg negated, "-{}", |simd, x| simd.neg_f32s(x(0)), |b, _, _| Some(b.constant(-1.0));
            /// `|x|`.
            pub Abs abs, "abs({})", |simd, x| simd.abs_f32s(x(0)), |b, x, _| Some(b.unary(Unary::Sign, x));
            /// 1 above zero, -1 below, 0 for zero and NaN.
            pub Sign sign, "sign_of({})", |simd, x| vector::sign(simd, x(0)), |_, _, _| None;
            /// `e^x`.
            pub Exp exp, "exponential({})", |simd, x| vector::exp(simd, x(0)), |_, _, y| Some(y);
            /// `e^x - 1`, accurate for small `x` too.
            pub Expm1 expm1, "expm1({})", |simd, x| vector::expm1(simd, x(0)), |b, x, _| {
                // Where `y` is close to -1, `y + 1` has few digits.
                Some(b.unary(Unary::Exp, x))
            };
            /// The natural logarithm: -∞ for zero, NaN below.
            pub Log log, "logarithm({})", |simd, x| vector::log(simd, x(0)), |b, x, _| Some(b.unary(Unary::Recip, x));
            /// `log(1 + x)`, accurate for small `x` too.
            pub Log1p log1p, "log1p({})", |simd, x| vector::log1p(simd, x(0)), |b, x, _| {
                let one = b.constant(1.0);
                let sum = b.binary(Binary::Add, x, one);
                Some(b.unary(Unary::Recip, sum))
            };
            /// The square root; NaN below zero.
            pub Sqrt sqrt, "sqrt({})", |simd, x| simd.sqrt_f32s(x(0)), |b, _, y| {
                let half = b.constant(0.5);
                Some(b.binary(Binary::Div, half, y))
            };
            /// `1 / sqrt(x)`.
            pub Rsqrt rsqrt, "1.0 / sqrt({})", |simd, x| simd.div_f32s(simd.splat_f32s(1.0), simd.sqrt_f32s(x(0))), |b, _, y| {
                let (square, scale) = (times(b, y, y), b.constant(-0.5));
                let cube = times(b, square, y);
                Some(times(b, scale, cube))
            };
            /// `1 / x`.
            pub Recip recip, "1.0 / {}", |simd, x| simd.div_f32s(simd.splat_f32s(1.0), x(0)), |b, _, y| {
                let square = times(b, y, y);
                Some(b.unary(Unary::Neg, square))
            };
            /// The hyperbolic tangent.
            pub Tanh tanh, "hyperbolic_tangent({})", |simd, x| vector::tanh(simd, x(0)), |b, _, y| {
                let (one, square) = (b.constant(1.0), times(b, y, y));
                Some(b.binary(Binary::Sub, one, square))
            };
            /// `1 / (1 + e^-x)`.
            pub Sigmoid sigmoid, "sigmoid({})", |simd, x| vector::sigmoid(simd, x(0)), |b, _, y| {
                let one = b.constant(1.0);
                let rest = b.binary(Binary::Sub, one, y);
                Some(times(b, y, rest))
            };
            /// The error function.
            pub Erf erf, "error_function({})", |simd, x| vector::erf(simd, x(0)), |b, x, _| {
                let (square, scale) = (times(b, x, x), b.constant(std::f32::consts::FRAC_2_SQRT_PI));
                let exponent = b.unary(Unary::Neg, square);
                let bell = b.unary(Unary::Exp, exponent);
                Some(times(b, scale, bell))
            };
            /// The distribution function of the standard normal distribution, `(1 + erf(x / √2)) / 2`: within 2⁻²³ of it, so
            /// without relative accuracy where it is small.
            pub(super) NormalCdf normal_cdf, "normal_cdf({})", |simd, x| vector::normal_cdf(simd, x(0)), |b, x, _| {
                let (square, minus_half) = (times(b, x, x), b.constant(-0.5));
                let exponent = times(b, minus_half, square);
                let (bell, scale) = (b.unary(Unary::Exp, exponent), b.constant(NORMAL_DENSITY_AT_0));
                Some(times(b, scale, bell))
            };
            /// The sine of radians.
            pub Sin sin, "sine({})", |simd, x| vector::sin(simd, x(0)), |b, x, _| Some(b.unary(Unary::Cos, x));
            /// The cosine of radians.
            pub Cos cos, "cosine({})", |simd, x| vector::cos(simd, x(0)), |b, x, _| {
                let sin = b.unary(Unary::Sin, x);
                Some(b.unary(Unary::Neg, sin))
            };
            /// The largest integer not above `x`.
            pub Floor floor, "floor({})", |simd, x| vector::floor(simd, x(0)), |_, _, _| None;
            /// 1, or 0 if `x` is infinite or NaN.
            pub IsFinite is_finite, "is_finite({})", |simd, x| vector::is_finite(simd, x(0)), |_, _, _| None;
        }
    };
}

pub(super) use functions;

macro_rules! values {
    ($(
        $(#[$doc:meta])*
        $vis:vis $name:ident $method:ident, $wgsl:literal, |$simd:ident, $arguments:tt| $value:expr, |$builder:tt, $x:tt, $y:tt| $slope:expr;
    )*) => {
        /// A function of one argument.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Unary {
            $($name,)*
        }

        $(
            pub(super) struct $name;

            impl Function for $name {
                #[inline(always)]
                fn call<S: Simd>($simd: S, $arguments: impl Fn(usize) -> S::f32s) -> S::f32s {
                    $value
                }
            }
        )*

        impl Unary {
            /// In WGSL, of the argument `{}`: an operator, a function of WGSL, or one of ours.
            pub(super) const fn wgsl(self) -> &'static str {
                match self {
                    $(Self::$name => $wgsl,)*
                }
            }

            /// Calls `with` for the function over vectors.
            #[inline(always)]
            pub(super) fn with<W: WithFunction>(self, with: W) -> W::Output {
                match self {
                    $(Self::$name => with.call::<$name>(),)*
                }
            }
        }

        impl fmt::Display for Unary {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => stringify!($method),)*
                })
            }
        }
    };
}

functions!(values);

/// Something that is done with a function over vectors, such as to compute all values of a slice.
pub(super) trait WithFunction {
    type Output;

    fn call<F: Function>(self) -> Self::Output;
}

impl Unary {
    /// The value, as the vectorised evaluation computes it.
    pub(crate) fn value(self, a: f32) -> f32 {
        struct Value(f32);

        impl WithFunction for Value {
            type Output = f32;

            fn call<F: Function>(self) -> f32 {
                F::call(Scalar, |_| self.0)
            }
        }

        match self.of_large() {
            Some(of_large) if a.abs() > vector::SIN_LIMIT => of_large(a),
            _ => self.with(Value(a)),
        }
    }

    /// The values for all of `a`.
    #[inline(always)]
    pub(super) fn run<S: Simd>(self, simd: S, a: Operand<'_>, y: &mut [f32]) {
        struct Values<'a, 'b, S>(S, Operand<'a>, &'b mut [f32]);

        impl<S: Simd> WithFunction for Values<'_, '_, S> {
            type Output = ();

            #[inline(always)]
            fn call<F: Function>(self) {
                unary::<S, F>(self.0, self.1, self.2);
            }
        }

        self.with(Values(simd, a, y));
        if let Some(of_large) = self.of_large() {
            replace_large(a, y, of_large);
        }
    }

    /// The value for arguments beyond [`vector::SIN_LIMIT`], if the vectorised function does not reduce them.
    const fn of_large(self) -> Option<fn(f32) -> f32> {
        match self {
            Self::Sin => Some(vector::sin_of_large),
            Self::Cos => Some(vector::cos_of_large),
            _ => None,
        }
    }
}
