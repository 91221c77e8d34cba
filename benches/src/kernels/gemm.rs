//! The `gemm` crate, called as its public interface does.
#![expect(unsafe_code, reason = "`gemm` takes raw pointers")]

use brisk_program::kernels::Matmul;
use gemm_common::Parallelism;

/// Only the product, without the epilogue, on all threads of the current pool. Results are row-major and `gemm` prefers
/// column-major, so it computes `yᵀ = bᵀ aᵀ`.
pub(super) fn gemm(matmul: &Matmul, a: &[f32], b: &[f32], y: &mut [f32]) {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    assert!(a.len() == m * k && b.len() == k * n && y.len() == m * n, "operands of {matmul:?}");
    let (a_row, a_col) = if transpose.a() { (1, m) } else { (k, 1) };
    let (b_row, b_col) = if transpose.b() { (1, k) } else { (n, 1) };
    // SAFETY: the slices have the asserted numbers of elements at these strides; `y` is borrowed for writing.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            n,
            m,
            k,
            y.as_mut_ptr(),
            n as isize,
            1,
            false,
            b.as_ptr(),
            b_row as isize,
            b_col as isize,
            a.as_ptr(),
            a_row as isize,
            a_col as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::Rayon(0),
        );
    }
}
