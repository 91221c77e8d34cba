use super::batch_norm_cpu::each_part;
use crate::BatchNormShape;
use crate::core::blocks::each_row_in_f32;
use crate::core::half::Element;

pub(crate) fn sums<T: Element>(
    shape: &BatchNormShape,
    grad_y: &[T],
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
            let (sum_grad_y, sum_grad_y_x) = part.split_at_mut(c);
            sum_grad_y.fill(0.0);
            sum_grad_y_x.fill(0.0);
            let rows = rows.start * c..rows.end * c;
            for (grad_y, x) in grad_y[rows.clone()].chunks_exact(c).zip(x[rows].chunks_exact(c)) {
                for ((((sum_grad_y, sum_grad_y_x), &grad_y), &x), mean) in
                    sum_grad_y.iter_mut().zip(&mut *sum_grad_y_x).zip(grad_y).zip(x).zip(mean)
                {
                    let grad_y = grad_y.widen();
                    *sum_grad_y += grad_y;
                    *sum_grad_y_x += grad_y * (x.widen() - mean);
                }
            }
            for (sum_grad_y_x, inv_std) in sum_grad_y_x.iter_mut().zip(inv_std) {
                *sum_grad_y_x *= inv_std;
            }
        },
    );
    let [sum_grad_y, sum_grad_y_x] = sums;
    for (group, (sum_grad_y, sum_grad_y_x)) in sum_grad_y.chunks_exact_mut(c).zip(sum_grad_y_x.chunks_exact_mut(c)).enumerate() {
        sum_grad_y.fill(0.0);
        sum_grad_y_x.fill(0.0);
        for part in parts.chunks_exact(2 * c).skip(group * shape.group_parts()).take(shape.group_parts()) {
            let (part_dy, part_dy_x) = part.split_at(c);
            sum_grad_y.iter_mut().zip(part_dy).for_each(|(sum, part)| *sum += part);
            sum_grad_y_x.iter_mut().zip(part_dy_x).for_each(|(sum, part)| *sum += part);
        }
    }
}

pub(crate) fn run<T: Element>(
    shape: &BatchNormShape,
    grad_y: &[T],
    x: &[T],
    stats: &[f32],
    weight: &[f32],
    sums: [&[f32]; 2],
    grad_x: &mut [T],
) {
    let c = shape.n_channels;
    let share = 1.0 / shape.group_rows() as f32;
    each_row_in_f32(
        c,
        grad_x,
        #[inline(always)]
        |row, grad_x| {
            let (mean, inv_std) = of_row(shape, stats, row);
            let group = row / shape.group_rows() * c;
            let (sum_grad_y, sum_grad_y_x) = (&sums[0][group..][..c], &sums[1][group..][..c]);
            let (grad_y, x) = (&grad_y[row * c..][..c], &x[row * c..][..c]);
            let values =
                grad_x.iter_mut().zip(grad_y).zip(x).zip(mean).zip(inv_std).zip(weight).zip(sum_grad_y).zip(sum_grad_y_x);
            for (((((((grad_x, &grad_y), &x), mean), inv_std), weight), sum_grad_y), sum_grad_y_x) in values {
                *grad_x =
                    inv_std * weight * (grad_y.widen() - share * (sum_grad_y + (x.widen() - mean) * inv_std * sum_grad_y_x));
            }
        },
    );
}

pub(crate) fn frozen<T: Element>(shape: &BatchNormShape, grad_y: &[T], stats: &[f32], weight: &[f32], grad_x: &mut [T]) {
    let c = shape.n_channels;
    each_row_in_f32(
        c,
        grad_x,
        #[inline(always)]
        |row, grad_x| {
            for (((grad_x, &grad_y), inv_std), weight) in grad_x.iter_mut().zip(&grad_y[row * c..]).zip(&stats[c..]).zip(weight) {
                *grad_x = grad_y.widen() * (inv_std * weight);
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
