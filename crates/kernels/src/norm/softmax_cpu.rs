use crate::expr::exp_of_differences;
use crate::float::exp;
use crate::norm::softmax::{Softmax, SoftmaxForm};
use crate::reduce::rows_cpu::{each_row_block, max, sum, sum_of_two};
use crate::vectorised::inlined;

/// The minimum number of columns for which a separate loop per row pays.
const WIDE: usize = 64;

pub(crate) fn run(kernel: &Softmax, x: &[f32], y: &mut [f32]) {
    let n_cols = kernel.n_cols;
    each_row_block(
        [n_cols; 2],
        y,
        inlined!(|first, y| {
            let x = &x[first * n_cols..][..y.len()];
            let rows = x.chunks_exact(n_cols).zip(y.chunks_exact_mut(n_cols));
            match kernel.form {
                SoftmaxForm::Probability if n_cols >= WIDE => {
                    for (x, y) in rows {
                        let sum = exp_of_differences(x, max(x), y);
                        scale(y, 1.0 / sum);
                    }
                }
                SoftmaxForm::Probability => {
                    subtract_maxima(rows);
                    probabilities(n_cols, y);
                }
                SoftmaxForm::Log => {
                    subtract_maxima(rows);
                    logarithms(n_cols, y);
                }
            }
        }),
    );
}

#[inline(always)]
fn subtract_maxima<'a>(rows: impl Iterator<Item = (&'a [f32], &'a mut [f32])>) {
    for (x, y) in rows {
        let m = max(x);
        for (y, x) in y.iter_mut().zip(x) {
            *y = x - m;
        }
    }
}

#[inline(always)]
fn scale(y: &mut [f32], factor: f32) {
    for y in y {
        *y *= factor;
    }
}

/// `y = exp(y) / Σ exp(y)`. The exponentials of all rows are computed in one loop, so that they vectorise even for narrow rows.
#[inline(always)]
fn probabilities(n_cols: usize, y: &mut [f32]) {
    for y in &mut *y {
        *y = exp(*y);
    }
    for y in y.chunks_exact_mut(n_cols) {
        let total = sum(y, inlined!(|y| y));
        scale(y, 1.0 / total);
    }
}

/// `y -= log Σ exp(y)`.
#[inline(always)]
fn logarithms(n_cols: usize, y: &mut [f32]) {
    for y in y.chunks_exact_mut(n_cols) {
        let log = sum(y, exp).ln();
        for y in y {
            *y -= log;
        }
    }
}

pub(crate) fn grad(forward: &Softmax, grad_y: &[f32], y: &[f32], grad_x: &mut [f32]) {
    let n_cols = forward.n_cols;
    each_row_block(
        [n_cols; 2],
        grad_x,
        inlined!(|first, grad_x| {
            let block = first * n_cols..first * n_cols + grad_x.len();
            let rows = grad_y[block.clone()].chunks_exact(n_cols).zip(y[block].chunks_exact(n_cols));
            for (grad_x, (grad_y, y)) in grad_x.chunks_exact_mut(n_cols).zip(rows) {
                match forward.form {
                    SoftmaxForm::Probability => probability_grad(grad_y, y, grad_x),
                    SoftmaxForm::Log => logarithm_grad(grad_y, y, grad_x),
                }
            }
        }),
    );
}

#[inline(always)]
fn probability_grad(grad_y: &[f32], y: &[f32], grad_x: &mut [f32]) {
    let dot = sum_of_two(grad_y, y, inlined!(|grad_y, y| grad_y * y));
    for ((grad_x, grad_y), y) in grad_x.iter_mut().zip(grad_y).zip(y) {
        *grad_x = y * (grad_y - dot);
    }
}

#[inline(always)]
fn logarithm_grad(grad_y: &[f32], y: &[f32], grad_x: &mut [f32]) {
    let total = sum(grad_y, inlined!(|grad_y| grad_y));
    for ((grad_x, grad_y), &y) in grad_x.iter_mut().zip(grad_y).zip(y) {
        *grad_x = grad_y - exp(y) * total;
    }
}
