use rayon::prelude::*;

use super::matmul;
use crate::{BatchedMatmul, Transpose};

/// Multiply-adds below which the batch is not worth handing to other threads.
const SERIAL_WORK: usize = 64 * 1024;

/// A product a task; one that is large enough is cut further, as any product is. Room for a turned matrix is taken a task at a time.
pub(crate) fn run(kernel: &BatchedMatmul, a: &[f32], b: &[f32], y: &mut [f32]) {
    let BatchedMatmul { n_batch, m, n, k, transpose } = *kernel;
    let one = |((a, b), y): ((&[f32], &[f32]), &mut [f32])| match transpose {
        Transpose::None | Transpose::A => matmul::run(&kernel.one(), a, b, &[], y, None),
        Transpose::B | Transpose::Both => {
            let mut turned = vec![0.0; k * n];
            matmul::run(&kernel.one(), a, b, &[], y, Some(&mut turned));
        }
    };
    if n_batch * m * n * k < SERIAL_WORK {
        a.chunks(m * k).zip(b.chunks(k * n)).zip(y.chunks_mut(m * n)).for_each(one);
    } else {
        a.par_chunks(m * k).zip(b.par_chunks(k * n)).zip(y.par_chunks_mut(m * n)).for_each(one);
    }
}
