// y[state.batch * n + i, c] = x[i, c]; rows beyond the end of y are left out, and if all rows of a batch are, the last element becomes NaN.
// Twin: store_rows_cpu.rs. Moves 8 bytes an element.

fn element(i: u32) {
    if i >= arrayLength(&x) {
        return;
    }
    // Compared before multiplying, since the product could wrap.
    let n_whole = arrayLength(&y) / arrayLength(&x);
    let fits = state[0] < n_whole || (state[0] == n_whole && n_whole * arrayLength(&x) < arrayLength(&y));
    if !fits {
        if i == 0u {
            // Not a constant expression, which WGSL rejects.
            y[arrayLength(&y) - 1u] = bitcast<f32>(params.nan_bits);
        }
        return;
    }
    let at = state[0] * arrayLength(&x) + i;
    if at < arrayLength(&y) {
        y[at] = x[i];
    }
}
