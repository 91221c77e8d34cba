use std::ops::Range;

use half::{bf16, f16};
use rayon::prelude::*;

use crate::cpu::team::OnTeam;
use crate::cpu::transpose::transpose_into;
use crate::dtype::DType;
use crate::kernel::twin::TwinArgs;
use crate::storage::element::{Element, widen};
use crate::vectorised::{inlined, vectorised};

/// The number of elements below which using other threads for widening does not pay, and the number per task.
const PARALLEL_LEN: usize = 32 * 1024;
const BLOCK_LEN: usize = 16 * 1024;

/// An argument that is read, in any storage type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Floats<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
}

/// Evaluates `$body` with `$x` as the slice of some [`Floats`], or of another enum with the same variants.
macro_rules! of_any_type {
    ($floats:expr, $x:ident => $body:expr) => {
        of_any_type!(Self, $floats, $x => $body)
    };
    ($Floats:ident, $floats:expr, $x:ident => $body:expr) => {
        match $floats {
            $Floats::F32($x) => $body,
            $Floats::F16($x) => $body,
            $Floats::Bf16($x) => $body,
        }
    };
}
pub(crate) use of_any_type;

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
        vectorised(inlined!(|| of_any_type!(self, x => widen(&x[range.clone()], y))));
    }

    /// `y[i]` = element `start + i stride`, in f32.
    pub(crate) fn gather_into(&self, start: usize, stride: usize, y: &mut [f32]) {
        fn gather<T: Element>(x: &[T], stride: usize, y: &mut [f32]) {
            y.iter_mut().zip(x.iter().step_by(stride)).for_each(|(y, &x)| *y = x.widen());
        }
        of_any_type!(self, x => gather(&x[start..], stride, y));
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
        of_any_type!(self, x => transpose_into(x, n_rows, n_cols, transposed));
    }
}
