use brisk_kernels::{Cast, DType, bytemuck};
use half::{bf16, f16};

use crate::gpu::gpu;
use crate::random::Random;
use crate::run::*;

/// f32 values at the edges of the 16-bit formats, as bits: both signs of zero, infinities, NaNs with payloads, halfway cases,
/// overflow, subnormals of all three types.
fn edges() -> Words {
    let mut edges =
        vec![0, 0x7F80_0000, 0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF, 0x7FA5_A5A5, 0x7F7F_FFFF, 1, 0x0000_8000, 0x007F_FFFF];
    for value in [65504.0, 65519.996, 65520.0, 65535.0, 65536.0, 131_072.0, 1e30, 3.39e38, 1.0, 0.1] {
        edges.push(f32::to_bits(value));
    }
    // Halfway between two 16-bit numbers, and right next to it: normal, at a change of the exponent, and subnormal.
    for half in [0x3C00_u16, 0x3C01, 0x3FFF, 0x7BFE, 0x7BFF, 0x0400, 0x03FF, 0x0001, 0x0002, 0x0000] {
        let [low, high] = [half, half + 1].map(|bits| f16::from_bits(bits).to_f64());
        let middle = if half == 0x7BFF { 65520.0 } else { 0.5 * (low + high) };
        edges.extend([-1, 0, 1].map(|by| (middle as f32).to_bits().wrapping_add_signed(by)));
    }
    for upper in [0x3F80_u32, 0x3F81, 0x0001, 0x007F, 0x7F7F] {
        edges.extend([0x7FFF, 0x8000, 0x8001].map(|lower| upper << 16 | lower));
    }
    let negative: Words = edges.iter().map(|bits| bits | 1 << 31).collect();
    edges.extend(negative);
    edges
}

/// Bits from the whole range of f32, and the edges.
fn many_f32() -> Words {
    let mut words: Words = (0..1 << 20).map(|i: u32| i.wrapping_mul(4099)).collect();
    words.extend(edges());
    words
}

fn halves(words: &[u32], n: usize) -> &[u16] {
    &bytemuck::cast_slice(words)[..n]
}

#[track_caller]
fn to_half(x: &[u32], to: DType, expected: fn(f32) -> u16) {
    let y = run_twin(&Cast { n: x.len(), from: DType::F32, to }, &[x.to_vec()]);
    for (&x, &y) in x.iter().zip(halves(&y[0], x.len())) {
        let expected = expected(f32::from_bits(x));
        assert_eq!(y, expected, "{x:#010x} in {to:?} is {y:#06x}, expected {expected:#06x}");
    }
}

#[test]
fn twin_rounds_f32_as_the_half_crate_does() {
    to_half(&many_f32(), DType::F16, |v| f16::from_f32(v).to_bits());
    to_half(&many_f32(), DType::Bf16, |v| bf16::from_f32(v).to_bits());
}

#[test]
fn twin_equals_hand_worked_bits() {
    let x = [1.0, -2.0, 65504.0, 65520.0, -1e9, 5.960_464_5e-8, 2.980_232_2e-8, -0.0].map(f32::to_bits).to_vec();
    let y = run_twin(&Cast { n: 8, from: DType::F32, to: DType::F16 }, std::slice::from_ref(&x));
    assert_eq!(halves(&y[0], 8), [0x3C00, 0xC000, 0x7BFF, 0x7C00, 0xFC00, 0x0001, 0x0000, 0x8000]);
    let y = run_twin(&Cast { n: 8, from: DType::F32, to: DType::Bf16 }, &[x]);
    assert_eq!(halves(&y[0], 8), [0x3F80, 0xC000, 0x4780, 0x4780, 0xCE6E, 0x3380, 0x3300, 0x8000]);
}

/// All 16-bit values, two per word.
fn all_halves() -> Words {
    (0..1 << 15).map(|i| (2 * i) | ((2 * i + 1) << 16)).collect()
}

#[track_caller]
fn from_half(from: DType, expected: fn(u16) -> f32) {
    let y = run_twin(&Cast { n: 1 << 16, from, to: DType::F32 }, &[all_halves()]);
    for (half, &y) in (0..=u16::MAX).zip(&y[0]) {
        let expected = expected(half).to_bits();
        assert_eq!(y, expected, "{from:?} {half:#06x} is {y:#010x}, expected {expected:#010x}");
    }
}

#[test]
fn twin_widens_every_half() {
    from_half(DType::F16, |bits| f16::from_bits(bits).to_f32());
    // As PyTorch does, where NaN stays as it is.
    from_half(DType::Bf16, |bits| f32::from_bits(u32::from(bits) << 16));
}

#[test]
fn every_half_comes_back_from_f32() {
    for dtype in [DType::F16, DType::Bf16] {
        let wide = run_twin(&Cast { n: 1 << 16, from: dtype, to: DType::F32 }, &[all_halves()]);
        let back = run_twin(&Cast { n: 1 << 16, from: DType::F32, to: dtype }, &wide);
        let n_other = (0..=u16::MAX).zip(halves(&back[0], 1 << 16)).filter(|(was, is)| was != *is).count();
        // Signalling NaNs, which become quiet: one for each non-zero fraction below the quiet bit, with either sign.
        assert_eq!(n_other, if dtype == DType::F16 { 2 * 511 } else { 2 * 63 }, "{dtype:?}: how many changed");
    }
}

#[test]
fn integers_become_floats() {
    let bytes = u32::from_le_bytes([0, 1, 127, 255]);
    assert_eq!(twin_floats(&Cast { n: 4, from: DType::U8, to: DType::F32 }, &[vec![bytes]]), [0.0, 1.0, 127.0, 255.0]);
    let words = vec![0, 1, 1 << 24, u32::MAX];
    assert_eq!(
        twin_floats(&Cast { n: 4, from: DType::U32, to: DType::F32 }, &[words]),
        [0.0, 1.0, 16_777_216.0, 4_294_967_296.0]
    );
}

#[test]
fn floats_become_integers() {
    let x = [
        0.0,
        -0.0,
        0.999,
        1.0,
        2.5,
        255.0,
        255.9,
        256.0,
        -1.0,
        16_777_215.0,
        4_294_967_040.0,
        4_294_967_296.0,
        f32::INFINITY,
        f32::NAN,
    ];
    let words: Words = x.iter().map(|v: &f32| v.to_bits()).collect();
    let y = run_twin(&Cast { n: x.len(), from: DType::F32, to: DType::U32 }, std::slice::from_ref(&words));
    assert_eq!(y[0], [0, 0, 0, 1, 2, 255, 255, 256, 0, 16_777_215, 4_294_967_040, u32::MAX, u32::MAX, 0]);
    let y = run_twin(&Cast { n: x.len(), from: DType::F32, to: DType::U8 }, &[words]);
    let bytes: &[u8] = bytemuck::cast_slice(&y[0]);
    assert_eq!(bytes[..x.len()], [0, 0, 0, 1, 2, 255, 255, 255, 0, 255, 255, 255, 255, 0]);
    let halves = half_words(DType::F16, &x[..8]);
    let y = run_twin(&Cast { n: 8, from: DType::F16, to: DType::U32 }, &[halves]);
    assert_eq!(y[0][..5], [0, 0, 0, 1, 2]);
}

/// Bit-identical, up to the last element; padding follows it.
#[track_caller]
fn gpu_gives_the_bits_of_the_twin(cast: Cast, x: Words) {
    let Some(mut gpu) = gpu() else { return };
    let (found, expected) = (run_gpu(&mut gpu, &cast, std::slice::from_ref(&x)), run_twin(&cast, std::slice::from_ref(&x)));
    drop(gpu);
    let n_bytes = cast.n * cast.to.size_bytes();
    let [found, expected]: [&[u8]; 2] = [&found[0], &expected[0]].map(|words| &bytemuck::cast_slice(words)[..n_bytes]);
    let other = found.chunks(cast.to.size_bytes()).zip(expected.chunks(cast.to.size_bytes())).position(|(f, e)| f != e);
    assert_eq!(other, None, "{cast:?}: the first element that differs");
}

#[test]
fn gpu_agrees_to_the_bit() {
    for (a, b) in [(DType::F16, DType::Bf16), (DType::Bf16, DType::F16)] {
        gpu_gives_the_bits_of_the_twin(Cast { n: 1 << 16, from: a, to: DType::F32 }, all_halves());
        gpu_gives_the_bits_of_the_twin(Cast { n: 1 << 16, from: a, to: b }, all_halves());
        let x: Words = many_f32().into_iter().step_by(3).chain(edges()).collect();
        gpu_gives_the_bits_of_the_twin(Cast { n: x.len(), from: DType::F32, to: a }, x);
    }
}

#[test]
fn gpu_agrees_at_any_length() {
    let mut random = Random::new(7);
    for n in [1, 2, 3, 127, 128, 129, 1001, 70_003] {
        for from in [DType::F32, DType::F16, DType::Bf16, DType::U8, DType::U32] {
            for to in [DType::F32, DType::F16, DType::Bf16, DType::U8, DType::U32] {
                let cast = Cast { n, from, to };
                if brisk_kernels::Kernel::check(&cast).is_ok() {
                    let x = match from {
                        DType::F32 => words(&random.floats(n)),
                        DType::F16 | DType::Bf16 => half_words(from, &random.floats(n)),
                        _ => (0..(n * from.size_bytes()).div_ceil(4)).map(|_| random.below(1 << 24)).collect(),
                    };
                    gpu_gives_the_bits_of_the_twin(cast, x);
                }
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let x = words(&Random::new(8).floats(50_001));
    same_bits_on_any_pool(&Cast { n: 50_001, from: DType::F32, to: DType::F16 }, &[x]);
}
