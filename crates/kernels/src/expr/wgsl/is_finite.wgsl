// 1, or 0 for infinities and NaN: by the bits, since a compiler may assume that there are none.
fn is_finite(v: V) -> V {
    return select(V(0.0), V(1.0), (bitcast<U>(v) & U(0x7fffffffu)) < U(0x7f800000u));
}
