// y[state.batch * n + i, c] = x[i, c]; what lies beyond the end of y is left out, and a whole batch beyond it makes the last element NaN.
// Twin: store_rows_cpu.rs. Moves 8 bytes an element.

fn element(i: u32) {
    if i >= arrayLength(&x) {
        return;
    }
    // Compared before the product, which could wrap.
    let n_whole = arrayLength(&y) / arrayLength(&x);
    let fits = state[0] < n_whole || (state[0] == n_whole && n_whole * arrayLength(&x) < arrayLength(&y));
    if !fits {
        if i == 0u {
            // Not a constant, which WGSL refuses.
            y[arrayLength(&y) - 1u] = bitcast<f32>(params.nan_bits);
        }
        return;
    }
    let at = state[0] * arrayLength(&x) + i;
    if at < arrayLength(&y) {
        y[at] = x[i];
    }
}
