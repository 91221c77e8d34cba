// Part: the element along the indexed dimension for element `i` of the result, if each has its own index. Expects the binding `index`.

fn named(i: u32) -> u32 {
    let at = index[i];
    return select(0u, at, at < params.n_x);
}
