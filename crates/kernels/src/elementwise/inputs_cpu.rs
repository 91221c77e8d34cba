//! The inputs of a twin, block by block, for any strides and storage types.

use std::ops::Range;

use crate::aligned::AlignedFloats;
use crate::expr::{BLOCK_LEN, Evaluator, Expr, Operand, hoist};
use crate::kernel::floats::Floats;
use crate::kernel::twin::TwinArgs;
use crate::map::layout::Pattern;
use crate::map::map::Map;
use crate::map::map_input::{MapInput, n_elements};
use crate::random::draws_cpu::Drawn;
use crate::sizes::in_u32;
use crate::vectorised::{inlined, vectorised};

/// The maximum period of a repeating input that is written out, so that blocks are slices of it.
const MAX_PERIOD: usize = 16 * 1024;
/// The maximum number of values that are written out for the periods of all groups.
const MAX_TILES_LEN: usize = 64 * 1024;

/// An input, by how its elements are accessed.
pub(crate) enum Input<'a> {
    One(f32),
    All(Floats<'a>),
    Periodic(Periodic),
    Strided {
        x: Floats<'a>,
        offset: usize,
        strides: &'a [usize],
    },
    Drawn(Drawn),
    /// The content of the output before it is written.
    Output,
}

impl<'a> Input<'a> {
    /// Memory for [`operand`](Self::operand), if it needs any.
    pub(crate) fn buffer(&self) -> AlignedFloats {
        let is_in_place = match self {
            Self::One(_) | Self::All(Floats::F32(_)) => true,
            Self::Periodic(periodic) => periodic.n_groups() == 1,
            Self::All(_) | Self::Strided { .. } | Self::Drawn(_) | Self::Output => false,
        };
        AlignedFloats::new(if is_in_place { 0 } else { BLOCK_LEN })
    }

    pub(crate) fn new(args: &TwinArgs<'a>, name: &'static str, input: &MapInput, pattern: &'a Pattern, sizes: &[usize]) -> Self {
        if let Some(draws) = &input.draws {
            return Self::Drawn(Drawn::new(draws, args.read(name)));
        }
        let x = Floats::of(args, name);
        match pattern {
            Pattern::One => Self::One(element(&x, 0)),
            Pattern::All => Self::All(x),
            Pattern::Strided { offset, strides } => match Periodic::new(&x, *offset, strides, sizes) {
                Some(periodic) => Self::Periodic(periodic),
                None => Self::Strided { x, offset: *offset, strides },
            },
        }
    }

    fn as_periodic(&self) -> Option<&Periodic> {
        if let Self::Periodic(periodic) = self { Some(periodic) } else { None }
    }

    /// The values of an expression of single values and periodic inputs.
    fn of_expr(expr: &Expr, inputs: &[Self]) -> Self {
        let is_read: Vec<bool> = (0..inputs.len()).map(|i| expr.reads(i)).collect();
        let read = inputs.iter().zip(&is_read).filter(|(_, is_read)| **is_read).map(|(input, _)| input);
        let evaluator = Evaluator::new(std::slice::from_ref(expr));
        let evaluate = |group: usize, y: &mut [f32]| {
            let operands = inputs.iter().zip(&is_read).map(|(input, is_read)| match input {
                Self::One(value) => Operand::Splat(*value),
                Self::Periodic(periodic) if *is_read => Operand::Slice(periodic.of_group(group)),
                _ => Operand::Splat(0.0),
            });
            evaluator.run(&operands.collect::<Vec<_>>(), &mut [y]);
        };
        match read.filter_map(Self::as_periodic).max_by_key(|periodic| periodic.n_groups()) {
            Some(like) => Self::Periodic(Periodic::new_filled(like.n_groups(), like.period, like.group_len, evaluate)),
            None => {
                let mut value = [0.0];
                evaluate(0, &mut value);
                Self::One(value[0])
            }
        }
    }

    /// Its values for the elements of `range`, in `buffer` unless they are already contiguous somewhere.
    pub(crate) fn operand<'b>(&'b self, range: Range<usize>, sizes: &[usize], buffer: &'b mut [f32]) -> Operand<'b> {
        match self {
            Self::One(value) => Operand::Splat(*value),
            Self::All(x) => Operand::Slice(x.get(range, buffer)),
            Self::Periodic(periodic) => Operand::Slice(periodic.block(range, buffer)),
            Self::Drawn(drawn) => {
                // By value, so that stores cannot change the keys and the loop vectorises.
                let (drawn, start) = (*drawn, in_u32(range.start));
                vectorised(inlined!(|| drawn.fill(start, buffer)));
                Operand::Slice(buffer)
            }
            Self::Output => unreachable!("the caller reads the output"),
            Self::Strided { x, offset, strides } => Rows::new(*offset, strides, sizes).operand(x, range, buffer),
        }
    }
}

/// Computes once what need not be computed for each element: subexpressions of single values and of periodic inputs, such as the
/// factors of channels. Returns the expressions and inputs that remain, which give the same bits.
pub(crate) fn precomputed<'a>(exprs: Vec<Expr>, inputs: Vec<Input<'a>>) -> (Vec<Expr>, Vec<Input<'a>>) {
    let most_groups = inputs.iter().filter_map(Input::as_periodic).max_by_key(|periodic| periodic.n_groups());
    let is_fixed: Vec<bool> = inputs
        .iter()
        .map(|input| match input {
            Input::One(_) => true,
            Input::Periodic(periodic) => most_groups.is_some_and(|most| periodic.repeats_as(most)),
            _ => false,
        })
        .collect();
    let Some(hoisted) = hoist(&exprs, &is_fixed).filter(|hoisted| hoisted.n_inputs() <= Map::MAX_ARGS) else {
        return (exprs, inputs);
    };
    let parts: Vec<Input<'a>> = hoisted.parts.iter().map(|part| Input::of_expr(part, &inputs)).collect();
    let kept = inputs.into_iter().enumerate().filter(|(i, _)| hoisted.inputs.contains(i)).map(|(_, input)| input);
    (hoisted.rest, kept.chain(parts).collect())
}

fn element(x: &Floats<'_>, i: usize) -> f32 {
    let mut value = [0.0];
    x.get(i..i + 1, &mut value)[0]
}

/// An input that repeats its innermost dimension, such as a bias, or repeats it within each of several groups of elements, such
/// as the statistics of ghost batch normalisation.
pub(crate) struct Periodic {
    /// For each group, as many periods as any block within the group needs.
    tiles: AlignedFloats,
    period: usize,
    /// Elements of a group.
    group_len: usize,
}

impl Periodic {
    /// `None` if the input does not repeat like this, or if the written-out periods would be too long.
    fn new(x: &Floats<'_>, offset: usize, strides: &[usize], sizes: &[usize]) -> Option<Self> {
        let (&stride, outer) = strides.split_last()?;
        let &period = sizes.last()?;
        let n_repeated = outer.iter().rev().take_while(|stride| **stride == 0).count();
        if stride == 0 || n_repeated == 0 || period > MAX_PERIOD {
            return None;
        }
        let n_group_dims = outer.len() - n_repeated;
        let (n_groups, group_len) = (n_elements(&sizes[..n_group_dims]), n_elements(&sizes[n_group_dims..]));
        let tile_len = period + BLOCK_LEN;
        // For short groups, writing the periods out would take longer than it saves.
        if n_groups > 1 && (group_len < 2 * tile_len || n_groups.saturating_mul(tile_len) > MAX_TILES_LEN) {
            return None;
        }
        let mut rows = Rows::new(offset, &strides[..=n_group_dims], &sizes[..=n_group_dims]);
        Some(Self::new_filled(n_groups, period, group_len, |_, of_group| {
            x.gather_into(rows.start, stride, of_group);
            rows.advance();
        }))
    }

    /// `fill(group, period)` writes the values of each group.
    fn new_filled(n_groups: usize, period: usize, group_len: usize, mut fill: impl FnMut(usize, &mut [f32])) -> Self {
        let tile_len = period + BLOCK_LEN;
        let mut tiles = AlignedFloats::new(n_groups * tile_len);
        for (group, tile) in tiles.chunks_exact_mut(tile_len).enumerate() {
            fill(group, &mut tile[..period]);
            (period..tile_len).for_each(|i| tile[i] = tile[i - period]);
        }
        Self { tiles, period, group_len }
    }

    /// Whether each group of it is within one of `other`, so that an expression of both repeats as `other` does.
    fn repeats_as(&self, other: &Self) -> bool {
        self.n_groups() == 1 || self.n_groups() == other.n_groups()
    }

    /// The values of a group.
    fn of_group(&self, group: usize) -> &[f32] {
        let at = if self.n_groups() == 1 { 0 } else { group * (self.period + BLOCK_LEN) };
        &self.tiles[at..at + self.period]
    }

    fn n_groups(&self) -> usize {
        self.tiles.len() / (self.period + BLOCK_LEN)
    }

    /// The values for the elements of `range`, in `buffer` if they belong to several groups.
    fn block<'b>(&'b self, range: Range<usize>, buffer: &'b mut [f32]) -> &'b [f32] {
        let left_in_group = self.group_len - range.start % self.group_len;
        if range.len() <= left_in_group {
            return self.within_group(range);
        }
        let values = &mut buffer[..range.len()];
        let (mut start, mut n_done) = (range.start, 0);
        while start < range.end {
            let end = range.end.min((start / self.group_len + 1) * self.group_len);
            values[n_done..n_done + end - start].copy_from_slice(self.within_group(start..end));
            n_done += end - start;
            start = end;
        }
        values
    }

    fn within_group(&self, range: Range<usize>) -> &[f32] {
        let at = range.start / self.group_len * (self.period + BLOCK_LEN) + range.start % self.period;
        &self.tiles[at..at + range.len()]
    }
}

/// The rows of a strided input along its innermost dimension.
struct Rows<'a> {
    /// The sizes of the dimensions around the innermost one.
    sizes: &'a [usize],
    strides: &'a [usize],
    row_len: usize,
    inner_stride: usize,
    /// The indices of a row in the outer dimensions, and its first element.
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

    /// Advances from the first row to row `row`.
    fn seek(&mut self, row: usize) {
        let mut rest = row;
        for (dim, size) in self.sizes.iter().enumerate().rev() {
            self.indices[dim] = rest % size;
            self.start += self.indices[dim] * self.strides[dim];
            rest /= size;
        }
    }

    /// Advances to the next row.
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
