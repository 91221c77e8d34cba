// Part: stores neighbours of a row. Expects `params` and the epilogue for pairs.

// Two neighbours of a row, of which the second may be beyond its end.
fn store_two(row: u32, col: u32, products: vec2f) {
    if row >= params.m || col >= params.n {
        return;
    }
    let i = row * params.n + col;
    let next = select(0u, 1u, col + 1u < params.n);
    store_y(i, finished(products, vec2u(i, i + next), vec2u(col, col + next)), 1u + next);
}
