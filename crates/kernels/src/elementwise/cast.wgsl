// y = x in another element type: f32, f16 and bf16 from one to another, u8 and u32 to f32. To 16 bits it is rounded to nearest even, and infinite
// beyond the largest number; NaN stays NaN and is quiet; subnormals and the sign of zero are kept. All of it on integers: pack2x16float says nothing
// of what does not fit, and a driver may flush subnormals in arithmetic.
// Twin: cast_cpu.rs. Moves an element of either type; a lane does two, which share a word in 16 bits.
//
// What stands ahead of the constants is added to each module whose types are stored in 16 bits: src/stored_types.rs.

// The f32 of both halves of a word, as bits; the first lies in the low half.
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
    let b = vec2u(word << 16u, word & 0xffff0000u);
    return b | select(vec2u(0u), vec2u(0x400000u), (b & vec2u(0x7fffffffu)) > vec2u(0x7f800000u));
}

// Two f32, as bits, rounded into the halves of a word.
fn f16_of_f32_bits(b: vec2u) -> u32 {
    let a = b & vec2u(0x7fffffffu);
    // The carry of the rounding goes on into the exponent, and makes infinity of what is past the largest number.
    let normal = (a - vec2u(0x38000000u) + vec2u(0xfffu) + ((a >> vec2u(13u)) & vec2u(1u))) >> vec2u(13u);
    // Multiples of 2^-24; from a shift of 25 on there is nothing left.
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

// The codes of `DType::code`.
override FROM: u32 = 0u;
override TO: u32 = 1u;
override WG: u32 = 64u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

// Zero beyond the end, for the second of an odd number.
fn word(i: u32) -> u32 {
    return select(0u, x[min(i, arrayLength(&x) - 1u)], i < arrayLength(&x));
}

fn bits(pair: u32) -> vec2u {
    switch FROM {
        case 1u: { return f32_bits_of_f16(x[pair]); }
        case 2u: { return f32_bits_of_bf16(x[pair]); }
        case 3u: {
            let bytes = x[pair / 2u] >> (16u * (pair % 2u));
            return bitcast<vec2u>(vec2f(vec2u(bytes & 0xffu, (bytes >> 8u) & 0xffu)));
        }
        case 4u: { return bitcast<vec2u>(vec2f(vec2u(word(2u * pair), word(2u * pair + 1u)))); }
        default: { return vec2u(word(2u * pair), word(2u * pair + 1u)); }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pair = (group.y * groups.x + group.x) * WG + lane;
    let n = arrayLength(&y);
    if TO == 0u {
        if 2u * pair < n {
            let b = bits(pair);
            y[2u * pair] = b.x;
            if 2u * pair + 1u < n {
                y[2u * pair + 1u] = b.y;
            }
        }
    } else if pair < n {
        let b = bits(pair);
        y[pair] = select(f16_of_f32_bits(b), bf16_of_f32_bits(b), TO == 2u);
    }
}
