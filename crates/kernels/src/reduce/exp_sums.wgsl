// Part: the sum s of the exponentials of a row of `x`, relative to the largest value m. Expects `params.n_cols`.

// (m, s) of the union of two sets of values.
fn join(a: vec2f, b: vec2f) -> vec2f {
    let m = max(a.x, b.x);
    return vec2f(m, a.y * exp(a.x - m) + b.y * exp(b.x - m));
}

// The maximum before the first value; not minus infinity, whose difference from itself would be NaN.
const LOWEST = -3.4028234e38;

alias Sums = vec2f;

// (m, s) of every `stride`-th value of a row, starting at `first`.
fn scan(row: u32, first: u32, stride: u32) -> vec2f {
    var sums = vec2f(LOWEST, 0.0);
    for (var col = first; col < params.n_cols; col += stride) {
        sums = join(sums, vec2f(x[row * params.n_cols + col], 1.0));
    }
    return sums;
}
