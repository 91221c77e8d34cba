use crate::expr::{self, Expr, wgsl};
use crate::{Error, Part};

/// An elementwise non-linearity, as PyTorch defines it, by name: what epilogues and layers take. [`expressions`](Self::expressions) is what it computes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Activation {
    /// `x`.
    #[default]
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `x` above 0, else `α (exp(x / α) - 1)`; Barron 2017, arXiv:1704.07483.
    Celu {
        /// Where the negative side levels off.
        alpha: f32,
    },
    /// `x Φ(x)` by the error function; Hendrycks & Gimpel 2016, arXiv:1606.08415.
    Gelu,
    /// GELU by its tanh approximation.
    GeluTanh,
    /// `x σ(x)`, also called swish.
    Silu,
    /// `σ(x) = 1 / (1 + exp(-x))`.
    Sigmoid,
    /// `tanh(x)`.
    Tanh,
}

impl Activation {
    /// The function and its derivatives as expressions.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::Activation;
    /// use brisk_kernels::expr::Expr;
    ///
    /// assert_eq!(Activation::Silu.expressions().forward, Expr::input(0).silu());
    /// ```
    pub fn expressions(self) -> expr::Activation {
        match self {
            Self::Identity => expr::Activation::identity(),
            Self::Relu => expr::Activation::relu(),
            Self::Celu { alpha } => expr::Activation::celu(alpha),
            Self::Gelu => expr::Activation::gelu(),
            Self::GeluTanh => expr::Activation::gelu_tanh(),
            Self::Silu => expr::Activation::silu(),
            Self::Sigmoid => expr::Activation::sigmoid(),
            Self::Tanh => expr::Activation::tanh(),
        }
    }

    /// The function of input 0.
    pub fn forward(self) -> Expr {
        self.expressions().forward
    }

    /// The gradient of the input: that of the output, input 0, times the derivative at the activation's input, input 1.
    pub fn grad(self) -> Expr {
        self.expressions().slope().substitute(&[Expr::input(1)]).times_gradient(&Expr::input(0))
    }

    /// The same from the activation's output, input 1; `None` for those whose derivative needs the input.
    pub fn grad_from_output(self) -> Option<Expr> {
        let slope = self.expressions().from_output.filter(|_| self.has_grad_from_output())?;
        Some(slope.substitute(&[Expr::input(1)]).times_gradient(&Expr::input(0)))
    }

    /// Whether the derivative follows from the output, so that a layer need not keep its input.
    pub const fn has_grad_from_output(self) -> bool {
        !matches!(self, Self::Gelu | Self::GeluTanh | Self::Silu)
    }

    pub(crate) fn check_grad_from_output(self, kernel: &'static str) -> Result<(), Error> {
        if self.has_grad_from_output() {
            return Ok(());
        }
        let expected = "an activation whose derivative follows from its output; apply this one by a `Map` of its own";
        Err(Error::Unsupported { kernel, found: format!("{self:?}"), expected })
    }

    /// The one for which `is_it` holds, of those that an epilogue computes. The constants of an expression are the candidates for CELU's α.
    pub(crate) fn of_epilogue(expr: &Expr, is_it: impl Fn(Self) -> bool) -> Option<Self> {
        let alphas = expr.constants().chain([1.0]).filter(|alpha| *alpha > 0.0).map(|alpha| Self::Celu { alpha });
        [Self::Identity, Self::Relu, Self::Sigmoid, Self::Tanh].into_iter().chain(alphas).find(|activation| is_it(*activation))
    }

    /// Gives `act(x0: V) -> V`, over the types of [`wgsl::Lanes::part`].
    pub(crate) fn act_parts(self) -> Vec<Part> {
        parts("act", &self.forward())
    }

    /// Gives `through(x0: V, x1: V) -> V`: the gradient `x0` times the derivative from the output `x1`. There is none for activations without
    /// [`has_grad_from_output`](Self::has_grad_from_output), which the kernels refuse when they are checked.
    pub(crate) fn through_parts(self) -> Vec<Part> {
        self.grad_from_output().map_or_else(Vec::new, |grad| parts("through", &grad))
    }
}

/// The expression as a function, after the functions that it calls.
fn parts(name: &str, expr: &Expr) -> Vec<Part> {
    let n_inputs = if name == "act" { 1 } else { 2 };
    wgsl::functions(std::slice::from_ref(expr)).into_iter().chain([wgsl::function(name, expr, n_inputs)]).collect()
}
