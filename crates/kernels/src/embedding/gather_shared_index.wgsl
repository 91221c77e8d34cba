// Part: the element along the indexed dimension for element `i` of the result, if there is one index for each `k`. Expects the binding `index`.

fn named(i: u32) -> u32 {
    let at = index[i / params.n_inner % params.n];
    return select(0u, at, at < params.n_x);
}
