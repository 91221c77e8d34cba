use rayon::prelude::*;

use super::epilogue_cpu::Finish;
use super::matmul_cpu;
use super::matmul_stored_cpu;
use super::matmul_stored_cpu::Reads;
use crate::core::half::{Element, Floats};
use crate::{BatchedMatmul, OnTeam};

/// Multiply-adds below which using other threads for the batch does not pay.
const SERIAL_WORK: usize = 64 * 1024;

/// One task for each product; a large product is divided further, like any single product.
pub(crate) fn run(kernel: &BatchedMatmul, a: &[f32], b: &[f32], y: &mut [f32]) {
    let BatchedMatmul { n_batch, m, n, k, .. } = *kernel;
    let one = |((a, b), y): ((&[f32], &[f32]), &mut [f32])| {
        let matmul = kernel.one();
        matmul_cpu::run(&matmul, [a, b], None, (&Finish::none(), &[]), y);
    };
    if n_batch * m * n * k < SERIAL_WORK {
        a.chunks(m * k).zip(b.chunks(k * n)).zip(y.chunks_mut(m * n)).for_each(one);
    } else {
        a.par_chunks(m * k).zip(b.par_chunks(k * n)).zip(y.par_chunks_mut(m * n)).for_each_on_team(one);
    }
}

/// The same for arguments stored in 16 bits.
pub(crate) fn run_stored<Y: Element>(kernel: &BatchedMatmul, a: Floats<'_>, b: Floats<'_>, y: &mut [Y]) {
    let BatchedMatmul { n_batch, m, n, k, .. } = *kernel;
    let one = |(i, y): (usize, &mut [Y])| {
        let a = a.slice(i * m * k..(i + 1) * m * k);
        let b = b.slice(i * k * n..(i + 1) * k * n);
        let reads = Reads { a, b, fused: Floats::F32(&[]) };
        let matmul = kernel.one();
        matmul_stored_cpu::run(&matmul, reads, Finish::none(), y);
    };
    if n_batch * m * n * k < SERIAL_WORK {
        y.chunks_mut(m * n).enumerate().for_each(one);
    } else {
        y.par_chunks_mut(m * n).enumerate().for_each_on_team(one);
    }
}
