//! Transposed copies of matrices.

use crate::cpu::blocks::{Threads, each_chunk};
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// Rows and columns that are read together: whole cache lines, of as many rows as there are elements in a line.
const BLOCK: usize = 16;
/// Rows and columns that are transposed in registers.
const SQUARE: usize = 8;
/// Elements below which other threads do not pay.
const SERIAL_LEN: usize = 64 * 1024;

type Square = [[f32; SQUARE]; SQUARE];

/// `transposed[col, row] = x[row, col]`, in f32.
pub(crate) fn transpose_into<T: Element>(x: &[T], n_rows: usize, n_cols: usize, transposed: &mut [f32]) {
    each_chunk(Threads::for_work(x.len(), SERIAL_LEN), BLOCK * n_rows, transposed, |i, out| {
        Band { x, n_rows, stride: n_cols, first_col: i * BLOCK, out, width: n_rows }.run();
    });
}

/// What is transposed, a word each.
pub(crate) trait Word: Copy {
    /// The value, or its bits.
    fn word(self) -> f32;
}

impl<T: Element> Word for T {
    #[inline(always)]
    fn word(self) -> f32 {
        self.widen()
    }
}

/// Two neighbours of 16 bits, which are moved together.
impl Word for [u16; 2] {
    #[inline(always)]
    fn word(self) -> f32 {
        let [low, high] = self;
        f32::from_bits(u32::from(low) | u32::from(high) << 16)
    }
}

/// `y[col, row] = x[row, col]` for the first `n_rows` columns of `y: [n, width]`, on this thread. Rows of `x` are `stride` apart.
/// The last row of `y` may end after those columns.
pub(crate) fn transpose_rows<T: Word>(x: &[T], stride: usize, n_rows: usize, width: usize, y: &mut [f32]) {
    for (i, out) in y.chunks_mut(BLOCK * width).enumerate() {
        Band { x, n_rows, stride, first_col: i * BLOCK, out, width }.run();
    }
}

/// Columns of `x`, which are rows of the result.
struct Band<'a, T> {
    x: &'a [T],
    n_rows: usize,
    /// From one row of `x` to the next.
    stride: usize,
    first_col: usize,
    /// Up to [`BLOCK`] rows of `width` elements, the first `n_rows` of which are written.
    out: &'a mut [f32],
    width: usize,
}

impl<T: Word> Band<'_, T> {
    fn run(mut self) {
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = pulp::x86::V3::try_new() {
            return pulp::Simd::vectorize(v3, avx2::Band(v3, self));
        }
        vectorised(inlined!(|| {
            self.run_by(inlined!(|rows| std::array::from_fn(|col| std::array::from_fn(|row| rows[row][col]))));
        }));
    }

    #[inline(always)]
    fn run_by(&mut self, transposed: impl Fn(Square) -> Square) {
        let Self { x, n_rows, stride, first_col, ref mut out, width } = *self;
        let n_cols = out.len().div_ceil(width);
        for row in (0..n_rows).step_by(BLOCK) {
            let height = BLOCK.min(n_rows - row);
            if [height, n_cols] != [BLOCK, BLOCK] {
                for (col, line) in out.chunks_mut(width).enumerate() {
                    for (r, y) in line[row..row + height].iter_mut().enumerate() {
                        *y = x[(row + r) * stride + first_col + col].word();
                    }
                }
                continue;
            }
            for (top, left) in [(0, 0), (SQUARE, 0), (0, SQUARE), (SQUARE, SQUARE)] {
                let square = std::array::from_fn(inlined!(|r| {
                    let at = (row + top + r) * stride + first_col + left;
                    let line: &[T; SQUARE] = x[at..at + SQUARE].try_into().expect("a slice of this length");
                    line.map(T::word)
                }));
                for (col, line) in transposed(square).into_iter().enumerate() {
                    let at = (left + col) * width + row + top;
                    out[at..at + SQUARE].copy_from_slice(&line);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::__m256;

    use pulp::x86::V3;
    use pulp::{Simd, WithSimd};

    use super::{SQUARE, Square, Word};
    use crate::vectorised::inlined;

    pub(super) struct Band<'a, T>(pub(super) V3, pub(super) super::Band<'a, T>);

    impl<T: Word> WithSimd for Band<'_, T> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(v3, mut band) = self;
            band.run_by(inlined!(|rows| transposed(v3, rows)));
        }
    }

    /// In 24 shuffles: pairs of elements, of pairs, and of halves are exchanged between rows.
    #[inline(always)]
    fn transposed(v3: V3, rows: Square) -> Square {
        let avx = v3.avx;
        let r: [__m256; SQUARE] = rows.map(pulp::cast);
        let low = |i: usize, j: usize| avx._mm256_unpacklo_ps(r[i], r[j]);
        let high = |i: usize, j: usize| avx._mm256_unpackhi_ps(r[i], r[j]);
        let t = [low(0, 1), low(2, 3), low(4, 5), low(6, 7), high(0, 1), high(2, 3), high(4, 5), high(6, 7)];
        let low = |i: usize| avx._mm256_shuffle_ps::<0x44>(t[i], t[i + 1]);
        let high = |i: usize| avx._mm256_shuffle_ps::<0xee>(t[i], t[i + 1]);
        let u = [low(0), high(0), low(4), high(4), low(2), high(2), low(6), high(6)];
        let low = |i: usize| avx._mm256_permute2f128_ps::<0x20>(u[i], u[i + 4]);
        let high = |i: usize| avx._mm256_permute2f128_ps::<0x31>(u[i], u[i + 4]);
        [low(0), low(1), low(2), low(3), high(0), high(1), high(2), high(3)].map(pulp::cast)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(n_rows: usize, n_cols: usize) {
        let x: Vec<f32> = (0..n_rows * n_cols).map(|i| i as f32).collect();
        let mut transposed = vec![f32::NAN; x.len()];
        transpose_into(&x, n_rows, n_cols, &mut transposed);
        for (i, y) in transposed.iter().enumerate() {
            let (col, row) = (i / n_rows, i % n_rows);
            assert!(*y == (row * n_cols + col) as f32, "[{n_rows}, {n_cols}] at [{row}, {col}]: {y}");
        }
    }

    #[test]
    fn every_element_is_at_its_place() {
        for (n_rows, n_cols) in [(1, 1), (1, 40), (40, 1), (7, 9), (16, 16), (15, 17), (33, 31), (48, 64), (300, 257)] {
            check(n_rows, n_cols);
        }
    }
}
