// sin(v + quadrants pi / 2): twin `sin` in vector.rs. pi / 2 is split so that its first two parts times n are exact, up to |v| = 12,000.
fn sine_of_quadrant(v: V, quadrants: I) -> V {
    let n = round(v * 0.636619772);
    let r = ((v - n * 1.5703125) - n * 4.83751297e-4) - n * 7.54978995e-8;
    let s = r * r;
    let sine = (((V(2.86567956e-6) * s - 1.98559923e-4) * s + 8.33338592e-3) * s - 0.166666672) * (s * r) + r;
    let cosine = (((V(2.44677067e-5) * s - 1.38877297e-3) * s + 4.16666567e-2) * s - 0.5) * s + 1.0;
    let quadrant = I(n) + quadrants;
    let y = select(sine, cosine, (quadrant & I(1)) == I(1));
    return select(y, -y, (quadrant & I(2)) == I(2));
}

fn is_within_sine_range(v: V) -> Mask {
    return less_or_equal(abs(v), V(12000.0));
}

// y, but NaN for NaN and infinities.
fn sine_of_specials(v: V, y: V) -> V {
    let is_finite = (bitcast<U>(v) & U(0x7fffffffu)) < U(0x7f800000u);
    return select(from_bits(0x7fc00000u), y, is_finite);
}
