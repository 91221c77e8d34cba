use super::epilogue_cpu::Finish;
use super::{matmul_cpu, matmul_stored_cpu};
use crate::cpu::blocks::{Threads, each_chunk};
use crate::product::matmul::{Matmul, Reads};
use crate::storage::element::Element;

/// All products of a batch: one task for each, which is divided further if it is large, as a single product is.
pub(crate) fn run(kernel: &Matmul, [a, b]: [&[f32]; 2], packed: Option<&[f32]>, fused: (&Finish, &[f32]), y: &mut [f32]) {
    let Matmul { m, n, k, .. } = *kernel;
    each_pair(kernel, y, |i, y| {
        let (a, b) = (&a[i * m * k..(i + 1) * m * k], &b[i * k * n..(i + 1) * k * n]);
        matmul_cpu::run(kernel, [a, b], packed, fused, i * m, y);
    });
}

/// The same for arguments stored in 16 bits.
pub(crate) fn run_stored<Y: Element>(kernel: &Matmul, reads: Reads<'_>, finish: &Finish, y: &mut [Y]) {
    let Matmul { m, n, k, .. } = *kernel;
    each_pair(kernel, y, |i, y| {
        let (a, b) = (reads.a.slice(i * m * k..(i + 1) * m * k), reads.b.slice(i * k * n..(i + 1) * k * n));
        matmul_stored_cpu::run(kernel, Reads { a, b, ..reads }, finish, i * m, y);
    });
}

fn each_pair<Y: Send>(kernel: &Matmul, y: &mut [Y], one: impl Fn(usize, &mut [Y]) + Sync) {
    let Matmul { n_batch, m, n, k, .. } = *kernel;
    let threads = if n_batch == 1 { Threads::One } else { Threads::for_work(n_batch * m * n * k, matmul_cpu::SERIAL_WORK) };
    each_chunk(threads, m * n, y, one);
}
