// y = x in another element type: f32, f16 and bf16 from one to another, u8 and u32 to f32. To 16 bits it is rounded to nearest even, and infinite
// beyond the largest number; NaN stays NaN and is quiet; subnormals and the sign of zero are kept. Uses only integer arithmetic: pack2x16float is unspecified for
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

fn element(pair: u32) {
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
