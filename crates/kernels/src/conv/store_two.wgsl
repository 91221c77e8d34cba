// Part: stores neighbouring channels. Expects the parts walk.wgsl and results.wgsl, and the epilogue for pairs.

// Two neighbouring channels, of which the second may be beyond the last.
fn store_two(walk: Walk, row: u32, col: u32, sums: vec2f) {
    if row >= params.n_images * walk.n.x * walk.n.y || col >= params.n_cols {
        return;
    }
    let i = result_of(walk, row) + col;
    let next = select(0u, 1u, col + 1u < params.n_cols);
    store_y(i, finished(sums, vec2u(i, i + next), vec2u(col, col + next)), 1u + next);
}
