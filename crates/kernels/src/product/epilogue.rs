//! The part of a WGSL module that finishes sums before they are stored.

use crate::expr::wgsl::Lanes;
use crate::{Epilogue, Part};

/// How a module holds the results that it finishes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Results {
    /// Four of a row as `vec4f`: `finished(sum: V, i: u32, col: u32) -> V`, where `i` is the index of their vector in the result, and `col` that
    /// in a row.
    Four,
    /// Two as `vec2f`: `finished(sum: V, at: vec2u, cols: vec2u) -> V`, where `at` are their indices in the result, and `cols` those in their
    /// rows.
    Two,
}

impl Epilogue {
    /// Gives `finished`, over the group `FUSED` and the binding `fused` where the epilogue reads a further argument.
    pub(crate) fn parts(self, results: Results) -> Vec<Part> {
        let (lanes, at, at_type) = match results {
            Results::Four => (Lanes::Four, ["i", "col"], "u32"),
            Results::Two => (Lanes::Two, ["at", "cols"], "vec2u"),
        };
        let fused = |at: &str| match results {
            Results::Four => format!("load_fused(fused[{at}])"),
            Results::Two => format!("vec2f(load_fused({at}.x), load_fused({at}.y))"),
        };
        let body = match self {
            Self::None => "sum".to_owned(),
            Self::Activation(_) => "act(sum)".to_owned(),
            Self::Bias(_) => format!("act(sum + {})", fused(at[1])),
            Self::OutputGrad(_) => format!("through(sum, {})", fused(at[0])),
        };
        let [i, col] = at;
        let text = format!("fn finished(sum: V, {i}: {at_type}, {col}: {at_type}) -> V {{ return {body}; }}\n");
        let calls = match self {
            Self::None => Vec::new(),
            Self::Activation(activation) | Self::Bias(activation) => activation.act_parts(),
            Self::OutputGrad(activation) => activation.through_parts(),
        };
        [lanes.part(), Part { name: "epilogue".into(), text: text.into() }].into_iter().chain(calls).collect()
    }
}
