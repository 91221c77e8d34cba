// Part: the element along the indexed dimension that place `i` of `index` names. Expects the binding `index`.

struct Params {
    n_x: u32,
    n: u32,
    n_inner: u32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

fn named(i: u32) -> u32 {
    let at = index[i];
    return select(0u, at, at < params.n_x);
}
