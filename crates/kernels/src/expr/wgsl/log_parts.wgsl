// The exponent e for which v / 2^e is in 2/3..4/3, shifted to its position in the bits of an f32: e 2^23.
fn log_exponent(v: V) -> I {
    return (bitcast<I>(v) - I(0x3f2aaaab)) & I(-8388608);
}

// log(1 + f) + exponent ln 2 for -1/3 <= f <= 1/3.
fn log_of_reduced(f: V, exponent: V) -> V {
    let s = f * f;
    let r = ((V(-0.130310059) * s - 0.121483512) * s - 0.166846126) * s - 0.249996200;
    let t = (V(0.140869141) * s + 0.139814854) * s + 0.200120345;
    let p = ((t * f + r) * f + 0.333331972) * f - 0.5;
    return exponent * 0.693147182 + (p * s + f);
}

// y, except for the logarithm of numbers that are not both positive and finite.
fn log_of_specials(v: V, y: V) -> V {
    let is_finite = (bitcast<U>(v) & U(0x7fffffffu)) < U(0x7f800000u);
    let positive = select(select(v, y, is_finite), from_bits(0xff800000u), v == V(0.0));
    return select(positive, from_bits(0x7fc00000u), less(v, V(0.0)));
}
