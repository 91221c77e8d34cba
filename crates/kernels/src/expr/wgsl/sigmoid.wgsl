// 1 / (1 + exp(-v)): twin `sigmoid` in vector.rs. If the exponential is infinite, the result is selected explicitly, since some drivers divide by multiplying with a reciprocal.
fn sigmoid(v: V) -> V {
    let y = 1.0 / (1.0 + exponential(-v));
    return select(y, V(0.0), less(v, V(-88.7)));
}
