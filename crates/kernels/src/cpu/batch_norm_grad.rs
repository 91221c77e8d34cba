use super::batch_norm::each_part;
use super::blocks::each_row_in_f32;
use super::half::Element;
use crate::BatchNormShape;

pub(crate) fn sums<T: Element>(
    shape: &BatchNormShape,
    dy: &[T],
    x: &[T],
    stats: &[f32],
    sums: [&mut [f32]; 2],
    parts: &mut [f32],
) {
    let c = shape.n_channels;
    each_part(
        shape,
        parts,
        #[inline(always)]
        |rows, part| {
            let (mean, inv_std) = of_row(shape, stats, rows.start);
            let (sum_dy, sum_dy_x) = part.split_at_mut(c);
            sum_dy.fill(0.0);
            sum_dy_x.fill(0.0);
            let rows = rows.start * c..rows.end * c;
            for (dy, x) in dy[rows.clone()].chunks_exact(c).zip(x[rows].chunks_exact(c)) {
                for ((((sum_dy, sum_dy_x), &dy), &x), mean) in sum_dy.iter_mut().zip(&mut *sum_dy_x).zip(dy).zip(x).zip(mean) {
                    let dy = dy.widen();
                    *sum_dy += dy;
                    *sum_dy_x += dy * (x.widen() - mean);
                }
            }
            for (sum_dy_x, inv_std) in sum_dy_x.iter_mut().zip(inv_std) {
                *sum_dy_x *= inv_std;
            }
        },
    );
    let [sum_dy, sum_dy_x] = sums;
    for (group, (sum_dy, sum_dy_x)) in sum_dy.chunks_exact_mut(c).zip(sum_dy_x.chunks_exact_mut(c)).enumerate() {
        sum_dy.fill(0.0);
        sum_dy_x.fill(0.0);
        for part in parts.chunks_exact(2 * c).skip(group * shape.group_parts()).take(shape.group_parts()) {
            let (part_dy, part_dy_x) = part.split_at(c);
            sum_dy.iter_mut().zip(part_dy).for_each(|(sum, part)| *sum += part);
            sum_dy_x.iter_mut().zip(part_dy_x).for_each(|(sum, part)| *sum += part);
        }
    }
}

pub(crate) fn run<T: Element>(
    shape: &BatchNormShape,
    dy: &[T],
    x: &[T],
    stats: &[f32],
    weight: &[f32],
    sums: [&[f32]; 2],
    dx: &mut [T],
) {
    let c = shape.n_channels;
    let share = 1.0 / shape.group_rows() as f32;
    each_row_in_f32(
        c,
        dx,
        #[inline(always)]
        |row, dx| {
            let (mean, inv_std) = of_row(shape, stats, row);
            let group = row / shape.group_rows() * c;
            let (sum_dy, sum_dy_x) = (&sums[0][group..][..c], &sums[1][group..][..c]);
            let (dy, x) = (&dy[row * c..][..c], &x[row * c..][..c]);
            let values = dx.iter_mut().zip(dy).zip(x).zip(mean).zip(inv_std).zip(weight).zip(sum_dy).zip(sum_dy_x);
            for (((((((dx, &dy), &x), mean), inv_std), weight), sum_dy), sum_dy_x) in values {
                *dx = inv_std * weight * (dy.widen() - share * (sum_dy + (x.widen() - mean) * inv_std * sum_dy_x));
            }
        },
    );
}

pub(crate) fn frozen<T: Element>(shape: &BatchNormShape, dy: &[T], stats: &[f32], weight: &[f32], dx: &mut [T]) {
    let c = shape.n_channels;
    each_row_in_f32(
        c,
        dx,
        #[inline(always)]
        |row, dx| {
            for (((dx, &dy), inv_std), weight) in dx.iter_mut().zip(&dy[row * c..]).zip(&stats[c..]).zip(weight) {
                *dx = dy.widen() * (inv_std * weight);
            }
        },
    );
}

/// The means and the inverse deviations of a row's group.
#[inline(always)]
fn of_row<'a>(shape: &BatchNormShape, stats: &'a [f32], row: usize) -> (&'a [f32], &'a [f32]) {
    let c = shape.n_channels;
    stats[row / shape.group_rows() * 2 * c..][..2 * c].split_at(c)
}
