// verdict 2: scale *= backoff, n_good = 0. 1: n_good += 1, and at the interval scale *= growth, if finite, and n_good = 0.
// Twin: grad_scaler_cpu.rs. Moves 40 bytes.

struct Params {
    // Each factor's mantissa, upper 24 bits and lower 29, and its exponent.
    growth_upper: u32,
    growth_lower: u32,
    growth_exponent: i32,
    growth_interval: u32,
    backoff_upper: u32,
    backoff_lower: u32,
    backoff_exponent: i32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
// The bits of an f32: adapters may take a subnormal number for 0 as soon as they see it as one.
@group(0) @binding(1) var<storage, read_write> scale: array<u32>;
// verdict, n_good, n_skipped_in_a_row, n_skipped.
@group(0) @binding(2) var<storage, read_write> scaler: array<u32>;

const INFINITY_BITS: u32 = 0x7F800000u;

@compute @workgroup_size(1)
fn main() {
    let verdict = scaler[0];
    scaler[0] = 0u;
    if verdict == 0u {
        return;
    }
    if verdict == 2u {
        scale[0] = product(scale[0], Factor(params.backoff_upper, params.backoff_lower, params.backoff_exponent));
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
    let grown = product(scale[0], Factor(params.growth_upper, params.growth_lower, params.growth_exponent));
    if grown < INFINITY_BITS {
        scale[0] = grown;
    }
    scaler[1] = 0u;
}

// A positive number, mantissa * 2^exponent, the mantissa from 2^23 to 2^24.
struct Parts {
    mantissa: u32,
    exponent: i32,
}

fn parts(bits: u32) -> Parts {
    let field = bits >> 23u;
    if field > 0u {
        return Parts((bits & 0x007FFFFFu) | 0x00800000u, i32(field) - 150);
    }
    let shift = countLeadingZeros(bits) - 8u;
    return Parts(bits << shift, -149 - i32(shift));
}

// (upper * 2^29 + lower) * 2^exponent, an f64: upper from 2^23 to 2^24, lower below 2^29.
struct Factor {
    upper: u32,
    lower: u32,
    exponent: i32,
}

// a * b as high * 2^24 + low, a below 2^24, b below 2^29: by pieces of 12 bits.
fn wide_product(a: u32, b: u32) -> vec2u {
    let middle = (a >> 12u) * (b & 0xFFFu) + (a & 0xFFFu) * (b >> 12u);
    let low = (a & 0xFFFu) * (b & 0xFFFu) + ((middle & 0xFFFu) << 12u);
    return vec2u((a >> 12u) * (b >> 12u) + (middle >> 12u) + (low >> 24u), low & 0xFFFFFFu);
}

fn rounds_up(rest: u32, midpoint: u32, kept: u32) -> bool {
    return rest > midpoint || (rest == midpoint && (kept & 1u) == 1u);
}

// The bits of the product of an f32 that is not negative and a factor, of any size: rounded to 53 bits, as an f64 is, then to an f32; to the nearest, ties to even.
fn product(a: u32, factor: Factor) -> u32 {
    if a == 0u || a >= INFINITY_BITS {
        return a;
    }
    let x = parts(a);
    let upper = wide_product(x.mantissa, factor.upper);
    let lower = wide_product(x.mantissa, factor.lower);
    // high * 2^53 + middle * 2^24 + low, of 77 bits.
    var middle = (upper.y << 5u) + lower.x;
    var high = upper.x + (middle >> 29u);
    middle &= 0x1FFFFFFFu;
    var low = lower.y;
    var field = x.exponent + factor.exponent + 203;
    if high < 0x800000u {
        high = (high << 1u) | (middle >> 28u);
        middle = ((middle << 1u) & 0x1FFFFFFFu) | (low >> 23u);
        low = (low << 1u) & 0xFFFFFFu;
        field -= 1;
    }
    // The f64: high * 2^29 + middle.
    middle += select(0u, 1u, rounds_up(low, 0x800000u, middle));
    high += middle >> 29u;
    middle &= 0x1FFFFFFFu;
    if field >= 255 {
        return INFINITY_BITS;
    }
    if field < -23 {
        return 0u;
    }
    // The mantissa, and what is cut off it, in 2^29ths.
    if field < 1 {
        let shift = u32(1 - field);
        let rest = ((high << (29u - shift)) & 0x1FFFFFFFu) | select(0u, 1u, middle != 0u);
        let mantissa = high >> shift;
        return mantissa + select(0u, 1u, rounds_up(rest, 0x10000000u, mantissa));
    }
    return (u32(field) << 23u) + (high - 0x800000u) + select(0u, 1u, rounds_up(middle, 0x10000000u, high));
}
