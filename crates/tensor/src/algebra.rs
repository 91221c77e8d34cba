//! Elementwise arithmetic with PyTorch's names and gradients.

use brisk_kernels::expr::Expr;

use crate::elementwise::{ElementwiseOperation, binary, unary};
use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::tensor::Tensor;

/// Elementwise functions. Two tensors broadcast by NumPy's rules; gradients at kinks and ties are PyTorch's.
///
/// # Errors
/// All: [`Error::Dtype`](crate::Error::Dtype) unless the tensors are f32, f16 or bf16. Of two tensors:
/// [`Error::Shape`](crate::Error::Shape) if they do not broadcast; [`Error::ForeignTensor`](crate::Error::ForeignTensor).
impl Tensor {
    /// `self - b`.
    #[track_caller]
    pub fn sub(&self, b: &Self) -> Self {
        binary(self, b, "sub", |a, b| a - b)
    }

    /// `self / b`.
    #[track_caller]
    pub fn div(&self, b: &Self) -> Self {
        binary(self, b, "div", |a, b| a / b)
    }

    /// `self ^ b`; NaN for a negative base, unless the exponent is an integer.
    #[track_caller]
    pub fn pow(&self, b: &Self) -> Self {
        let [x, y] = [0, 1].map(Expr::input);
        self.graph().apply(ElementwiseOperation::new("pow", x.powf(y)).with_autocast_rule(AutocastRule::Full), &[self, b])
    }

    /// The greater of two; NaN if either is. Where they are equal, each gets half of the gradient.
    #[track_caller]
    pub fn maximum(&self, b: &Self) -> Self {
        binary(self, b, "maximum", |a, b| a.max(b))
    }

    /// The lesser of two; NaN if either is. Where they are equal, each gets half of the gradient.
    #[track_caller]
    pub fn minimum(&self, b: &Self) -> Self {
        binary(self, b, "minimum", |a, b| a.min(b))
    }

    /// 1 where `self` is less than `b`, else 0. No gradient passes through it.
    #[track_caller]
    pub fn less(&self, b: &Self) -> Self {
        self.compare(b, "less", |a, b| a.lt(b))
    }

    /// 1 where `self` equals `b`, else 0. No gradient passes through it.
    #[track_caller]
    pub fn equal(&self, b: &Self) -> Self {
        self.compare(b, "equal", |a, b| Expr::eq(&a, b))
    }

    #[track_caller]
    fn compare(&self, b: &Self, name: &'static str, f: impl FnOnce(Expr, Expr) -> Expr) -> Self {
        let [x, y] = [0, 1].map(Expr::input);
        self.graph().apply(ElementwiseOperation::new(name, f(x, y)).without_derivative(), &[self, b])
    }

    /// `if_true` where this tensor is not 0, else `if_false`; all three broadcast.
    ///
    /// # Reference
    /// `torch.where`.
    #[track_caller]
    pub fn where_(&self, if_true: &Self, if_false: &Self) -> Self {
        let [condition, a, b] = [0, 1, 2].map(Expr::input);
        self.graph().apply(ElementwiseOperation::new("where", condition.select(a, b)), &[self, if_true, if_false])
    }

    /// `-x`.
    #[track_caller]
    pub fn neg(&self) -> Self {
        unary(self, "neg", |x| -x)
    }

    /// `|x|`, with slope 0 at 0.
    #[track_caller]
    pub fn abs(&self) -> Self {
        unary(self, "abs", |x| x.abs())
    }

    /// 1 above zero, -1 below, 0 at zero.
    #[track_caller]
    pub fn sign(&self) -> Self {
        unary(self, "sign", |x| x.sign())
    }

    /// The largest integer not above `x`, with slope 0.
    #[track_caller]
    pub fn floor(&self) -> Self {
        unary(self, "floor", |x| x.floor())
    }

    /// `x²`.
    #[track_caller]
    pub fn square(&self) -> Self {
        unary(self, "square", |x| x.powi(2))
    }

    /// `1 / x`.
    #[track_caller]
    pub fn reciprocal(&self) -> Self {
        self.steep("reciprocal", |x| x.recip())
    }

    /// `e^x`.
    #[track_caller]
    pub fn exp(&self) -> Self {
        let exp = ElementwiseOperation::new("exp", Expr::input(0).exp()).with_derivative_from_output(Expr::input(0));
        self.graph().apply(exp.with_autocast_rule(AutocastRule::Full), &[self])
    }

    /// The natural logarithm.
    #[track_caller]
    pub fn log(&self) -> Self {
        self.steep("log", |x| x.log())
    }

    /// `log(1 + x)`, accurate for small `x`.
    #[track_caller]
    pub fn log1p(&self) -> Self {
        self.steep("log1p", |x| x.log1p())
    }

    /// The square root.
    #[track_caller]
    pub fn sqrt(&self) -> Self {
        unary(self, "sqrt", |x| x.sqrt())
    }

    /// `1 / √x`.
    #[track_caller]
    pub fn rsqrt(&self) -> Self {
        self.steep("rsqrt", |x| x.rsqrt())
    }

    /// The error function.
    #[track_caller]
    pub fn erf(&self) -> Self {
        unary(self, "erf", |x| x.erf())
    }

    /// The sine of radians.
    #[track_caller]
    pub fn sin(&self) -> Self {
        unary(self, "sin", |x| x.sin())
    }

    /// The cosine of radians.
    #[track_caller]
    pub fn cos(&self) -> Self {
        unary(self, "cos", |x| x.cos())
    }

    /// The hyperbolic tangent.
    #[track_caller]
    pub fn tanh(&self) -> Self {
        let (x, y) = (Expr::input(0), Expr::input(0));
        self.graph().apply(ElementwiseOperation::new("tanh", x.tanh()).with_derivative_from_output(1.0 - &y * &y), &[self])
    }

    /// `1 / (1 + e^-x)`.
    #[track_caller]
    pub fn sigmoid(&self) -> Self {
        let (x, y) = (Expr::input(0), Expr::input(0));
        self.graph()
            .apply(ElementwiseOperation::new("sigmoid", x.sigmoid()).with_derivative_from_output(&y * (1.0 - &y)), &[self])
    }

    /// `max(x, 0)`, with slope 0 at 0.
    #[track_caller]
    pub fn relu(&self) -> Self {
        let y = Expr::input(0);
        self.graph()
            .apply(ElementwiseOperation::new("relu", y.relu()).with_derivative_from_output(y.le(0.0).select(0.0, 1.0)), &[self])
    }

    /// `x` above 0, else `negative_slope · x`.
    #[track_caller]
    pub fn leaky_relu(&self, negative_slope: f32) -> Self {
        unary(self, "leaky_relu", |x| x.leaky_relu(negative_slope))
    }

    /// `x Φ(x)`, by the error function.
    #[track_caller]
    pub fn gelu(&self) -> Self {
        unary(self, "gelu", |x| x.gelu())
    }

    /// `x · sigmoid(x)`.
    #[track_caller]
    pub fn silu(&self) -> Self {
        unary(self, "silu", |x| x.silu())
    }

    /// `log(1 + e^x)`; `x` above 20.
    #[track_caller]
    pub fn softplus(&self) -> Self {
        self.steep("softplus", |x| x.softplus())
    }

    /// `x` limited to `low..=high`, with slope 0 at the limits; NaN stays NaN. A limit may be infinite.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) if a limit is NaN.
    #[track_caller]
    pub fn clamp(&self, low: f32, high: f32) -> Self {
        if let Some((name, _)) = [("low", low), ("high", high)].into_iter().find(|(_, limit)| limit.is_nan()) {
            let (found, expected) = (format!("{name} = NaN"), "a number, which may be infinite");
            return self.refused(Error::Refused { op: "clamp", found, expected }, self.shape());
        }
        unary(self, "clamp", |x| x.clamp(low, high))
    }

    /// A function that autocast computes in f32.
    #[track_caller]
    pub(crate) fn steep(&self, name: &'static str, f: impl FnOnce(Expr) -> Expr) -> Self {
        let operation = ElementwiseOperation::new(name, f(Expr::input(0))).with_autocast_rule(AutocastRule::Full);
        self.graph().apply(operation, &[self])
    }
}
