// 1 / (1 + exp(-v)): twin `sigmoid` in vector.rs. Where the exponential is infinite the quotient is written out, as some drivers divide by way of a reciprocal.
fn sigmoid(v: V) -> V {
    let y = 1.0 / (1.0 + exponential(-v));
    return select(y, V(0.0), less(v, V(-88.7)));
}
