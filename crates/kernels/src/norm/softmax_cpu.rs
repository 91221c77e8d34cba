use crate::core::float::exp;
use crate::core::rows_cpu::{each_row_block, max, sum, sum_of_two};
use crate::{Softmax, SoftmaxForm};

pub(crate) fn run(kernel: &Softmax, x: &[f32], y: &mut [f32]) {
    let n_cols = kernel.n_cols;
    each_row_block(
        n_cols,
        y,
        #[inline(always)]
        |first, y| {
            let x = &x[first * n_cols..][..y.len()];
            for (y, x) in y.chunks_exact_mut(n_cols).zip(x.chunks_exact(n_cols)) {
                let m = max(x);
                for (y, x) in y.iter_mut().zip(x) {
                    *y = x - m;
                }
            }
            match kernel.form {
                SoftmaxForm::Probability => probabilities(n_cols, y),
                SoftmaxForm::Log => logarithms(n_cols, y),
            }
        },
    );
}

/// `y = exp(y) / Σ exp(y)`. The exponentials of all rows are taken in one go, so that they vectorise however narrow the rows are.
#[inline(always)]
fn probabilities(n_cols: usize, y: &mut [f32]) {
    for y in &mut *y {
        *y = exp(*y);
    }
    for y in y.chunks_exact_mut(n_cols) {
        let inverse = 1.0
            / sum(
                y,
                #[inline(always)]
                |y| y,
            );
        for y in y {
            *y *= inverse;
        }
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
        n_cols,
        grad_x,
        #[inline(always)]
        |first, grad_x| {
            let block = first * n_cols..first * n_cols + grad_x.len();
            let rows = grad_y[block.clone()].chunks_exact(n_cols).zip(y[block].chunks_exact(n_cols));
            for (grad_x, (grad_y, y)) in grad_x.chunks_exact_mut(n_cols).zip(rows) {
                match forward.form {
                    SoftmaxForm::Probability => probability_grad(grad_y, y, grad_x),
                    SoftmaxForm::Log => logarithm_grad(grad_y, y, grad_x),
                }
            }
        },
    );
}

#[inline(always)]
fn probability_grad(grad_y: &[f32], y: &[f32], grad_x: &mut [f32]) {
    let dot = sum_of_two(
        grad_y,
        y,
        #[inline(always)]
        |grad_y, y| grad_y * y,
    );
    for ((grad_x, grad_y), y) in grad_x.iter_mut().zip(grad_y).zip(y) {
        *grad_x = y * (grad_y - dot);
    }
}

#[inline(always)]
fn logarithm_grad(grad_y: &[f32], y: &[f32], grad_x: &mut [f32]) {
    let total = sum(
        grad_y,
        #[inline(always)]
        |grad_y| grad_y,
    );
    for ((grad_x, grad_y), &y) in grad_x.iter_mut().zip(grad_y).zip(y) {
        *grad_x = grad_y - exp(y) * total;
    }
}
