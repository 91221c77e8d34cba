// Part: stores four results of a row, some of which may be beyond its end. Expects the epilogue for pairs.

fn store_two(start: u32, col: u32, n_cols: u32, sums: vec2f) {
    if col < n_cols {
        let i = start + col;
        let next = select(0u, 1u, col + 1u < n_cols);
        store_y(i, finished(sums, vec2u(i, i + next), vec2u(col, col + next)), 1u + next);
    }
}

// The results starting at `col`, of `n_cols`, in a row that starts at `start`.
fn store_four(start: u32, col: u32, n_cols: u32, sums: vec4f) {
    store_two(start, col, n_cols, sums.xy);
    store_two(start, col + 2u, n_cols, sums.zw);
}
