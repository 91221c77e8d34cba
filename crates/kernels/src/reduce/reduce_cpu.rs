use rayon::prelude::*;

use super::reduce::passes;
use crate::core::half::Element;
use crate::core::vectorised::vectorised;
use crate::{Reduce, ReduceOp};

/// Results a task.
const BLOCK_LEN: usize = 1024;
/// Elements below which a pass is not worth handing to other threads.
const SERIAL_LEN: usize = 64 * 1024;
/// Elements of a run that are joined side by side where a run has one result.
const LANES: usize = 16;

/// The passes of the shader, in the same order.
pub(crate) fn run<T: Element>(kernel: &Reduce, x: &[T], y: &mut [f32], mut parts: Vec<&mut [f32]>) {
    let Reduce { n, n_inner, op, .. } = *kernel;
    let mut n_before = n;
    for (i, n_parts) in passes(n).into_iter().enumerate() {
        let (before, after) = parts.split_at_mut(i);
        let to = after.first_mut().map_or(&mut *y, |parts| &mut **parts);
        let shape = Pass { n_run: n_before * n_inner, width: n_parts * n_inner };
        match before.last() {
            None => first_pass(op, shape, x, to),
            Some(from) => further_pass(op, shape, from, to),
        }
        n_before = n_parts;
    }
    match op {
        ReduceOp::Mean => y.iter_mut().for_each(|y| *y /= n as f32),
        ReduceOp::Norm => y.iter_mut().for_each(|y| *y = y.sqrt()),
        _ => {}
    }
}

fn first_pass<T: Element>(op: ReduceOp, shape: Pass, x: &[T], y: &mut [f32]) {
    match op {
        ReduceOp::Max => pass(shape, x, y, keep, greater),
        ReduceOp::Min => pass(shape, x, y, keep, less),
        ReduceOp::Norm => pass(shape, x, y, square, add),
        ReduceOp::NonFinite => pass(shape, x, y, non_finite, greater),
        ReduceOp::Sum | ReduceOp::Mean => pass(shape, x, y, keep, add),
    }
}

fn further_pass(op: ReduceOp, shape: Pass, x: &[f32], y: &mut [f32]) {
    match op {
        ReduceOp::Max | ReduceOp::NonFinite => pass(shape, x, y, keep, greater),
        ReduceOp::Min => pass(shape, x, y, keep, less),
        ReduceOp::Sum | ReduceOp::Mean | ReduceOp::Norm => pass(shape, x, y, keep, add),
    }
}

/// Runs of `n_run` elements, each cut into lines of `width`, which are joined.
#[derive(Clone, Copy)]
struct Pass {
    n_run: usize,
    width: usize,
}

fn pass<T: Element>(
    shape: Pass,
    x: &[T],
    y: &mut [f32],
    element: impl Fn(f32) -> f32 + Sync,
    join: impl Fn(f32, f32) -> f32 + Sync,
) {
    let Pass { n_run, width } = shape;
    // A block is several runs where they are narrow, or part of one.
    let block_len = if width < BLOCK_LEN { BLOCK_LEN / width * width } else { BLOCK_LEN };
    let run = |start: usize, y: &mut [f32]| {
        vectorised(
            #[inline(always)]
            || {
                for (i, y) in y.chunks_mut(width).enumerate() {
                    let (run, col) = ((start + i * width) / width, (start + i * width) % width);
                    let x = &x[run * n_run..][..n_run];
                    match y {
                        [y] if width == 1 => *y = join_run(x, &element, &join),
                        y => join_lines(x, width, col, y, &element, &join),
                    }
                }
            },
        );
    };
    let runs: Vec<_> = if width < BLOCK_LEN { vec![(0, y)] } else { y.chunks_mut(width).enumerate().collect() };
    for (i, y) in runs {
        if x.len() < SERIAL_LEN {
            y.chunks_mut(block_len).enumerate().for_each(|(block, y)| run(i * width + block * block_len, y));
        } else {
            y.par_chunks_mut(block_len).enumerate().for_each(|(block, y)| run(i * width + block * block_len, y));
        }
    }
}

/// `y[c]` = the lines of `x` joined at `col + c`.
#[inline(always)]
fn join_lines<T: Element>(
    x: &[T],
    width: usize,
    col: usize,
    y: &mut [f32],
    element: impl Fn(f32) -> f32,
    join: impl Fn(f32, f32) -> f32,
) {
    let mut lines = x.chunks(width);
    if let Some(first) = lines.next() {
        for (y, &x) in y.iter_mut().zip(&first[col..]) {
            *y = element(x.widen());
        }
    }
    for line in lines {
        // The last line may be short.
        for (y, &x) in y.iter_mut().zip(line.get(col..).unwrap_or_default()) {
            *y = join(*y, element(x.widen()));
        }
    }
}

/// All of a run joined.
#[inline(always)]
fn join_run<T: Element>(x: &[T], element: impl Fn(f32) -> f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let (head, tail) = x.split_at(x.len() - x.len() % LANES);
    let mut lanes: Option<[f32; LANES]> = None;
    for chunk in head.chunks_exact(LANES) {
        let mut next = [0.0; LANES];
        for (next, &x) in next.iter_mut().zip(chunk) {
            *next = element(x.widen());
        }
        if let Some(lanes) = &lanes {
            for (next, &lane) in next.iter_mut().zip(lanes) {
                *next = join(lane, *next);
            }
        }
        lanes = Some(next);
    }
    let mut joined: Option<f32> = None;
    for value in lanes.into_iter().flatten() {
        joined = Some(joined.map_or(value, |joined| join(joined, value)));
    }
    for &x in tail {
        let value = element(x.widen());
        joined = Some(joined.map_or(value, |joined| join(joined, value)));
    }
    joined.unwrap_or(0.0)
}

#[inline(always)]
fn keep(x: f32) -> f32 {
    x
}

#[inline(always)]
fn square(x: f32) -> f32 {
    x * x
}

#[inline(always)]
fn non_finite(x: f32) -> f32 {
    if x.is_finite() { 0.0 } else { 1.0 }
}

#[inline(always)]
fn add(a: f32, b: f32) -> f32 {
    a + b
}

/// Not `max`, which would pass NaN over.
#[inline(always)]
fn greater(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}

#[inline(always)]
fn less(a: f32, b: f32) -> f32 {
    if b < a || b.is_nan() { b } else { a }
}
