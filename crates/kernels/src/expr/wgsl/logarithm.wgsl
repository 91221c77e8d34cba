// log(v): twin `log` in vector.rs.
fn logarithm(v: V) -> V {
    let is_subnormal = v < V(1.17549435e-38);
    let a = select(v, v * 8388608.0, is_subnormal);
    let e = log_exponent(a);
    let exponent = V(e) * 1.1920929e-7 - select(V(0.0), V(23.0), is_subnormal);
    return log_of_specials(v, log_of_reduced(bitcast<V>(bitcast<I>(a) - e) - 1.0, exponent));
}
