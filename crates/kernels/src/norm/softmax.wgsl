// y[r,c] = exp(x[r,c] - m) / s with m = max_k x[r,k], s = sum_k exp(x[r,k] - m); with LOG, y[r,c] = x[r,c] - m - log(s).
// Twin: softmax_cpu.rs. Moves 8 bytes an element, if the second reading of x comes from a cache.
// m and s are computed in one pass: when the maximum grows, the sum so far is scaled down.

override LOG: u32 = 0u;
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
