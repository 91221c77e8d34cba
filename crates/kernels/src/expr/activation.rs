//! Activation functions as expressions, as defined by PyTorch.

use super::Expr;
use crate::dtype::DType;

/// An activation function: an expression of input 0. The default is the identity.
///
/// Layers, and the [epilogues](crate::Epilogue) of products, convolutions and normalisations, fuse any expression into their
/// kernel. A backward pass reads the function's output if [`from_output`](Self::from_output) gives the derivative from it, and
/// else its input.
///
/// # Examples
/// ```
/// use brisk_kernels::Activation;
/// use brisk_kernels::expr::Expr;
///
/// assert_eq!(Activation::relu().forward, Expr::input(0).relu());
/// // An activation of your own: its derivative is 2 √y.
/// let x = Expr::input(0);
/// let from_output = Some(x.sqrt() * 2.0);
/// let squared_relu = Activation { forward: x.relu().powi(2), from_output, from_f32_output: false };
/// assert_eq!(squared_relu.slope().evaluate(&[3.0]), 6.0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Activation {
    /// The function, of input 0.
    pub forward: Expr,
    /// The derivative as an expression of the *output* as input 0, if there is one: a layer then need not keep its input.
    pub from_output: Option<Expr>,
    /// Whether it needs an output in f32: then a layer whose results are stored in 16 bits keeps its input.
    pub from_f32_output: bool,
}

impl Activation {
    /// The activation of a layer whose results are stored as `dtype`: the same, without a derivative from the output if that
    /// [needs an output in f32](Self::from_f32_output) and does not get one.
    pub fn stored_as(self, dtype: DType) -> Self {
        let is_precise = dtype == DType::F32 || !self.from_f32_output;
        Self { from_output: self.from_output.filter(|_| is_precise), ..self }
    }

    /// The derivative as an expression of the input.
    pub fn slope(&self) -> Expr {
        self.forward.derivative(0)
    }

    /// The gradient of the input: that of the output, input 0, times the derivative at the activation's input, input 1.
    pub fn grad(&self) -> Expr {
        self.slope().substitute(&[Expr::input(1)]).times_gradient(&Expr::input(0))
    }

    /// The same from the activation's output, input 1; `None` for functions whose derivative needs the input.
    pub fn grad_from_output(&self) -> Option<Expr> {
        let slope = self.from_output.as_ref()?;
        Some(slope.substitute(&[Expr::input(1)]).times_gradient(&Expr::input(0)))
    }

    /// Whether it is the identity.
    pub fn is_identity(&self) -> bool {
        self.forward == Expr::input(0)
    }

    fn with_slope_from_output(forward: Expr, from_output: Expr) -> Self {
        Self { forward, from_output: Some(from_output), from_f32_output: false }
    }

    /// `x`: no activation.
    pub fn identity() -> Self {
        Self::with_slope_from_output(Expr::input(0), Expr::constant(1.0))
    }

    /// [`Expr::relu`].
    pub fn relu() -> Self {
        let y = Expr::input(0);
        Self::with_slope_from_output(y.relu(), y.le(0.0).select(0.0, 1.0))
    }

    /// [`Expr::leaky_relu`]. A positive slope keeps the sign; otherwise there is no derivative from the output.
    pub fn leaky_relu(negative_slope: f32) -> Self {
        let y = Expr::input(0);
        let forward = y.leaky_relu(negative_slope);
        let from_output = (negative_slope > 0.0).then(|| y.gt(0.0).select(1.0, negative_slope));
        Self { forward, from_output, from_f32_output: false }
    }

    /// [`Expr::celu`]. Has a derivative from an output in f32 for a positive `alpha`, as PyTorch's `celu_` has: within a rounding
    /// of the output of it, so without relative accuracy far below 0. For that, set [`from_output`](Self::from_output) to `None`.
    /// Products and convolutions with results in 16 bits keep the input, as PyTorch's `celu` does.
    pub fn celu(alpha: f32) -> Self {
        let y = Expr::input(0);
        let forward = y.celu(alpha);
        let from_output = (alpha > 0.0).then(|| y.le(0.0).select((&y + alpha) * (1.0 / alpha), 1.0));
        Self { forward, from_output, from_f32_output: true }
    }

    /// [`Expr::tanh`].
    pub fn tanh() -> Self {
        let y = Expr::input(0);
        Self::with_slope_from_output(y.tanh(), 1.0 - &y * &y)
    }

    /// [`Expr::sigmoid`].
    pub fn sigmoid() -> Self {
        let y = Expr::input(0);
        Self::with_slope_from_output(y.sigmoid(), &y * (1.0 - &y))
    }
}

/// Activations whose derivative needs the input.
macro_rules! from_input {
    ($($(#[$doc:meta])* $name:ident($($setting:ident)?);)*) => {
        impl Activation {
            $(
                $(#[$doc])*
                pub fn $name($($setting: f32)?) -> Self {
                    Self { forward: Expr::input(0).$name($($setting)?), from_output: None, from_f32_output: false }
                }
            )*
        }
    };
}

from_input! {
    /// [`Expr::elu`]. Its derivative needs the input: far below 0, rounding leaves few digits of it in the output.
    elu(alpha);
    /// [`Expr::selu`]. Its derivative needs the input, as that of [`elu`](Self::elu) does.
    selu();
    /// [`Expr::gelu`].
    gelu();
    /// [`Expr::gelu_tanh`].
    gelu_tanh();
    /// [`Expr::silu`].
    silu();
    /// [`Expr::mish`].
    mish();
    /// [`Expr::softplus`].
    softplus();
}

impl Default for Activation {
    fn default() -> Self {
        Self::identity()
    }
}

const SELU_SCALE: f32 = 1.050_701;
const SELU_ALPHA: f32 = 1.673_263_2;

/// Activation functions.
impl Expr {
    /// `max(x, 0)`, with slope 0 at 0; NaN stays NaN.
    pub fn relu(&self) -> Self {
        self.le(0.0).select(0.0, self)
    }

    /// `x` above 0, else `negative_slope x`; [`relu`](Self::relu) for a slope of 0, which not every GPU multiplies NaN by.
    pub fn leaky_relu(&self, negative_slope: f32) -> Self {
        if negative_slope == 0.0 {
            return self.relu();
        }
        self.gt(0.0).select(self, self * negative_slope)
    }

    /// `x` above 0, else `alpha (e^x - 1)`; Clevert, Unterthiner & Hochreiter 2015, arXiv:1511.07289.
    pub fn elu(&self, alpha: f32) -> Self {
        self.le(0.0).select(self.expm1() * alpha, self)
    }

    /// ELU with the slope and the `alpha` for which activations keep mean 0 and variance 1 through layers; Klambauer,
    /// Unterthiner, Mayr & Hochreiter 2017, arXiv:1706.02515.
    pub fn selu(&self) -> Self {
        self.elu(SELU_ALPHA) * SELU_SCALE
    }

    /// `x` above 0, else `alpha (e^(x / alpha) - 1)`; Barron 2017, arXiv:1704.07483. As in PyTorch, the argument is `x` times the
    /// reciprocal of `alpha`.
    pub fn celu(&self, alpha: f32) -> Self {
        self.le(0.0).select((self * (1.0 / alpha)).expm1() * alpha, self)
    }

    /// `x Φ(x)`, with the error function; Hendrycks & Gimpel 2016, arXiv:1606.08415.
    pub fn gelu(&self) -> Self {
        self * self.normal_cdf()
    }

    /// GELU with the tanh approximation: `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
    pub fn gelu_tanh(&self) -> Self {
        let cubic = self * self * self * 0.044_715;
        let inner = (self + cubic) * 0.797_884_6;
        self * 0.5 * (1.0 + inner.tanh())
    }

    /// `x σ(x)`, also called swish.
    pub fn silu(&self) -> Self {
        self * self.sigmoid()
    }

    /// `x tanh(softplus(x))`; Misra 2019, arXiv:1908.08681. With `e = eˣ`, the tangent is `(e² + 2e) / (e² + 2e + 2)`: one
    /// exponential instead of three functions; it is 1 in f32 beyond 20.
    pub fn mish(&self) -> Self {
        let e = self.min(20.0).exp();
        let n = &e * (&e + 2.0);
        self * (&n / (&n + 2.0))
    }

    /// `log(1 + e^x)`; `x` itself beyond 20, as in PyTorch, where both are the same number in f32.
    pub fn softplus(&self) -> Self {
        self.gt(20.0).select(self, self.exp().log1p())
    }
}
