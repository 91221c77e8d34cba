use super::activation_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Elementwise, ElementwiseStep, Error, Kernel, TwinArgs, fold_workgroups};

/// An elementwise non-linearity, as PyTorch defines it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Activation {
    /// `x`.
    #[default]
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `max(x, 0) + min(0, α (exp(x / α) - 1))`; Barron 2017, arXiv:1704.07483.
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
    /// Whether the derivative can be had from the output alone, so that a layer need not keep its input.
    pub const fn has_grad_from_output(self) -> bool {
        !matches!(self, Self::Gelu | Self::GeluTanh | Self::Silu)
    }

    pub(crate) fn check_grad_from_output(self, kernel: &'static str) -> Result<(), Error> {
        if self.has_grad_from_output() {
            return Ok(());
        }
        let expected = "an activation whose derivative follows from its output; apply this one as `Activate`";
        Err(Error::Unsupported { kernel, found: format!("{self:?}"), expected })
    }

    /// The number by which the WGSL knows it.
    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::Identity => 0,
            Self::Relu => 1,
            Self::Celu { .. } => 2,
            Self::Sigmoid => 3,
            Self::Tanh => 4,
            Self::Gelu => 5,
            Self::GeluTanh => 6,
            Self::Silu => 7,
        }
    }

    /// CELU's α, 1 for the rest.
    pub(crate) const fn alpha(self) -> f32 {
        match self {
            Self::Celu { alpha } => alpha,
            _ => 1.0,
        }
    }
}

/// `y = act(x)`, element by element.
///
/// # Shapes
/// `x`, `y`: `[n]`.
/// # Dtypes
/// f32.
/// # Reference
/// `torch.nn.functional.{relu, celu, gelu, silu}`, `torch.{sigmoid, tanh}`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activate {
    /// Elements.
    pub n: usize,
    /// The function.
    pub activation: Activation,
}

impl Kernel for Activate {
    fn name(&self) -> &'static str {
        "activate"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("x", DType::F32, self.n), Arg::write("y", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.activate",
            wgsl: module!("activation.wgsl").with_all(self.activation.act_parts()),
            entry: "main",
            constants: self.activation.constants(),
            params: vec![],
            reads: vec![0],
            writes: vec![1],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        activation_cpu::activate(self.activation, args.read(0), args.write(1));
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { n: self.n, steps: vec![ElementwiseStep::Activate(self.activation)] })
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 8 * self.n as u64 }
    }
}

/// `grad_x = grad_y * act'(x)`, element by element, the derivative taken at the saved input.
///
/// # Shapes
/// `grad_y`, `x`, `grad_x`: `[n]`.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActivationGrad {
    /// Elements.
    pub n: usize,
    /// The function.
    pub activation: Activation,
}

impl Kernel for ActivationGrad {
    fn name(&self) -> &'static str {
        "activation_grad"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("grad_y", DType::F32, self.n),
            Arg::read("x", DType::F32, self.n),
            Arg::write("grad_x", DType::F32, self.n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.activation_grad",
            wgsl: module!("activation_grad.wgsl").with_all(self.activation.slope_parts()),
            entry: "main",
            constants: self.activation.constants(),
            params: vec![],
            reads: vec![0, 1],
            writes: vec![2],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        activation_cpu::activation_grad(self.activation, args.read(0), args.read(1), args.write(2));
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { n: self.n, steps: vec![ElementwiseStep::ActivationGrad(self.activation)] })
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: 2 * self.n as u64, bytes: 12 * self.n as u64 }
    }
}

/// `grad_x = grad_y * act'(x)`, the derivative taken from the saved output `y = act(x)`.
///
/// For the activations whose [`Activation::has_grad_from_output`] holds; the rest need [`ActivationGrad`].
///
/// # Shapes
/// `grad_y`, `y`, `grad_x`: `[n]`.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputGrad {
    /// Elements.
    pub n: usize,
    /// The function.
    pub activation: Activation,
}

impl Kernel for OutputGrad {
    fn name(&self) -> &'static str {
        "output_grad"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("grad_y", DType::F32, self.n),
            Arg::read("y", DType::F32, self.n),
            Arg::write("grad_x", DType::F32, self.n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        self.activation.check_grad_from_output(self.name())?;
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.output_grad",
            wgsl: module!("activation_grad.wgsl").with_all(self.activation.slope_from_output_parts()),
            entry: "main",
            constants: self.activation.constants(),
            params: vec![],
            reads: vec![0, 1],
            writes: vec![2],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        activation_cpu::output_grad(self.activation, args.read(0), args.read(1), args.write(2));
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { n: self.n, steps: vec![ElementwiseStep::OutputGrad(self.activation)] })
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: 2 * self.n as u64, bytes: 12 * self.n as u64 }
    }
}
