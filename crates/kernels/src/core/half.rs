//! Conversion between 16-bit floats and f32, without branches, so that loops over it vectorise. Conversion to 16 bits rounds to nearest, ties to even.
#![expect(clippy::cast_possible_truncation, reason = "a half is the lower 16 bits of what is computed in 32")]

use std::ops::Range;

use bytemuck::Pod;
use half::{bf16, f16};
use rayon::prelude::*;

use super::room::with_room;
use super::transpose::transpose_into;
use super::vectorised::vectorised;
use crate::core::dtype::DType;
use crate::core::team::OnTeam;
use crate::core::twin::TwinArgs;

/// The number of elements below which using other threads for widening does not pay, and the number per task.
const PARALLEL_LEN: usize = 32 * 1024;
const BLOCK_LEN: usize = 16 * 1024;

/// Exact; NaN becomes quiet.
#[inline(always)]
fn f32_of_f16(h: u16) -> f32 {
    let (h, fraction, exponent) = (u32::from(h), u32::from(h & 0x3FF), h & 0x7C00);
    let shifted = (h & 0x7FFF) << 13;
    let subnormal = (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits();
    let quiet = if fraction != 0 { 0x40_0000 } else { 0 };
    let finite = if exponent == 0 { subnormal } else { shifted + 0x3800_0000 };
    let magnitude = if exponent == 0x7C00 { (shifted + 0x7000_0000) | quiet } else { finite };
    f32::from_bits(magnitude | (h & 0x8000) << 16)
}

/// Infinite for 65520 and above.
#[inline(always)]
fn f16_of_f32(x: f32) -> u16 {
    let b = x.to_bits();
    let a = b & 0x7FFF_FFFF;
    // The carry propagates into the exponent, and turns values beyond the largest number into infinity.
    let normal = a.wrapping_sub(0x3800_0000).wrapping_add(0xFFF + (a >> 13 & 1)) >> 13;
    // The sum is rounded to a multiple of 2⁻²⁴; its low bits are that multiple.
    let subnormal = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3F00_0000);
    let finite = if a < 0x3880_0000 { subnormal } else { normal };
    let bounded = if a >= 0x4780_0000 { 0x7C00 } else { finite };
    let magnitude = if a > 0x7F80_0000 { 0x7E00 | (a >> 13 & 0x3FF) } else { bounded };
    (magnitude | (b >> 16 & 0x8000)) as u16
}

/// Exact; NaN becomes quiet.
#[inline(always)]
fn f32_of_bf16(h: u16) -> f32 {
    let b = u32::from(h) << 16;
    let is_nan = b & 0x7FFF_FFFF > 0x7F80_0000;
    f32::from_bits(b | if is_nan { 0x40_0000 } else { 0 })
}

#[inline(always)]
fn bf16_of_f32(x: f32) -> u16 {
    let b = x.to_bits();
    let is_nan = b & 0x7FFF_FFFF > 0x7F80_0000;
    let rounded = b.wrapping_add(0x7FFF + (b >> 16 & 1)) >> 16;
    (if is_nan { b >> 16 | 0x40 } else { rounded }) as u16
}

/// The storage type of a float.
pub(crate) trait Element: Pod + Send + Sync {
    /// The value in f32.
    fn widen(self) -> f32;

    /// The value rounded to this type.
    fn narrow(v: f32) -> Self;

    /// `x` itself, if the type is f32.
    #[inline(always)]
    fn as_f32(_x: &[Self]) -> Option<&[f32]> {
        None
    }

    /// Likewise.
    #[inline(always)]
    fn as_f32_mut(_x: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn narrow(v: f32) -> Self {
        v
    }

    #[inline(always)]
    fn as_f32(x: &[Self]) -> Option<&[f32]> {
        Some(x)
    }

    #[inline(always)]
    fn as_f32_mut(x: &mut [Self]) -> Option<&mut [f32]> {
        Some(x)
    }
}

impl Element for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32_of_f16(self.to_bits())
    }

    #[inline(always)]
    fn narrow(v: f32) -> Self {
        Self::from_bits(f16_of_f32(v))
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32_of_bf16(self.to_bits())
    }

    #[inline(always)]
    fn narrow(v: f32) -> Self {
        Self::from_bits(bf16_of_f32(v))
    }
}

/// `y = x` in f32.
#[inline(always)]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [f32]) {
    match T::as_f32(x) {
        Some(x) => y.copy_from_slice(x),
        None => {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x.widen();
            }
        }
    }
}

/// `y = x`, rounded.
#[inline(always)]
pub(crate) fn narrow<T: Element>(x: &[f32], y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = T::narrow(x);
    }
}

/// Calls `f` with memory for the values of `y` in f32: `y` itself if it is f32, else memory that is afterwards rounded into it.
#[inline(always)]
pub(crate) fn in_f32<Y: Element>(y: &mut [Y], f: impl FnOnce(&mut [f32])) {
    match Y::as_f32_mut(y) {
        Some(y) => f(y),
        None => with_room(
            y.len(),
            #[inline(always)]
            |room| {
                f(room);
                vectorised(
                    #[inline(always)]
                    || narrow(room, y),
                );
            },
        ),
    }
}

/// An argument that is read, in any storage type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Floats<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
}

impl<'a> Floats<'a> {
    /// An argument with its storage type.
    #[track_caller]
    pub(crate) fn of(args: &TwinArgs<'a>, arg: &'static str) -> Self {
        let index = args.find(arg);
        match args.dtype(index) {
            DType::F16 => Self::F16(args.read(index)),
            DType::Bf16 => Self::Bf16(args.read(index)),
            _ => Self::F32(args.read(index)),
        }
    }

    /// The elements of `range` in f32: in place, or in `buffer`, which has the same length.
    pub(crate) fn get<'b>(&self, range: Range<usize>, buffer: &'b mut [f32]) -> &'b [f32]
    where
        'a: 'b,
    {
        if let Self::F32(x) = self {
            return &x[range];
        }
        self.widen_into(range, buffer);
        buffer
    }

    /// `y` = the elements of `range`, in f32.
    pub(crate) fn widen_into(&self, range: Range<usize>, y: &mut [f32]) {
        vectorised(
            #[inline(always)]
            || match self {
                Self::F32(x) => widen(&x[range.clone()], y),
                Self::F16(x) => widen(&x[range.clone()], y),
                Self::Bf16(x) => widen(&x[range.clone()], y),
            },
        );
    }

    /// `y[i]` = element `start + i stride`, in f32.
    pub(crate) fn gather_into(&self, start: usize, stride: usize, y: &mut [f32]) {
        fn gather<T: Element>(x: &[T], stride: usize, y: &mut [f32]) {
            y.iter_mut().zip(x.iter().step_by(stride)).for_each(|(y, &x)| *y = x.widen());
        }
        match self {
            Self::F32(x) => gather(&x[start..], stride, y),
            Self::F16(x) => gather(&x[start..], stride, y),
            Self::Bf16(x) => gather(&x[start..], stride, y),
        }
    }

    /// The required length of the buffer for `n` elements: 0 if they are stored in f32.
    pub(crate) fn n_room(&self, n: usize) -> usize {
        if matches!(self, Self::F32(_)) { 0 } else { n }
    }

    /// The same, on several threads if it is long.
    pub(crate) fn get_in_parallel<'b>(&self, range: Range<usize>, buffer: &'b mut [f32]) -> &'b [f32]
    where
        'a: 'b,
    {
        if range.len() <= PARALLEL_LEN || matches!(self, Self::F32(_)) {
            return self.get(range, buffer);
        }
        buffer.par_chunks_mut(BLOCK_LEN).enumerate().for_each_on_team(|(i, block)| {
            let start = range.start + i * BLOCK_LEN;
            self.get(start..start + block.len(), block);
        });
        buffer
    }

    /// A part of it.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::F32(x) => Self::F32(&x[range]),
            Self::F16(x) => Self::F16(&x[range]),
            Self::Bf16(x) => Self::Bf16(&x[range]),
        }
    }

    /// `transposed[col, row] = self[row, col]`, in f32.
    pub(crate) fn transpose_to(&self, n_rows: usize, n_cols: usize, transposed: &mut [f32]) {
        match self {
            Self::F32(x) => transpose_into(x, n_rows, n_cols, transposed),
            Self::F16(x) => transpose_into(x, n_rows, n_cols, transposed),
            Self::Bf16(x) => transpose_into(x, n_rows, n_cols, transposed),
        }
    }
}
