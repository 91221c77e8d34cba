use rayon::prelude::*;

use crate::core::half::Element;
use crate::core::vectorised::vectorised;
use crate::{BatchNormFrozenStats, BatchNormShape, BatchNormStats, OnTeam};

pub(crate) fn stats<T: Element>(
    kernel: &BatchNormStats,
    x: &[T],
    running: [&mut [f32]; 2],
    stats: &mut [f32],
    parts: &mut [f32],
) {
    let shape = &kernel.shape;
    let c = shape.n_channels;
    each_part(
        shape,
        parts,
        #[inline(always)]
        |rows, part| {
            let (mean, squares) = part.split_at_mut(c);
            mean.fill(0.0);
            squares.fill(0.0);
            let x = &x[rows.start * c..rows.end * c];
            for row in x.chunks_exact(c) {
                for (sum, &x) in mean.iter_mut().zip(row) {
                    *sum += x.widen();
                }
            }
            let n = rows.len() as f32;
            for mean in mean.iter_mut() {
                *mean /= n;
            }
            for row in x.chunks_exact(c) {
                for ((squares, mean), &x) in squares.iter_mut().zip(&*mean).zip(row) {
                    let off = x.widen() - mean;
                    *squares += off * off;
                }
            }
        },
    );
    vectorised(
        #[inline(always)]
        || {
            for (group, stats) in stats.chunks_exact_mut(2 * c).enumerate() {
                merge(shape, &parts[group * shape.group_parts() * 2 * c..], stats);
            }
        },
    );

    // At this point, the second half of each group's statistics is still the variance.
    let (m, n_groups) = (shape.group_rows() as f32, shape.n_groups as f32);
    let [running_mean, running_var] = running;
    for channel in 0..c {
        let of_groups = |at: usize| stats[at..].iter().step_by(2 * c).sum::<f32>() / n_groups;
        let step = |running: &mut f32, new: f32| *running = (1.0 - kernel.momentum) * *running + kernel.momentum * new;
        step(&mut running_mean[channel], of_groups(channel));
        step(&mut running_var[channel], of_groups(c + channel) * (m / (m - 1.0)));
    }
    for stats in stats.chunks_exact_mut(2 * c) {
        stats[c..].iter_mut().for_each(|var| *var = 1.0 / (*var + kernel.eps).sqrt());
    }
}

/// The mean and the variance of a group from those of its parts, merged in order.
#[inline(always)]
fn merge(shape: &BatchNormShape, parts: &[f32], stats: &mut [f32]) {
    let c = shape.n_channels;
    let (mean, squares) = stats.split_at_mut(c);
    mean.fill(0.0);
    squares.fill(0.0);
    let mut n_before = 0;
    for part in parts.chunks_exact(2 * c).take(shape.group_parts()) {
        let n = shape.part_rows().min(shape.group_rows() - n_before);
        let share = n as f32 / (n_before + n) as f32;
        let (part_mean, part_squares) = part.split_at(c);
        for (((mean, squares), part_mean), part_squares) in mean.iter_mut().zip(&mut *squares).zip(part_mean).zip(part_squares) {
            let off = part_mean - *mean;
            *mean += off * share;
            *squares += part_squares + off * off * (share * n_before as f32);
        }
        n_before += n;
    }
    for squares in squares {
        *squares /= shape.group_rows() as f32;
    }
}

/// Calls `f(rows, sums)` for each part of each group; `parts` is `[n_groups, parts of a group, 2, n_channels]`.
pub(crate) fn each_part(shape: &BatchNormShape, parts: &mut [f32], f: impl Fn(std::ops::Range<usize>, &mut [f32]) + Sync) {
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
        parts.chunks_exact_mut(2 * shape.n_channels).enumerate().for_each(run);
    } else {
        parts.par_chunks_exact_mut(2 * shape.n_channels).enumerate().for_each_on_team(run);
    }
}

pub(crate) fn frozen_stats(kernel: &BatchNormFrozenStats, running_mean: &[f32], running_var: &[f32], stats: &mut [f32]) {
    let (mean, inv_std) = stats.split_at_mut(kernel.n_channels);
    mean.copy_from_slice(running_mean);
    inv_std.iter_mut().zip(running_var).for_each(|(inv_std, var)| *inv_std = 1.0 / (var + kernel.eps).sqrt());
}
