// exp(v) - 1: twin `expm1` in vector.rs. Half the result first, since 2^128 is not an f32.
fn expm1(v: V) -> V {
    let parts = exp_parts(clamp(v, V(-18.0), V(89.0)));
    let scale = power_of_two(parts.n - I(1));
    let y = scale * expm1_of_reduced(parts.r) + (scale - 0.5);
    return select(y + y, v, (v == V(0.0)) | is_nan(v));
}
