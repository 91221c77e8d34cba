// y = x in another element type: f32, f16 and bf16 from one to another and to u8 and u32, u8 and u32 to f32. Integers are truncated and clamped to their range; NaN becomes 0. To 16 bits it is rounded to nearest even, and infinite
// beyond the largest number; NaN stays NaN, and is quiet unless bf16 becomes f32; subnormals and the sign of zero are kept. Uses only integer arithmetic: pack2x16float is unspecified for
// values that do not fit, and a driver may flush subnormals in floating-point arithmetic.
// Twin: cast_cpu.rs. Moves an element of either type; an invocation converts two, which share a word in 16 bits.

// The codes of `DType::code`.
override FROM: u32 = 0u;
override TO: u32 = 1u;

// Zero beyond the end, for the second element if their number is odd.
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

// The integers of two f32, truncated; 0 for negative numbers and NaN, and at most the largest integer.
fn integers(b: vec2u) -> vec2u {
    let fraction = (b & vec2u(0x7fffffu)) | vec2u(0x800000u);
    // Numbers from 2^e to 2^(e + 1) have the exponent e + 127; the fraction has 23 bits after the point.
    let exponent = b >> vec2u(23u);
    let large = fraction << min(exponent - vec2u(150u), vec2u(8u));
    let small = fraction >> min(vec2u(150u) - exponent, vec2u(31u));
    var v = select(small, large, exponent >= vec2u(150u));
    v = select(v, vec2u(0xffffffffu), exponent >= vec2u(159u));
    return select(v, vec2u(), b > vec2u(0x7f800000u));
}

fn element(pair: u32) {
    let n = arrayLength(&y);
    if TO == 3u {
        // A word of four bytes.
        if pair < n {
            let v = min(vec4u(integers(bits(2u * pair)), integers(bits(2u * pair + 1u))), vec4u(255u));
            y[pair] = v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
        }
    } else if TO == 0u || TO == 4u {
        if 2u * pair < n {
            var b = bits(pair);
            if TO == 4u {
                b = integers(b);
            }
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
