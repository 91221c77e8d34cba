//! The fixed order in which ranks are reduced: a binary tree over spans of ranks, which start at multiples of their lengths.
//!
//! `((0 + 1) + (2 + 3)) + ((4 + 5) + 6)`. It does not depend on which rank computes it, on the length of a buffer or on how that
//! is cut, so a sum is bit-identical on every engine and in every run. If a rank has already summed an aligned span of parts in
//! this order, the reduction continues the same tree.

use std::ops::Range;

use crate::element::Element;
use crate::reduce_op::ReduceOp;
use crate::vectorised::vectorised;

/// Elements that are reduced at a time: few enough for the L1 cache.
const BLOCK: usize = 2048;

/// Replaces buffers, one per rank and of equal length, by their reduction.
pub(crate) fn reduce_in_place<T: Element>(buffers: &mut [&mut [T]], op: ReduceOp) {
    match op {
        ReduceOp::Sum | ReduceOp::Mean => in_place::<T, Sum>(buffers, share(op, buffers.len())),
        ReduceOp::Max => in_place::<T, Largest>(buffers, 1.0),
    }
}

/// Reduces `inputs`, one per rank and each as long as `out`, into `out`.
pub(crate) fn reduce_into<T: Element>(inputs: &[&[T]], op: ReduceOp, out: &mut [T]) {
    match op {
        ReduceOp::Sum | ReduceOp::Mean => into::<T, Sum>(inputs, share(op, inputs.len()), out),
        ReduceOp::Max => into::<T, Largest>(inputs, 1.0, out),
    }
}

/// Turns sums over ranks into means.
#[cfg(feature = "mpi")]
pub(crate) fn means_of_sums<T: Element>(sums: &mut [T], n_ranks: usize) {
    let share = share(ReduceOp::Mean, n_ranks);
    vectorised(
        #[inline(always)]
        || sums.iter_mut().for_each(|sum| *sum = T::narrow(T::scale(sum.widen(), share))),
    );
}

/// The elements out of `len` that `rank` reduces: whole cache lines, except for the last rank.
pub(crate) fn part(len: usize, n_ranks: usize, rank: usize) -> Range<usize> {
    const LINE: usize = 64;
    let cut = |rank: usize| if rank == n_ranks { len } else { len / n_ranks * rank / LINE * LINE };
    cut(rank)..cut(rank + 1)
}

/// The factor applied to the final sum; multiplying by 1 is exact.
fn share(op: ReduceOp, n_ranks: usize) -> f32 {
    if op == ReduceOp::Mean { 1.0 / n_ranks as f32 } else { 1.0 }
}

/// How two values are combined; a type parameter, so that loops are compiled for each operation.
trait Combine<T: Element> {
    fn combine(a: T::Sum, b: T::Sum) -> T::Sum;
}

struct Sum;
struct Largest;

impl<T: Element> Combine<T> for Sum {
    #[inline(always)]
    fn combine(a: T::Sum, b: T::Sum) -> T::Sum {
        T::add(a, b)
    }
}

impl<T: Element> Combine<T> for Largest {
    #[inline(always)]
    fn combine(a: T::Sum, b: T::Sum) -> T::Sum {
        T::max(a, b)
    }
}

fn in_place<T: Element, C: Combine<T>>(buffers: &mut [&mut [T]], share: f32) {
    // Two ranks need one loop: every element is read once, and written while it is in the cache.
    if let [a, b] = buffers {
        return vectorised(
            #[inline(always)]
            || {
                for (a, b) in a.iter_mut().zip(b.iter_mut()) {
                    let reduced = T::narrow(T::scale(C::combine(a.widen(), b.widen()), share));
                    (*a, *b) = (reduced, reduced);
                }
            },
        );
    }
    let n_ranks = buffers.len();
    let mut partials = Vec::new();
    for block in blocks(buffers.first().map_or(0, |first| first.len())) {
        let of_rank = |rank: usize| &buffers[rank][block.clone()];
        let reduced = reduce_block::<T, C>(n_ranks, block.len(), &mut partials, of_rank);
        let Some((first, others)) = buffers.split_first_mut() else { return };
        narrow(reduced, share, &mut first[block.clone()]);
        others.iter_mut().for_each(|other| other[block.clone()].copy_from_slice(&first[block.clone()]));
    }
}

fn into<T: Element, C: Combine<T>>(inputs: &[&[T]], share: f32, out: &mut [T]) {
    if let [a, b] = inputs {
        return vectorised(
            #[inline(always)]
            || {
                for ((out, a), b) in out.iter_mut().zip(*a).zip(*b) {
                    *out = T::narrow(T::scale(C::combine(a.widen(), b.widen()), share));
                }
            },
        );
    }
    let mut partials = Vec::new();
    for block in blocks(out.len()) {
        let of_rank = |rank: usize| &inputs[rank][block.clone()];
        let reduced = reduce_block::<T, C>(inputs.len(), block.len(), &mut partials, of_rank);
        narrow(reduced, share, &mut out[block]);
    }
}

/// Reduces one block of every rank and returns the result in the accumulator type. `partials` is working memory.
fn reduce_block<'a, 'b, T: Element, C: Combine<T>>(
    n_ranks: usize,
    len: usize,
    partials: &'a mut Vec<Vec<T::Sum>>,
    of_rank: impl Fn(usize) -> &'b [T],
) -> &'a [T::Sum] {
    let mut depth = 0;
    for first in (0..n_ranks).step_by(2) {
        if partials.len() == depth {
            // The first block is the longest.
            partials.push(vec![T::Sum::default(); len]);
        }
        let partial = &mut partials[depth][..len];
        depth += 1;
        if first + 1 == n_ranks {
            widen(of_rank(first), partial);
            break;
        }
        combine_two::<T, C>(of_rank(first), of_rank(first + 1), partial);
        // Like a binary counter: two spans of the same length become one of twice that length.
        for _ in 0..(first / 2).trailing_ones() {
            depth -= 1;
            merge::<T, C>(len, partials, depth);
        }
    }
    while depth > 1 {
        depth -= 1;
        merge::<T, C>(len, partials, depth);
    }
    &partials[0][..len]
}

/// Adds partial `at` to the one before it.
fn merge<T: Element, C: Combine<T>>(len: usize, partials: &mut [Vec<T::Sum>], at: usize) {
    let (before, after) = partials.split_at_mut(at);
    let (sums, others) = (&mut before[at - 1][..len], &after[0][..len]);
    vectorised(
        #[inline(always)]
        || sums.iter_mut().zip(others).for_each(|(sum, &other)| *sum = C::combine(*sum, other)),
    );
}

fn combine_two<T: Element, C: Combine<T>>(a: &[T], b: &[T], sums: &mut [T::Sum]) {
    vectorised(
        #[inline(always)]
        || {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum = C::combine(a.widen(), b.widen());
            }
        },
    );
}

fn widen<T: Element>(values: &[T], sums: &mut [T::Sum]) {
    vectorised(
        #[inline(always)]
        || sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = value.widen()),
    );
}

fn narrow<T: Element>(sums: &[T::Sum], share: f32, values: &mut [T]) {
    vectorised(
        #[inline(always)]
        || values.iter_mut().zip(sums).for_each(|(value, &sum)| *value = T::narrow(T::scale(sum, share))),
    );
}

/// Cuts `len` elements into blocks.
fn blocks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(len))
}
