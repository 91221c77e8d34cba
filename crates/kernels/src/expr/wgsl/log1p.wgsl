// log(1 + v): twin `log1p` in vector.rs.
fn log1p(v: V) -> V {
    let u = v + 1.0;
    let e = log_exponent(u);
    // v / 2^e + (1 / 2^e - 1), the parenthesis computed from 4 / 2^e, which is a normal number.
    let scaled = bitcast<V>(bitcast<I>(v) - e);
    let four = bitcast<V>(I(0x40800000) - e);
    let y = log_of_reduced(scaled + (0.25 * four - 1.0), V(e) * 1.1920929e-7);
    return select(log_of_specials(u, y), v, v == V(0.0));
}
