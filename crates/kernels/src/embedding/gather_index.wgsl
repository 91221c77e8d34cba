// Part: the element along the indexed dimension for element `i` of the result, which has an index of its own. Expects the binding `index`.

fn named(i: u32) -> u32 {
    let at = index[i];
    return select(0u, at, at < params.n_x);
}
