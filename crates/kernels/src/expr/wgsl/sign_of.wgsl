// 0 for NaN, for which `sign` is unspecified.
fn sign_of(v: V) -> V {
    let one = select(V(1.0), V(-1.0), v < V(0.0));
    return select(one, V(0.0), (v == V(0.0)) | is_nan(v));
}
