use rayon::prelude::*;

use crate::cpu::team::OnTeam;
use crate::cpu::vectorised::vectorised;
use crate::norm::batch_norm::{BatchNormFrozenStats, BatchNormShape, BatchNormStats};
use crate::storage::element::Element;

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
    if weights.is_empty() {
        stats_of_parts(
            shape,
            x,
            #[inline(always)]
            |_| 1.0,
            parts,
        );
    } else {
        let weight_rows = shape.n_rows / weights.len();
        stats_of_parts(
            shape,
            x,
            #[inline(always)]
            |row| weights[row / weight_rows],
            parts,
        );
    }

    let (mut n_moved, mut new) = (0.0, vec![0.0; 2 * c]);
    vectorised(
        #[inline(always)]
        || {
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
        },
    );
    if n_moved > 0.0 {
        let [running_mean, running_var] = running;
        for (running, new) in running_mean.iter_mut().chain(running_var).zip(new) {
            *running = (1.0 - kernel.momentum) * *running + kernel.momentum * (new / n_moved);
        }
    }
}

/// The sums of each part of `x`.
fn stats_of_parts<T: Element>(shape: &BatchNormShape, x: &[T], weight: impl Fn(usize) -> f32 + Sync, parts: &mut [f32]) {
    let c = shape.n_channels;
    each_part(
        shape,
        parts,
        #[inline(always)]
        |rows, part| {
            let (mean, rest) = part.split_at_mut(c);
            let (squares, total) = rest.split_at_mut(c);
            mean.fill(0.0);
            squares.fill(0.0);
            total.fill(0.0);
            let x = &x[rows.start * c..rows.end * c];
            for (row, x) in rows.clone().zip(x.chunks_exact(c)) {
                let weight = weight(row);
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
            for (row, x) in rows.zip(x.chunks_exact(c)) {
                let weight = weight(row);
                for ((squares, mean), &x) in squares.iter_mut().zip(&*mean).zip(x) {
                    let off = x.widen() - mean;
                    *squares += weight * (off * off);
                }
            }
        },
    );
}

/// The mean and the variance of a group from the sums of its parts, merged in order, and the sums of its weights and of their
/// squares.
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
fn each_part(shape: &BatchNormShape, parts: &mut [f32], f: impl Fn(std::ops::Range<usize>, &mut [f32]) + Sync) {
    let run = |(i, part): (usize, &mut [f32])| {
        let (group, first) = (i / shape.group_parts(), i % shape.group_parts() * shape.part_rows());
        let end = (first + shape.part_rows()).min(shape.group_rows());
        let start = group * shape.group_rows();
        vectorised(
            #[inline(always)]
            || f(start + first..start + end, part),
        );
    };
    if shape.len() < 64 * 1024 {
        parts.chunks_exact_mut(shape.part_len()).enumerate().for_each(run);
    } else {
        parts.par_chunks_exact_mut(shape.part_len()).enumerate().for_each_on_team(run);
    }
}

pub(crate) fn frozen_stats(kernel: &BatchNormFrozenStats, running_mean: &[f32], running_var: &[f32], stats: &mut [f32]) {
    let (mean, inv_std) = stats.split_at_mut(kernel.n_channels);
    mean.copy_from_slice(running_mean);
    inv_std.iter_mut().zip(running_var).for_each(|(inv_std, var)| *inv_std = 1.0 / (var + kernel.eps).sqrt());
}
