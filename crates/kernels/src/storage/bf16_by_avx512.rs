//! Rounding of slices to bf16 by an instruction of AVX512_BF16, which takes the place of ten.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the instructions may only be used on processors that have them")
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256bh, __m512, _mm512_cvtneps_pbh, _mm512_fpclass_ps_mask};

use half::bf16;

use super::halves::bf16_of_f32;

/// Elements of a vector.
#[cfg(target_arch = "x86_64")]
const N: usize = 16;

/// `y = x`, rounded to nearest, ties to even, with the bits of the conversion of single elements.
#[inline(always)]
pub(super) fn narrow(x: &[f32], y: &mut [bf16]) {
    #[cfg(target_arch = "x86_64")]
    if x.len() >= N
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512bf16")
    {
        // SAFETY: the processor has the instructions.
        return unsafe { narrow_vectors(x, y) };
    }
    narrow_each(x, y);
}

#[inline(always)]
fn narrow_each(x: &[f32], y: &mut [bf16]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = bf16::from_bits(bf16_of_f32(x));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bf16")]
fn narrow_vectors(x: &[f32], y: &mut [bf16]) {
    const SUBNORMAL: i32 = 0x20;
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<N>(), y.as_chunks_mut::<N>());
    for (x, y) in x.iter().zip(y) {
        let vector: __m512 = bytemuck::cast(*x);
        // Subnormal numbers become 0 by the instruction.
        if _mm512_fpclass_ps_mask::<SUBNORMAL>(vector) == 0 {
            // SAFETY: sixteen bf16 both, in the same order.
            *y = unsafe { std::mem::transmute::<__m256bh, [bf16; N]>(_mm512_cvtneps_pbh(vector)) };
        } else {
            narrow_each(x, y);
        }
    }
    narrow_each(x_rest, y_rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_rounded_as_single_elements() {
        // Each bf16, numbers next to it, and those between two of them.
        let offsets = [0_u32, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF];
        let x: Vec<f32> = offsets.iter().flat_map(|offset| (0..1 << 16).map(move |i| f32::from_bits(i << 16 | offset))).collect();
        let mut y = vec![bf16::ZERO; x.len()];
        narrow(&x, &mut y);
        let mut expected = y.clone();
        narrow_each(&x, &mut expected);
        for ((x, y), expected) in x.iter().zip(y).zip(expected) {
            assert_eq!(y.to_bits(), expected.to_bits(), "{:08x}", x.to_bits());
        }
    }
}
