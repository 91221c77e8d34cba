// verdict 2: scale *= backoff, n_good = 0. 1: n_good += 1, and at the interval scale *= growth, if finite, and n_good = 0.
// Twin: src/cpu/grad_scaler.rs. Moves 40 bytes.

struct Params {
    // Bits of two f32.
    growth_factor: u32,
    backoff_factor: u32,
    growth_interval: u32,
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
        scale[0] = product(scale[0], params.backoff_factor);
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
    let grown = product(scale[0], params.growth_factor);
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

// The bits of the product of two f32 that are not negative, rounded to the nearest, ties to even; of any size.
fn product(a: u32, b: u32) -> u32 {
    if a == 0u || b == 0u {
        return 0u;
    }
    if a >= INFINITY_BITS || b >= INFINITY_BITS {
        return max(a, b);
    }
    let x = parts(a);
    let y = parts(b);
    // high * 2^24 + low, of 48 bits, by halves of 12.
    let cross = (x.mantissa >> 12u) * (y.mantissa & 0xFFFu) + (x.mantissa & 0xFFFu) * (y.mantissa >> 12u);
    var low = (x.mantissa & 0xFFFu) * (y.mantissa & 0xFFFu) + ((cross & 0xFFFu) << 12u);
    var high = (x.mantissa >> 12u) * (y.mantissa >> 12u) + (cross >> 12u) + (low >> 24u);
    low &= 0xFFFFFFu;
    var field = x.exponent + y.exponent + 174;
    if high < 0x800000u {
        high = (high << 1u) | (low >> 23u);
        low = (low << 1u) & 0xFFFFFFu;
        field -= 1;
    }
    if field >= 255 {
        return INFINITY_BITS;
    }
    // The mantissa, and what is cut off it, in 2^24ths.
    var mantissa = high;
    var rest = low;
    if field < -23 {
        return 0u;
    }
    if field < 1 {
        let shift = u32(1 - field);
        mantissa = high >> shift;
        rest = ((high << (24u - shift)) & 0xFFFFFFu) | select(0u, 1u, low != 0u);
        field = 0;
    } else {
        mantissa -= 0x800000u;
    }
    let is_up = rest > 0x800000u || (rest == 0x800000u && (mantissa & 1u) == 1u);
    return (u32(field) << 23u) + mantissa + select(0u, 1u, is_up);
}
