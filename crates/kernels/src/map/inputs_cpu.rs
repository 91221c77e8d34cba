//! The inputs of a twin, block by block, whatever their broadcasting and storage.

use std::ops::Range;

use super::layout::Pattern;
use crate::core::half::Floats;
use crate::expr::{BLOCK_LEN, Operand};

/// The longest period of a repeating input that is written out, so that blocks are slices of it.
const MAX_PERIOD: usize = 16 * 1024;

/// An input, by how its elements are found.
pub(super) enum Input<'a> {
    One(f32),
    All(Floats<'a>),
    /// `tile` is as many periods as any block within them needs.
    Periodic {
        tile: Vec<f32>,
        period: usize,
    },
    Strided {
        x: Floats<'a>,
        strides: &'a [usize],
    },
}

impl<'a> Input<'a> {
    /// Memory for [`operand`](Self::operand), if it needs any.
    pub(super) fn buffer(&self) -> Vec<f32> {
        let is_in_place = matches!(self, Self::One(_) | Self::All(Floats::F32(_)) | Self::Periodic { .. });
        vec![0.0; if is_in_place { 0 } else { BLOCK_LEN }]
    }

    pub(super) fn new(x: Floats<'a>, pattern: &'a Pattern, sizes: &[usize]) -> Self {
        match pattern {
            Pattern::One => Self::One(element(&x, 0)),
            Pattern::All => Self::All(x),
            Pattern::Strided(strides) => {
                let is_periodic = strides.iter().rev().skip(1).all(|stride| *stride == 0);
                match sizes.last() {
                    Some(&period) if is_periodic && period <= MAX_PERIOD => {
                        let mut tile = vec![0.0; period];
                        x.widen_into(0..period, &mut tile);
                        let tile = tile.iter().copied().cycle().take(period + BLOCK_LEN).collect();
                        Self::Periodic { tile, period }
                    }
                    _ => Self::Strided { x, strides },
                }
            }
        }
    }

    /// Its values for the elements of `range`, in `buffer` unless they lie somewhere as they are.
    pub(super) fn operand<'b>(&'b self, range: Range<usize>, sizes: &[usize], buffer: &'b mut [f32]) -> Operand<'b> {
        match self {
            Self::One(value) => Operand::Splat(*value),
            Self::All(x) => Operand::Slice(x.get(range, buffer)),
            Self::Periodic { tile, period } => {
                let start = range.start % period;
                Operand::Slice(&tile[start..start + range.len()])
            }
            Self::Strided { x, strides } => strided(x, strides, sizes, range, buffer),
        }
    }
}

fn element(x: &Floats<'_>, i: usize) -> f32 {
    let mut value = [0.0];
    x.get(i..i + 1, &mut value)[0]
}

/// Row after row of the innermost dimension.
fn strided<'b>(x: &'b Floats<'_>, strides: &[usize], sizes: &[usize], range: Range<usize>, buffer: &'b mut [f32]) -> Operand<'b> {
    let (Some(&row_len), Some(&inner_stride)) = (sizes.last(), strides.last()) else { return Operand::Splat(element(x, 0)) };
    let row_start = |row: usize| {
        let (mut rest, mut start) = (row, 0);
        for (size, stride) in sizes.iter().zip(strides).rev().skip(1) {
            start += rest % size * stride;
            rest /= size;
        }
        start
    };
    let (row, col) = (range.start / row_len, range.start % row_len);
    if col + range.len() <= row_len {
        let start = row_start(row);
        return if inner_stride == 0 {
            Operand::Splat(element(x, start))
        } else {
            Operand::Slice(x.get(start + col..start + col + range.len(), buffer))
        };
    }
    let (mut row, mut col, mut done) = (row, col, 0);
    while done < range.len() {
        let len = (row_len - col).min(range.len() - done);
        let start = row_start(row);
        let part = &mut buffer[done..done + len];
        if inner_stride == 0 {
            part.fill(element(x, start));
        } else {
            x.widen_into(start + col..start + col + len, part);
        }
        done += len;
        row += 1;
        col = 0;
    }
    Operand::Slice(&buffer[..range.len()])
}
