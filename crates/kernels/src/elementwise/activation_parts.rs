//! The parts of WGSL modules that compute an activation or its derivative, over `V`, which is `f32` or a vector of them.

use crate::core::module::part;
use crate::{Activation, Part};

/// What activations are made of; over `V` and `U`, the same of `u32`.
pub(crate) const FUNCTIONS: Part = part!("functions.wgsl");

impl Activation {
    /// Gives `act(v: V) -> V`.
    pub(crate) fn act_parts(self) -> Vec<Part> {
        let body = match self {
            Self::Identity => "return v;",
            Self::Relu => "return select(v, V(0.0), v < V(0.0));",
            Self::Celu { .. } => "return select(v, ALPHA * (exp(min(v, V(0.0)) / ALPHA) - 1.0), v < V(0.0));",
            Self::Sigmoid => "return sigmoid(v);",
            Self::Tanh => "return safe_tanh(v);",
            Self::Gelu => "return 0.5 * v * (1.0 + erf(v * 0.70710678));",
            Self::GeluTanh => "return 0.5 * v * (1.0 + safe_tanh(0.79788456 * (v + 0.044715 * v * v * v)));",
            Self::Silu => "return v * sigmoid(v);",
        };
        self.parts("act", body)
    }

    /// Gives `slope(v: V) -> V`, the derivative at the input `v`.
    pub(crate) fn slope_parts(self) -> Vec<Part> {
        let body = match self {
            Self::Identity => "return V(1.0);",
            Self::Relu => "return select(V(0.0), V(1.0), v > V(0.0));",
            Self::Celu { .. } => "return exp(min(v, V(0.0)) / ALPHA);",
            Self::Sigmoid => "let s = sigmoid(v); return s * (1.0 - s);",
            Self::Tanh => "let t = safe_tanh(v); return 1.0 - t * t;",
            Self::Gelu => "return 0.5 * (1.0 + erf(v * 0.70710678)) + v * 0.39894228 * exp(-min(0.5 * v * v, V(87.0)));",
            Self::GeluTanh => "return gelu_tanh_slope(v);",
            Self::Silu => "let s = sigmoid(v); return s * (1.0 + v * (1.0 - s));",
        };
        self.parts("slope", body)
    }

    /// Gives `slope(v: V) -> V`, the derivative from the output `v`. There is none for activations without
    /// [`has_grad_from_output`](Self::has_grad_from_output), which the kernels refuse when they are checked.
    pub(crate) fn slope_from_output_parts(self) -> Vec<Part> {
        let body = match self {
            Self::Identity => "return V(1.0);",
            Self::Relu => "return select(V(0.0), V(1.0), v > V(0.0));",
            Self::Celu { .. } => "return select(v / ALPHA + 1.0, V(1.0), v > V(0.0));",
            Self::Sigmoid => "return v * (1.0 - v);",
            Self::Tanh => "return 1.0 - v * v;",
            Self::Gelu | Self::GeluTanh | Self::Silu => return Vec::new(),
        };
        self.parts("slope", body)
    }

    /// `fn name(v: V) -> V { body }`, and what it calls.
    fn parts(self, name: &str, body: &str) -> Vec<Part> {
        let alpha = if matches!(self, Self::Celu { .. }) { "override ALPHA: f32;\n" } else { "" };
        let text = format!("{alpha}fn {name}(v: V) -> V {{ {body} }}\n");
        let function = Part { name: format!("{name} of {self:?}").into(), text: text.into() };
        let is_plain = matches!(self, Self::Identity | Self::Relu | Self::Celu { .. });
        [function].into_iter().chain((!is_plain).then_some(FUNCTIONS)).collect()
    }

    /// The constants of these parts.
    pub(crate) fn constants(self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Celu { alpha } => vec![("ALPHA", f64::from(alpha))],
            _ => Vec::new(),
        }
    }
}
