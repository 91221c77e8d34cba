// Part: stores four results of a row as one vector. Expects the epilogue for fours.

// The results starting at `col`, a multiple of 4, of `n_cols`, in a row that starts at `start`.
fn store_four(start: u32, col: u32, n_cols: u32, sums: vec4f) {
    if col < n_cols {
        let i = (start + col) / 4u;
        y[i] = store_y(finished(sums, i, col / 4u));
    }
}
