// y[r,c] = exp(x[r,c] - m) / s with m = max_k x[r,k], s = sum_k exp(x[r,k] - m); with LOG, y[r,c] = x[r,c] - m - log(s).
// Twin: softmax_cpu.rs. Moves 8 bytes an element, if the second reading of x comes from a cache.
// m and s are computed in one pass: when the maximum grows, the sum so far is scaled down.

override LOG: u32 = 0u;
// The maximum before the first value; not minus infinity, whose difference from itself would be NaN.
const LOWEST = -3.4028234e38;

alias Sums = vec2f;

// (m, s) of every `step`-th value of a row, starting at `first`.
fn scan(row: u32, first: u32, stride: u32) -> vec2f {
    var sums = vec2f(LOWEST, 0.0);
    for (var col = first; col < params.n_cols; col += stride) {
        sums = join(sums, vec2f(x[row * params.n_cols + col], 1.0));
    }
    return sums;
}

fn store(row: u32, sums: vec2f, first: u32, stride: u32) {
    for (var col = first; col < params.n_cols; col += stride) {
        let i = row * params.n_cols + col;
        if LOG == 1u {
            y[i] = x[i] - sums.x - log(sums.y);
        } else {
            y[i] = exp(x[i] - sums.x) / sums.y;
        }
    }
}
