// Part: f16 and bf16, two in a u32, from and to f32. Gives unpack_f16, unpack_bf16, pack_f16, pack_bf16.
//
// Uses only integer arithmetic: pack2x16float is unspecified for values that do not fit, and a driver may flush subnormals in floating-point arithmetic.

// The f32 values of both halves of a word, as bits; the first is the low half.
fn f32_bits_of_f16(word: u32) -> vec2u {
    let h = vec2u(word & 0xffffu, word >> 16u);
    let fraction = h & vec2u(0x3ffu);
    let exponent = h & vec2u(0x7c00u);
    let shifted = (h & vec2u(0x7fffu)) << vec2u(13u);
    let subnormal = bitcast<vec2u>(vec2f(fraction) * 0x1p-24f);
    let quiet = select(vec2u(0u), vec2u(0x400000u), fraction != vec2u(0u));
    let finite = select(shifted + vec2u(0x38000000u), subnormal, exponent == vec2u(0u));
    let magnitude = select(finite, (shifted + vec2u(0x70000000u)) | quiet, exponent == vec2u(0x7c00u));
    return magnitude | ((h & vec2u(0x8000u)) << vec2u(16u));
}

fn f32_bits_of_bf16(word: u32) -> vec2u {
    return vec2u(word << 16u, word & 0xffff0000u);
}

// Two f32 values, as bits, rounded into the halves of a word.
fn f16_of_f32_bits(b: vec2u) -> u32 {
    let a = b & vec2u(0x7fffffffu);
    // The carry of the rounding propagates into the exponent, and turns values beyond the largest number into infinity.
    let normal = (a - vec2u(0x38000000u) + vec2u(0xfffu) + ((a >> vec2u(13u)) & vec2u(1u))) >> vec2u(13u);
    // Multiples of 2^-24; for shifts of 25 or more, the result is 0.
    let m = (a & vec2u(0x7fffffu)) | vec2u(0x800000u);
    let shift = min(vec2u(126u) - (a >> vec2u(23u)), vec2u(25u));
    let subnormal = (m + (vec2u(1u) << (shift - vec2u(1u))) - vec2u(1u) + ((m >> shift) & vec2u(1u))) >> shift;
    let finite = select(normal, subnormal, a < vec2u(0x38800000u));
    let bounded = select(finite, vec2u(0x7c00u), a >= vec2u(0x47800000u));
    let nan = vec2u(0x7e00u) | ((a >> vec2u(13u)) & vec2u(0x3ffu));
    let h = select(bounded, nan, a > vec2u(0x7f800000u)) | ((b >> vec2u(16u)) & vec2u(0x8000u));
    return h.x | (h.y << 16u);
}

fn bf16_of_f32_bits(b: vec2u) -> u32 {
    let rounded = (b + vec2u(0x7fffu) + ((b >> vec2u(16u)) & vec2u(1u))) >> vec2u(16u);
    let nan = (b >> vec2u(16u)) | vec2u(0x40u);
    let h = select(rounded, nan, (b & vec2u(0x7fffffffu)) > vec2u(0x7f800000u));
    return h.x | (h.y << 16u);
}

fn unpack_f16(word: u32) -> vec2f {
    return bitcast<vec2f>(f32_bits_of_f16(word));
}

fn unpack_bf16(word: u32) -> vec2f {
    return bitcast<vec2f>(f32_bits_of_bf16(word));
}

fn pack_f16(v: vec2f) -> u32 {
    return f16_of_f32_bits(bitcast<vec2u>(v));
}

fn pack_bf16(v: vec2f) -> u32 {
    return bf16_of_f32_bits(bitcast<vec2u>(v));
}
