// Part: the element along the indexed dimension that place `i` of `index` names. Expects the binding `index`.

fn named(i: u32) -> u32 {
    let at = index[i];
    return select(0u, at, at < params.n_x);
}
