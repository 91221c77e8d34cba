// Part: sums of exponentials relative to their largest exponent.

// (m, s) of the union of two sets of values.
fn join(a: vec2f, b: vec2f) -> vec2f {
    let m = max(a.x, b.x);
    return vec2f(m, a.y * exp(a.x - m) + b.y * exp(b.x - m));
}
