use std::ops::Range;

use crate::cpu::blocks::{Threads, each_chunk};
use crate::cpu::room::read_in_f32;
use crate::norm::batch_norm::{BatchNormFrozenStats, BatchNormStats};
use crate::norm::batch_norm_shape::BatchNormShape;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

pub(crate) fn stats<T: Element>(
    kernel: &BatchNormStats,
    x: &[T],
    weights: &[f32],
    running: [&mut [f32]; 2],
    stats: &mut [f32],
    parts: &mut [f32],
) {
    let shape = &kernel.shape;
    let c = shape.n_channels;
    each_part(
        shape,
        parts,
        inlined!(|rows, part| {
            let of_rows = &x[rows.start * c..rows.end * c];
            // Widening bf16 again is faster than reading many values from the L2 cache.
            if T::as_bf16(of_rows).is_some_and(|x| x.len() > IN_L1_CACHE) {
                return sums(shape, of_rows, rows, weights, part);
            }
            read_in_f32(of_rows, inlined!(|x| sums(shape, x, rows, weights, part)));
        }),
    );

    let (mut n_moved, mut new) = (0.0, vec![0.0; 2 * c]);
    vectorised(inlined!(|| {
        for (parts, stats) in parts.chunks_exact(shape.group_parts() * shape.part_len()).zip(stats.chunks_exact_mut(2 * c)) {
            let [weight, squared] = merge(shape, parts, stats);
            let unbiased = weight - squared / weight;
            if unbiased > 0.0 {
                n_moved += 1.0;
                let factors = [1.0, weight / unbiased];
                for ((new, stats), factor) in new.chunks_exact_mut(c).zip(stats.chunks_exact(c)).zip(factors) {
                    new.iter_mut().zip(stats).for_each(|(new, stat)| *new += stat * factor);
                }
            }
            let inv_std = |var: f32| if weight > 0.0 { 1.0 / (var + kernel.eps).sqrt() } else { 0.0 };
            stats[c..].iter_mut().for_each(|var| *var = inv_std(*var));
        }
    }));
    if n_moved > 0.0 {
        let [running_mean, running_var] = running;
        for (running, new) in running_mean.iter_mut().chain(running_var).zip(new) {
            *running = (1.0 - kernel.momentum) * *running + kernel.momentum * (new / n_moved);
        }
    }
}

/// Values that are read twice and stay in the L1 cache meanwhile.
const IN_L1_CACHE: usize = 4 * 1024;
/// Columns whose sums stay in registers.
const LANES: usize = 64;

/// The sums of a part, which has the rows `rows`.
#[inline(always)]
fn sums<T: Element>(shape: &BatchNormShape, x: &[T], rows: Range<usize>, weights: &[f32], part: &mut [f32]) {
    if weights.is_empty() {
        return sums_of_rows(x, rows.len(), part);
    }
    let weight_rows = shape.n_rows / weights.len();
    let weights = rows.map(inlined!(|row| weights[row / weight_rows]));
    sums_of_weighted_rows(x, weights, part);
}

/// The mean of each column, the sum of the squares of what is off it, and the sums of the weights and of their squares.
#[inline(always)]
fn sums_of_rows<T: Element>(x: &[T], n_rows: usize, part: &mut [f32]) {
    let c = x.len() / n_rows;
    let (mean, rest) = part.split_at_mut(c);
    let (squares, total) = rest.split_at_mut(c);
    total.fill(n_rows as f32);
    sum_columns(x, squares, mean, inlined!(|x, _| x));
    mean.iter_mut().for_each(|mean| *mean /= n_rows as f32);
    sum_columns(x, mean, squares, inlined!(|x, mean| (x - mean) * (x - mean)));
}

/// `sums[col] = Σ_row f(x[row, col], of_columns[col])`.
#[inline(always)]
fn sum_columns<T: Element>(x: &[T], of_columns: &[f32], sums: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    let c = sums.len();
    sums.fill(0.0);
    if LANES.is_multiple_of(c) {
        // Several rows at a time, so that no sum waits for the previous one.
        let (chunks, rest) = x.as_chunks::<LANES>();
        let of_lanes: [f32; LANES] = std::array::from_fn(|i| of_columns[i % c]);
        let mut lanes = [0.0; LANES];
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] += f(chunk[i].widen(), of_lanes[i]);
            }
        }
        for of_row in lanes.chunks_exact(c) {
            sums.iter_mut().zip(of_row).for_each(|(sum, of_row)| *sum += of_row);
        }
        return add_rows(rest.chunks_exact(c), of_columns, sums, f);
    }
    for (i, (sums, of_columns)) in sums.chunks_mut(LANES).zip(of_columns.chunks(LANES)).enumerate() {
        let rows = x[i * LANES..].chunks(c);
        let (Some(whole), Some(of_lanes)) = (sums.first_chunk_mut::<LANES>(), of_columns.first_chunk::<LANES>()) else {
            add_rows(rows, of_columns, sums, &f);
            continue;
        };
        let mut lanes = [0.0; LANES];
        for row in rows.filter_map(<[T]>::first_chunk::<LANES>) {
            for i in 0..LANES {
                lanes[i] += f(row[i].widen(), of_lanes[i]);
            }
        }
        *whole = lanes;
    }
}

#[inline(always)]
fn add_rows<'a, T: Element>(
    rows: impl Iterator<Item = &'a [T]>,
    of_columns: &[f32],
    sums: &mut [f32],
    f: impl Fn(f32, f32) -> f32,
) {
    for row in rows {
        for ((sum, &of_column), &x) in sums.iter_mut().zip(of_columns).zip(row) {
            *sum += f(x.widen(), of_column);
        }
    }
}

/// The same for rows with weights.
#[inline(always)]
fn sums_of_weighted_rows<T: Element>(x: &[T], weights: impl ExactSizeIterator<Item = f32> + Clone, part: &mut [f32]) {
    let c = x.len() / weights.len();
    let (mean, rest) = part.split_at_mut(c);
    let (squares, total) = rest.split_at_mut(c);
    mean.fill(0.0);
    squares.fill(0.0);
    total.fill(0.0);
    for (weight, x) in weights.clone().zip(x.chunks_exact(c)) {
        total[0] += weight;
        total[1] += weight * weight;
        for (sum, &x) in mean.iter_mut().zip(x) {
            *sum += weight * x.widen();
        }
    }
    if total[0] > 0.0 {
        for mean in mean.iter_mut() {
            *mean /= total[0];
        }
    }
    for (weight, x) in weights.zip(x.chunks_exact(c)) {
        for ((squares, mean), &x) in squares.iter_mut().zip(&*mean).zip(x) {
            let off = x.widen() - mean;
            *squares += weight * (off * off);
        }
    }
}

/// The mean and the variance of a group from the sums of its parts, merged in order, and the sums of weights and their squares.
#[inline(always)]
fn merge(shape: &BatchNormShape, parts: &[f32], stats: &mut [f32]) -> [f32; 2] {
    let c = shape.n_channels;
    let (mean, squares) = stats.split_at_mut(c);
    mean.fill(0.0);
    squares.fill(0.0);
    let [mut total, mut squared] = [0.0; 2];
    for part in parts.chunks_exact(shape.part_len()).filter(|part| part[2 * c] > 0.0) {
        let weight = part[2 * c];
        let share = weight / (total + weight);
        let (part_mean, part_squares) = part.split_at(c);
        for (((mean, squares), part_mean), part_squares) in mean.iter_mut().zip(&mut *squares).zip(part_mean).zip(part_squares) {
            let off = part_mean - *mean;
            *mean += off * share;
            *squares += part_squares + off * off * (share * total);
        }
        total += weight;
        squared += part[2 * c + 1];
    }
    if total > 0.0 {
        squares.iter_mut().for_each(|squares| *squares /= total);
    }
    [total, squared]
}

/// Calls `f(rows, sums)` for each part of each group; `parts` is `[n_groups, parts of a group, part_len]`.
fn each_part(shape: &BatchNormShape, parts: &mut [f32], f: impl Fn(Range<usize>, &mut [f32]) + Sync) {
    each_chunk(Threads::for_work(shape.len(), 64 * 1024), shape.part_len(), parts, |i, part| {
        let (group, first) = (i / shape.group_parts(), i % shape.group_parts() * shape.part_rows());
        let end = (first + shape.part_rows()).min(shape.group_rows());
        let start = group * shape.group_rows();
        vectorised(inlined!(|| f(start + first..start + end, part)));
    });
}

pub(crate) fn frozen_stats(kernel: &BatchNormFrozenStats, running_mean: &[f32], running_var: &[f32], stats: &mut [f32]) {
    let (mean, inv_std) = stats.split_at_mut(kernel.n_channels);
    mean.copy_from_slice(running_mean);
    inv_std.iter_mut().zip(running_var).for_each(|(inv_std, var)| *inv_std = 1.0 / (var + kernel.eps).sqrt());
}
