// v = n ln 2 + r: n in one vector, r in the other. ln 2 is split so that n times its first part is exact.
struct ExpParts {
    n: I,
    r: V,
}

fn exp_parts(v: V) -> ExpParts {
    let n = round(v * 1.44269504);
    return ExpParts(I(n), (v - n * 0.693359375) + n * 2.12194440e-4);
}

// exp(r) - 1 for |r| <= ln 2 / 2.
fn expm1_of_reduced(r: V) -> V {
    let p = ((((V(1.98756910e-4) * r + 1.39819998e-3) * r + 8.33345205e-3) * r + 4.16657962e-2) * r + 0.166666657) * r + 0.5;
    return p * r * r + r;
}

// 2^n for a normal result.
fn power_of_two(n: I) -> V {
    return bitcast<V>((n + I(127)) << U(23u));
}
