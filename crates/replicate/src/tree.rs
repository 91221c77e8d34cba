//! The fixed order in which values of ranks are reduced: a binary tree over runs of ranks that start at multiples of their length.
//!
//! `((0 + 1) + (2 + 3)) + ((4 + 5) + 6)`. It does not depend on who computes it, on the length of a buffer or on how that is cut, so a sum has the same bits on
//! every engine and in every run; and a rank that has itself summed an aligned run of parts by this tree continues it.

use std::ops::Range;

use crate::{Element, ReduceOp};

/// Elements that are reduced at a time: few enough for the first cache.
pub(crate) const BLOCK: usize = 2048;

/// Reduces a block of as many ranks as `rank_block` is asked for, and gives back the result in the elements' sum type.
///
/// `rank_block(rank, out)` widens that rank's block into `out`; `partials` is working memory, kept from call to call.
pub(crate) fn reduce<T: Element>(
    n_ranks: usize,
    op: ReduceOp,
    len: usize,
    partials: &mut Vec<Vec<T::Sum>>,
    mut rank_block: impl FnMut(usize, &mut [T::Sum]),
) -> &[T::Sum] {
    let mut depth = 0;
    for rank in 0..n_ranks {
        if partials.len() == depth {
            partials.push(vec![T::Sum::default(); BLOCK]);
        }
        rank_block(rank, &mut partials[depth][..len]);
        depth += 1;
        // Like a binary counter: two runs of one length become a run of twice that.
        for _ in 0..rank.trailing_ones() {
            depth -= 1;
            merge::<T>(op, len, partials, depth);
        }
    }
    while depth > 1 {
        depth -= 1;
        merge::<T>(op, len, partials, depth);
    }
    let reduced = &mut partials[0][..len];
    if op == ReduceOp::Mean {
        reduced.iter_mut().for_each(|sum| *sum = T::mean(*sum, n_ranks));
    }
    reduced
}

/// Adds partial `at` to the one before it.
fn merge<T: Element>(op: ReduceOp, len: usize, partials: &mut [Vec<T::Sum>], at: usize) {
    let (before, after) = partials.split_at_mut(at);
    let pairs = before[at - 1][..len].iter_mut().zip(&after[0][..len]);
    match op {
        ReduceOp::Sum | ReduceOp::Mean => pairs.for_each(|(a, &b)| *a = T::add(*a, b)),
        ReduceOp::Max => pairs.for_each(|(a, &b)| *a = T::max(*a, b)),
    }
}

/// The elements that `rank` reduces of `len`: whole cache lines, but for the last.
pub(crate) fn part(len: usize, n_ranks: usize, rank: usize) -> Range<usize> {
    const LINE: usize = 64;
    let cut = |rank: usize| if rank == n_ranks { len } else { len / n_ranks * rank / LINE * LINE };
    cut(rank)..cut(rank + 1)
}

/// A range in blocks.
pub(crate) fn blocks(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(BLOCK).map(move |start| start..(start + BLOCK).min(range.end))
}

/// A block in what it is summed in.
pub(crate) fn widen<T: Element>(values: &[T], out: &mut [T::Sum]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = value.widen());
}
