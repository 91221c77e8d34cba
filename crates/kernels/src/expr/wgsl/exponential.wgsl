// exp(v): twin `exp` in vector.rs. The power of two comes in two factors, since 2^128 is not an f32.
fn exponential(v: V) -> V {
    let parts = exp_parts(clamp(v, V(-104.0), V(89.0)));
    let first = parts.n >> U(1u);
    let y = (expm1_of_reduced(parts.r) + 1.0) * power_of_two(first) * power_of_two(parts.n - first);
    return select(y, v, is_nan(v));
}
