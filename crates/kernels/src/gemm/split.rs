//! Matrices in f16 for products by [matrix instructions](super::bf16) for bf16.
//!
//! A number in f16 has 11 significant bits, so it is the sum of two in bf16, which has 8: the nearest one, and what is left. Of
//! the four terms of a product, the one of what is left on both sides is at most 2⁻¹⁶ of the product; the other three are
//! computed. Rounding an operand to f16 has changed the product by up to 2⁻¹¹ before. Sums in which products cancel keep an error
//! of that share of the products, not of the sum.
//!
//! Henry, Tang & Heinecke 2019, *Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations*.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::cast_slice_mut;
use half::{bf16, f16};
use rayon::prelude::*;

use super::bf16::{Bf16Instructions, Lines, STEP, Step};
use super::gemm::Onto;
use super::pairs::{Panels, Stored, with_lines};
use crate::cpu::blocks::{Threads, each_chunk};
use crate::cpu::team::OnTeam;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// Elements that a task splits.
const TASK_LEN: usize = 16 * 1024;

/// Matrices of products that are computed by matrix instructions for bf16.
pub(crate) trait Paired: Element {
    /// Which of the parts in bf16 of a left side are multiplied with which of a right side.
    const TERMS: &[[usize; 2]];
    /// Parts in bf16.
    const N_PARTS: usize;

    /// Calls `f` with the K indices `depth` of a matrix in bf16, and with the range of K indices of the matrix that it is given:
    /// of all parts, one after the other, equally long. `is_finite` becomes false if there is an infinity or NaN that would be
    /// multiplied wrongly.
    fn with_parts<R>(
        x: Stored<'_, Self>,
        depth: Range<usize>,
        threads: Threads,
        is_finite: &AtomicBool,
        f: impl FnOnce(Stored<'_>, Range<usize>) -> R,
    ) -> R;

    /// `y = a b` on this thread, or `y += a b`, for parts of `n_k` K indices each. Of several, a multiple of [`STEP`].
    fn times(instructions: Bf16Instructions, (a, b): (Lines<'_>, Panels<'_>), n_k: usize, y: &mut [f32], onto: Onto) {
        for (i, [of_a, of_b]) in Self::TERMS.iter().enumerate() {
            let onto = if i == 0 { onto } else { Onto::Sum };
            b.after(of_b * n_k / 2).times(instructions, a.at(of_a * n_k, n_k), y, onto);
        }
    }
}

impl Paired for bf16 {
    const TERMS: &[[usize; 2]] = &[[0, 0]];
    const N_PARTS: usize = 1;

    fn with_parts<R>(
        x: Stored<'_>,
        depth: Range<usize>,
        _: Threads,
        _: &AtomicBool,
        f: impl FnOnce(Stored<'_>, Range<usize>) -> R,
    ) -> R {
        f(x, depth)
    }
}

impl Paired for f16 {
    const TERMS: &[[usize; 2]] = &[[0, 0], [0, 1], [1, 0]];
    const N_PARTS: usize = 2;

    fn with_parts<R>(
        x: Stored<'_, Self>,
        depth: Range<usize>,
        threads: Threads,
        is_finite: &AtomicBool,
        f: impl FnOnce(Stored<'_>, Range<usize>) -> R,
    ) -> R {
        let (n_k, padded) = (depth.len(), depth.len().next_multiple_of(STEP));
        with_lines((x.n * Self::N_PARTS * padded).div_ceil(STEP), |steps: &mut [Step]| {
            let split: &mut [bf16] = &mut cast_slice_mut(steps)[..x.n * Self::N_PARTS * padded];
            let threads = threads.and(Threads::for_work(x.n * n_k, TASK_LEN + 1));
            let stride = if x.k_is_outer {
                let (nearest, left) = split.split_at_mut(padded * x.n);
                let n_lines = (TASK_LEN / x.n).max(1);
                let len = n_lines * x.n;
                let lines = |(i, (nearest, left)): (usize, (&mut [bf16], &mut [bf16]))| {
                    let lines = nearest.chunks_exact_mut(x.n).zip(left.chunks_exact_mut(x.n));
                    for (k, (nearest, left)) in (i * n_lines..).zip(lines) {
                        let from = if k < n_k { &x.data[(depth.start + k) * x.stride..][..x.n] } else { &[] };
                        split_line(from, nearest, left, is_finite);
                    }
                };
                if threads == Threads::One {
                    nearest.chunks_mut(len).zip(left.chunks_mut(len)).enumerate().for_each(lines);
                } else {
                    nearest.par_chunks_mut(len).zip(left.par_chunks_mut(len)).enumerate().for_each_on_team(lines);
                }
                x.n
            } else {
                each_chunk(threads, Self::N_PARTS * padded, split, |i, line| {
                    let (nearest, left) = line.split_at_mut(padded);
                    split_line(&x.data[i * x.stride + depth.start..][..n_k], nearest, left, is_finite);
                });
                Self::N_PARTS * padded
            };
            f(Stored { data: split, n: x.n, stride, k_is_outer: x.k_is_outer }, 0..Self::N_PARTS * padded)
        })
    }
}

/// Both parts of some numbers, each followed by 0.
fn split_line(from: &[f16], nearest: &mut [bf16], left: &mut [bf16], is_finite: &AtomicBool) {
    let mut all_finite = true;
    vectorised(inlined!(|| {
        for (start, block) in (0..from.len()).step_by(BLOCK).zip(from.chunks(BLOCK)) {
            let parts = split_block(block);
            all_finite &= parts.is_finite;
            let range = start..start + block.len();
            nearest[range.clone()].copy_from_slice(&parts.nearest[..block.len()]);
            left[range].copy_from_slice(&parts.left[..block.len()]);
        }
    }));
    nearest[from.len()..].fill(bf16::ZERO);
    left[from.len()..].fill(bf16::ZERO);
    if !all_finite {
        is_finite.store(false, Ordering::Relaxed);
    }
}

/// Numbers that are split at a time.
const BLOCK: usize = 64;

struct Parts {
    nearest: [bf16; BLOCK],
    left: [bf16; BLOCK],
    is_finite: bool,
}

/// Both parts of up to [`BLOCK`] numbers. In arrays, since the compiler knows that they do not overlap.
#[inline(always)]
fn split_block(from: &[f16]) -> Parts {
    let mut x = [0.0_f32; BLOCK];
    x.iter_mut().zip(from).for_each(|(x, from)| *x = from.widen());
    let mut parts = Parts { nearest: [bf16::ZERO; BLOCK], left: [bf16::ZERO; BLOCK], is_finite: true };
    for ((x, nearest), left) in x.iter().zip(&mut parts.nearest).zip(&mut parts.left) {
        let bits = x.to_bits();
        let rounded = (bits.wrapping_add(0x7FFF + (bits >> 16 & 1))) & 0xFFFF_0000;
        *nearest = bf16::from_bits((rounded >> 16) as u16);
        // Exact: nothing is rounded.
        *left = bf16::from_bits(((x - f32::from_bits(rounded)).to_bits() >> 16) as u16);
    }
    const EXPONENT: u32 = 0x7F80_0000;
    parts.is_finite = x.iter().fold(0, |largest, x| largest.max(x.to_bits() & EXPONENT)) < EXPONENT;
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bf16_are_every_finite_f16() {
        for bits in 0..=u16::MAX {
            let x = f16::from_bits(bits);
            let is_finite = AtomicBool::new(true);
            let [mut nearest, mut left] = [[bf16::ONE; 2]; 2];
            split_line(&[x], &mut nearest, &mut left, &is_finite);
            assert_eq!(is_finite.into_inner(), x.is_finite());
            assert_eq!([nearest[1], left[1]], [bf16::ZERO; 2]);
            let (nearest, left) = (nearest[0].to_f32(), left[0].to_f32());
            if x.is_finite() {
                assert_eq!(nearest + left, x.to_f32());
                assert!(left.abs() <= nearest.abs() / 256.0, "{x}: {nearest} and {left}");
                assert!(left == 0.0 || left.is_normal(), "{x}: {left} would count as 0");
            }
        }
    }
}
