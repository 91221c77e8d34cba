// tanh(v): twin `tanh` in vector.rs. tanh(10) is 1 in f32.
fn hyperbolic_tangent(v: V) -> V {
    let a = min(abs(v), V(10.0));
    let e = expm1(a + a);
    let t = e / (e + 2.0);
    return select(select(t, -t, v < V(0.0)), v, (v == V(0.0)) | is_nan(v));
}
