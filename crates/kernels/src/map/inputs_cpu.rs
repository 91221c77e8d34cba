//! The inputs of a twin, block by block, whatever their strides and storage.

use std::ops::Range;

use super::layout::Pattern;
use super::map::Map;
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
        offset: usize,
        strides: &'a [usize],
    },
    /// What the output holds before it is written.
    Output,
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
            Pattern::Strided { offset, strides } => match (strides.split_last(), sizes.last()) {
                (Some((stride, outer)), Some(&period))
                    if *stride > 0 && outer.iter().all(|stride| *stride == 0) && period <= MAX_PERIOD =>
                {
                    let mut tile = vec![0.0; period];
                    x.gather_into(*offset, *stride, &mut tile);
                    let tile = tile.iter().copied().cycle().take(period + BLOCK_LEN).collect();
                    Self::Periodic { tile, period }
                }
                _ => Self::Strided { x, offset: *offset, strides },
            },
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
            Self::Output => unreachable!("the caller reads the output"),
            Self::Strided { x, offset, strides } => Rows::new(*offset, strides, sizes).operand(x, range, buffer),
        }
    }
}

fn element(x: &Floats<'_>, i: usize) -> f32 {
    let mut value = [0.0];
    x.get(i..i + 1, &mut value)[0]
}

/// The rows of a strided input along its innermost dimension.
struct Rows<'a> {
    /// Of the dimensions around the innermost one.
    sizes: &'a [usize],
    strides: &'a [usize],
    row_len: usize,
    inner_stride: usize,
    /// The indices of a row in the outer dimensions, and where it starts.
    indices: [usize; Map::MAX_DIMS],
    start: usize,
}

impl<'a> Rows<'a> {
    fn new(offset: usize, strides: &'a [usize], sizes: &'a [usize]) -> Self {
        let (&row_len, sizes) = sizes.split_last().unwrap_or((&1, &[]));
        let (&inner_stride, strides) = strides.split_last().unwrap_or((&0, &[]));
        Self { sizes, strides, row_len, inner_stride, indices: [0; Map::MAX_DIMS], start: offset }
    }

    fn operand<'b>(mut self, x: &'b Floats<'_>, range: Range<usize>, buffer: &'b mut [f32]) -> Operand<'b> {
        self.seek(range.start / self.row_len);
        let mut col = range.start % self.row_len;
        if col + range.len() <= self.row_len && self.inner_stride <= 1 {
            let start = self.start + col * self.inner_stride;
            return match self.inner_stride {
                0 => Operand::Splat(element(x, start)),
                _ => Operand::Slice(x.get(start..start + range.len(), buffer)),
            };
        }
        let mut rest = &mut buffer[..range.len()];
        while !rest.is_empty() {
            let len = (self.row_len - col).min(rest.len());
            let (part, after) = rest.split_at_mut(len);
            let start = self.start + col * self.inner_stride;
            match self.inner_stride {
                0 => part.fill(element(x, start)),
                1 => x.widen_into(start..start + len, part),
                stride => x.gather_into(start, stride, part),
            }
            rest = after;
            self.advance();
            col = 0;
        }
        Operand::Slice(&buffer[..range.len()])
    }

    /// Goes from the first row to row `row`.
    fn seek(&mut self, row: usize) {
        let mut rest = row;
        for (dim, size) in self.sizes.iter().enumerate().rev() {
            self.indices[dim] = rest % size;
            self.start += self.indices[dim] * self.strides[dim];
            rest /= size;
        }
    }

    /// Goes to the next row.
    fn advance(&mut self) {
        for (dim, size) in self.sizes.iter().enumerate().rev() {
            self.indices[dim] += 1;
            self.start += self.strides[dim];
            if self.indices[dim] < *size {
                return;
            }
            self.indices[dim] = 0;
            self.start -= size * self.strides[dim];
        }
    }
}
