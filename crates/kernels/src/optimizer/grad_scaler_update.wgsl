// verdict 2: scale *= backoff, n_good = 0. 1: n_good += 1, and after the interval scale *= growth, if finite, and n_good = 0.
// Each factor is mantissa * 2^exponent, with a mantissa from 1 to 2. `scale` is bound as its bits, since adapters may flush subnormal numbers to 0.
// Twin: grad_scaler_cpu.rs. Moves 40 bytes.

const INFINITY_BITS: u32 = 0x7F800000u;

@compute @workgroup_size(1)
fn main() {
    let verdict = scaler[0];
    scaler[0] = 0u;
    if verdict == 0u {
        return;
    }
    if verdict == 2u {
        scale[0] = product(scale[0], params.backoff_mantissa, params.backoff_exponent);
        scaler[1] = 0u;
        scaler[2] += 1u;
        scaler[3] += 1u;
        return;
    }
    scaler[2] = 0u;
    let n_good = scaler[1] + 1u;
    if n_good != params.growth_interval {
        scaler[1] = n_good;
        return;
    }
    let grown = product(scale[0], params.growth_mantissa, params.growth_exponent);
    if grown < INFINITY_BITS {
        scale[0] = grown;
    }
    scaler[1] = 0u;
}

// The bits of x * mantissa * 2^exponent, for x >= 0. Only the mantissas are multiplied as f32, and neither they nor their product is subnormal.
fn product(x: u32, mantissa: f32, exponent: i32) -> u32 {
    if x == 0u || x >= INFINITY_BITS {
        return x;
    }
    let shift = max(countLeadingZeros(x), 8u) - 8u;
    let x_exponent = max(i32(x >> 23u), 1) - i32(shift);
    let x_mantissa = bitcast<f32>(((x << shift) & 0x007FFFFFu) | 0x3F800000u);
    let bits = bitcast<u32>(x_mantissa * mantissa);
    let biased_exponent = x_exponent + exponent + i32(bits >> 23u) - 127;
    if biased_exponent >= 255 {
        return INFINITY_BITS;
    }
    if biased_exponent > 0 {
        return (u32(biased_exponent) << 23u) | (bits & 0x007FFFFFu);
    }
    // A subnormal result, rounded to nearest, ties to even.
    let cut = u32(min(1 - biased_exponent, 25));
    let significand = (bits & 0x007FFFFFu) | 0x00800000u;
    let kept = significand >> cut;
    let rest = significand & ((1u << cut) - 1u);
    let tie = 1u << (cut - 1u);
    return kept + u32(rest > tie || (rest == tie && (kept & 1u) == 1u));
}
