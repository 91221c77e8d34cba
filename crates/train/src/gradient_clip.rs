use serde::{Deserialize, Serialize};

/// How gradients that are too large are clipped, after they have been unscaled and before the step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientClip {
    /// All gradients are scaled down together so that their norm is at most this.
    Norm(f32),
    /// Each gradient is clamped to this absolute value.
    Value(f32),
}
