// Part: functions that activations are made of, over `V` (f32 or a vector of them) and `U` (the same of u32).

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: V, y: V) -> V {
    return select(y, v, (bitcast<U>(v) & U(0x7FFFFFFFu)) > U(0x7F800000u));
}

fn sigmoid(v: V) -> V {
    return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, V(-87.0), V(87.0)))));
}

// Beyond 10 the result is 1 in f32, and some drivers' exp overflows inside tanh.
fn safe_tanh(v: V) -> V {
    return or_nan(v, tanh(clamp(v, V(-10.0), V(10.0))));
}

// Abramowitz & Stegun 7.1.26, within 1.5e-7.
fn erf(v: V) -> V {
    let a = abs(v);
    let t = 1.0 / (1.0 + 0.3275911 * a);
    let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return sign(v) * (1.0 - p * exp(-min(a * a, V(87.0))));
}

fn gelu_tanh_slope(v: V) -> V {
    let t = safe_tanh(0.79788456 * (v + 0.044715 * v * v * v));
    return 0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * 0.79788456 * (1.0 + 0.134145 * v * v);
}
