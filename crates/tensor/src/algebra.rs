//! Elementwise arithmetic with PyTorch's names and gradients.

use brisk_kernels::expr::Expr;

use crate::elementwise::{Elementwise, binary, unary};
use crate::{AutocastRule, Error, Tensor};

/// Elementwise functions. Two tensors broadcast by NumPy's rules; gradients at kinks and ties are PyTorch's.
///
/// # Errors
/// All: [`Error::Dtype`] unless the tensors are f32, f16 or bf16. Of two tensors: [`Error::Shape`] if they do not broadcast; [`Error::ForeignTensor`].
impl Tensor {
    /// `self - b`.
    pub fn sub(&self, b: &Self) -> Result<Self, Error> {
        binary(self, b, "sub", |a, b| a - b)
    }

    /// `self / b`.
    pub fn div(&self, b: &Self) -> Result<Self, Error> {
        binary(self, b, "div", |a, b| a / b)
    }

    /// `self ^ b`; NaN for a negative base, unless the exponent is an integer.
    pub fn pow(&self, b: &Self) -> Result<Self, Error> {
        let [x, y] = [0, 1].map(Expr::input);
        self.graph().apply(Elementwise::new("pow", x.powf(y)).with_autocast_rule(AutocastRule::Full), &[self, b])
    }

    /// The greater of two; NaN if either is. Where they are equal, each gets half of the gradient.
    pub fn maximum(&self, b: &Self) -> Result<Self, Error> {
        binary(self, b, "maximum", |a, b| a.max(b))
    }

    /// The lesser of two; NaN if either is. Where they are equal, each gets half of the gradient.
    pub fn minimum(&self, b: &Self) -> Result<Self, Error> {
        binary(self, b, "minimum", |a, b| a.min(b))
    }

    /// 1 where `self` is less than `b`, else 0.
    pub fn less(&self, b: &Self) -> Result<Self, Error> {
        binary(self, b, "less", |a, b| a.lt(b))
    }

    /// 1 where `self` equals `b`, else 0.
    pub fn equal(&self, b: &Self) -> Result<Self, Error> {
        binary(self, b, "equal", |a, b| Expr::eq(&a, b))
    }

    /// `if_true` where this tensor is not 0, else `if_false`; all three broadcast.
    ///
    /// # Reference
    /// `torch.where`.
    pub fn where_(&self, if_true: &Self, if_false: &Self) -> Result<Self, Error> {
        let [condition, a, b] = [0, 1, 2].map(Expr::input);
        self.graph().apply(Elementwise::new("where", condition.select(a, b)), &[self, if_true, if_false])
    }

    /// `-x`.
    pub fn neg(&self) -> Result<Self, Error> {
        unary(self, "neg", |x| -x)
    }

    /// `|x|`, with slope 0 at 0.
    pub fn abs(&self) -> Result<Self, Error> {
        unary(self, "abs", |x| x.abs())
    }

    /// 1 above zero, -1 below, 0 at zero.
    pub fn sign(&self) -> Result<Self, Error> {
        unary(self, "sign", |x| x.sign())
    }

    /// The largest integer not above `x`, with slope 0.
    pub fn floor(&self) -> Result<Self, Error> {
        unary(self, "floor", |x| x.floor())
    }

    /// `x²`.
    pub fn square(&self) -> Result<Self, Error> {
        unary(self, "square", |x| x.powi(2))
    }

    /// `1 / x`.
    pub fn reciprocal(&self) -> Result<Self, Error> {
        self.steep("reciprocal", |x| x.recip())
    }

    /// `e^x`.
    pub fn exp(&self) -> Result<Self, Error> {
        let exp = Elementwise::new("exp", Expr::input(0).exp()).with_derivative_from_output(Expr::input(0));
        self.graph().apply(exp.with_autocast_rule(AutocastRule::Full), &[self])
    }

    /// The natural logarithm.
    pub fn log(&self) -> Result<Self, Error> {
        self.steep("log", |x| x.log())
    }

    /// `log(1 + x)`, accurate for small `x`.
    pub fn log1p(&self) -> Result<Self, Error> {
        self.steep("log1p", |x| x.log1p())
    }

    /// The square root.
    pub fn sqrt(&self) -> Result<Self, Error> {
        unary(self, "sqrt", |x| x.sqrt())
    }

    /// `1 / √x`.
    pub fn rsqrt(&self) -> Result<Self, Error> {
        self.steep("rsqrt", |x| x.rsqrt())
    }

    /// The error function.
    pub fn erf(&self) -> Result<Self, Error> {
        unary(self, "erf", |x| x.erf())
    }

    /// The sine of radians.
    pub fn sin(&self) -> Result<Self, Error> {
        unary(self, "sin", |x| x.sin())
    }

    /// The cosine of radians.
    pub fn cos(&self) -> Result<Self, Error> {
        unary(self, "cos", |x| x.cos())
    }

    /// The hyperbolic tangent.
    pub fn tanh(&self) -> Result<Self, Error> {
        let (x, y) = (Expr::input(0), Expr::input(0));
        self.graph().apply(Elementwise::new("tanh", x.tanh()).with_derivative_from_output(1.0 - &y * &y), &[self])
    }

    /// `1 / (1 + e^-x)`.
    pub fn sigmoid(&self) -> Result<Self, Error> {
        let (x, y) = (Expr::input(0), Expr::input(0));
        self.graph().apply(Elementwise::new("sigmoid", x.sigmoid()).with_derivative_from_output(&y * (1.0 - &y)), &[self])
    }

    /// `max(x, 0)`, with slope 0 at 0.
    pub fn relu(&self) -> Result<Self, Error> {
        let y = Expr::input(0);
        self.graph().apply(Elementwise::new("relu", y.relu()).with_derivative_from_output(y.gt(0.0)), &[self])
    }

    /// `x` above 0, else `negative_slope · x`.
    pub fn leaky_relu(&self, negative_slope: f32) -> Result<Self, Error> {
        unary(self, "leaky_relu", |x| x.leaky_relu(negative_slope))
    }

    /// `x Φ(x)`, by the error function.
    pub fn gelu(&self) -> Result<Self, Error> {
        unary(self, "gelu", |x| x.gelu())
    }

    /// `x · sigmoid(x)`.
    pub fn silu(&self) -> Result<Self, Error> {
        unary(self, "silu", |x| x.silu())
    }

    /// `log(1 + e^x)`; `x` above 20.
    pub fn softplus(&self) -> Result<Self, Error> {
        self.steep("softplus", |x| x.softplus())
    }

    /// `x` limited to `low..=high`, with slope 0 at the limits; NaN stays NaN.
    pub fn clamp(&self, low: f32, high: f32) -> Result<Self, Error> {
        unary(self, "clamp", |x| x.clamp(low, high))
    }

    /// A function that autocast computes in f32.
    fn steep(&self, name: &'static str, f: impl FnOnce(Expr) -> Expr) -> Result<Self, Error> {
        let operation = Elementwise::new(name, f(Expr::input(0))).with_autocast_rule(AutocastRule::Full);
        self.graph().apply(operation, &[self])
    }
}
