use crate::dtype::DType;
use crate::elementwise::map_in_place::MapInPlace;
use crate::error::{Error, check_supported};
use crate::expr::Expr;
use crate::map::map::{Map, MapOutput};
use crate::map::map_input::MapInput;

/// The kernel that scales `n` gradients down so that their norm is at most `max_norm`: `g *= min(1, max_norm / (norm + 1e-6))`.
///
/// A [`MapReduce`](crate::MapReduce) with [`Reducer::Norm`](crate::Reducer::Norm) computes the norm before. If it is NaN, all
/// gradients become NaN, except zeros, so that the padding between the parameters of a flat buffer stays 0.
///
/// # Shapes
/// Its arguments are `norm`, `[1]`, and `grads`, `[n]`.
/// # Dtypes
/// f32.
/// # Errors
/// [`Error::Unsupported`] if `max_norm` is negative or NaN.
/// # Reference
/// `torch.nn.utils.clip_grad_norm_`.
pub fn clip_by_norm(n: usize, max_norm: f32) -> Result<MapInPlace, Error> {
    check_limit("clip_by_norm", "max_norm", max_norm)?;
    let [norm, g] = [0, 1].map(Expr::input);
    let factor = max_norm / (norm + 1e-6);
    let factor = factor.gt(1.0).select(1.0, factor);
    let map = Map {
        shape: vec![n],
        inputs: vec![MapInput::new(&[1], DType::F32), MapInput::new(&[n], DType::F32)],
        outputs: vec![MapOutput { expr: g.eq(0.0).select(&g, &g * factor), dtype: DType::F32 }],
    };
    Ok(MapInPlace { map, input: 1 })
}

/// The kernel that clamps `n` gradients to `-limit..=limit`; NaN stays NaN.
///
/// # Shapes
/// Its argument is `grads`, `[n]`.
/// # Dtypes
/// f32, and f16 and bf16 by [`stored`](crate::stored).
/// # Errors
/// [`Error::Unsupported`] if `limit` is negative or NaN.
/// # Reference
/// `torch.nn.utils.clip_grad_value_`.
pub fn clip_by_value(n: usize, limit: f32) -> Result<MapInPlace, Error> {
    check_limit("clip_by_value", "limit", limit)?;
    Ok(MapInPlace { map: Map::unary(n, |g| g.clamp(-limit, limit)), input: 0 })
}

fn check_limit(kernel: &'static str, name: &str, limit: f32) -> Result<(), Error> {
    check_supported(kernel, limit >= 0.0, || format!("{name} = {limit}"), "a number that is not negative")
}
