//! Products over windows of few channels, without patches: values are read in place from padded lines of the source, and sums
//! stay in registers until they are complete.

mod channels;
mod forward;

use pulp::{Arch, Simd, WithSimd};

use self::channels::Whole;
use crate::vectorised::inlined;

/// Lines of the source with their padding, and the positions of the windows of some rows of result pixels in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines<'a> {
    pub(super) values: &'a [f32],
    /// Values of a line, which is also the distance from one row of taps to the next.
    pub(super) len: usize,
    /// For each row of result pixels, the start of its first window.
    pub(super) starts: &'a [usize],
    /// Result pixels of a row, and the distance in values from one window to the next.
    pub(super) n_pixels: usize,
    pub(super) step: usize,
    pub(super) n_tap_rows: usize,
    /// Values that a window covers in one line.
    pub(super) tap_row_len: usize,
}

/// The maximum number of result channels whose sums are kept in registers.
pub(super) fn max_channels() -> usize {
    struct Lanes;

    impl WithSimd for Lanes {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            // With four vectors of sums per pixel, 16 registers are too few for the operands of enough pixels.
            S::F32_LANES * if S::REGISTER_COUNT >= 32 { 4 } else { 3 }
        }
    }

    Arch::new().dispatch(Lanes)
}

impl Lines<'_> {
    /// `y[pixel, o] = Σ_k window[pixel, k] weights[k, o]` for `n` channels `o`, at most [`max_channels`] of them.
    pub(super) fn times(&self, weights: &[f32], n: usize, y: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if n == channels::N_FULL_AND_HALF
            && let Some(v4) = pulp::x86::V4::try_new()
        {
            let (weights, y) = (weights.as_chunks().0, y.as_chunks_mut().0);
            return Simd::vectorize(v4, ForwardOf24 { v4, lines: *self, weights, y });
        }
        dispatch(n, Forward { lines: *self, weights, n, y });
    }

    /// `sums[k, o] += Σ_pixel window[pixel, k] grad_y[pixel, o]` for `n` channels `o`, at most [`max_channels`] of them.
    pub(super) fn add_products(&self, grad_y: &[f32], n: usize, sums: &mut [f32]) {
        dispatch(n, Backward { lines: *self, grad_y, n, sums });
    }
}

/// Runs `work` on `n` channels with the widest vectors, or with vectors of 32 bytes where those of 64 would be at least half
/// empty: as fast on processors that split 64 bytes or have one unit for them, and without padding.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "other processors have vectors of one width"))]
fn dispatch(n: usize, work: impl WithSimd<Output = ()>) {
    #[cfg(target_arch = "x86_64")]
    if n <= pulp::x86::V3::F32_LANES
        && let Some(v3) = pulp::x86::V3::try_new()
    {
        return Simd::vectorize(v3, work);
    }
    Arch::new().dispatch(work);
}

/// Evaluates `$call` for the number of vectors that `n` channels need, and for as many rows of these sums as fit in registers
/// with their operands; with one vector, that is `$most` rows, if there are 32 registers.
macro_rules! with_tile {
    ($simd:ty, $n:expr, $most:literal, |$rows:ident, $n_vectors:ident| $call:expr) => {{
        macro_rules! of {
            ($many:literal, $few:literal, $vectors:literal) => {{
                const $n_vectors: usize = $vectors;
                if <$simd>::REGISTER_COUNT >= 32 {
                    const $rows: usize = $many;
                    $call
                } else {
                    const $rows: usize = $few;
                    $call
                }
            }};
        }
        match $n.div_ceil(<$simd>::F32_LANES) {
            1 => of!($most, 12, 1),
            2 => of!(12, 6, 2),
            3 => of!(8, 4, 3),
            4 => of!(6, 3, 4),
            n => unreachable!("{n} vectors of channels do not fit the registers"),
        }
    }};
}

/// Rows of `n` values, padded with zeros to whole vectors: in place, or in `room`.
#[inline(always)]
fn in_vectors<'a, S: Simd>(_: S, rows: &'a [f32], n: usize, room: &'a mut Vec<f32>) -> &'a [f32] {
    if n.is_multiple_of(S::F32_LANES) {
        return rows;
    }
    let row_len = n.next_multiple_of(S::F32_LANES);
    room.resize(rows.len() / n * row_len, 0.0);
    for (padded, row) in room.chunks_exact_mut(row_len).zip(rows.chunks_exact(n)) {
        padded[..n].copy_from_slice(row);
    }
    room
}

/// Calls `f` to write rows of `n` sums, padded to whole vectors: in place, or into memory from which `keep` takes each row.
#[inline(always)]
fn by_vectors<S: Simd>(_: S, sums: &mut [f32], n: usize, f: impl FnOnce(&mut [f32]), keep: impl Fn(&mut [f32], &[f32])) {
    if n.is_multiple_of(S::F32_LANES) {
        return f(sums);
    }
    let row_len = n.next_multiple_of(S::F32_LANES);
    let mut room = vec![0.0; sums.len() / n * row_len];
    f(&mut room);
    sums.chunks_exact_mut(n).zip(room.chunks_exact(row_len)).for_each(|(sums, padded)| keep(sums, &padded[..n]));
}

struct Forward<'a, 'b> {
    lines: Lines<'a>,
    weights: &'a [f32],
    n: usize,
    y: &'b mut [f32],
}

impl WithSimd for Forward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lines, weights, n, y } = self;
        let mut room = Vec::new();
        let weights = in_vectors(simd, weights, n, &mut room);
        with_tile!(S, n, 12, |ROWS, N_VECTORS| by_vectors(
            simd,
            y,
            n,
            inlined!(|y| {
                let channels = Whole::<S, N_VECTORS>(simd);
                let (weights, y) = (S::as_simd_f32s(weights).0.as_chunks().0, S::as_mut_simd_f32s(y).0.as_chunks_mut().0);
                // As many pixels as there are registers for.
                let is_done = match (N_VECTORS, S::REGISTER_COUNT) {
                    (1, 32..) => {
                        lines.side_by_side::<_, 18>(channels, weights, y) || lines.side_by_side::<_, 10>(channels, weights, y)
                    }
                    (1, _) | (2, 32..) => lines.side_by_side::<_, 10>(channels, weights, y),
                    _ => false,
                };
                if !is_done {
                    lines.in_tiles::<_, ROWS>(channels, weights, y);
                }
            }),
            |y, sums| y.copy_from_slice(sums)
        ));
    }
}

/// [`Forward`] for [`FullAndHalf`](channels::FullAndHalf).
#[cfg(target_arch = "x86_64")]
struct ForwardOf24<'a, 'b> {
    v4: pulp::x86::V4,
    lines: Lines<'a>,
    weights: &'a [[f32; channels::N_FULL_AND_HALF]],
    y: &'b mut [[f32; channels::N_FULL_AND_HALF]],
}

#[cfg(target_arch = "x86_64")]
impl WithSimd for ForwardOf24<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { v4, lines, weights, y } = self;
        let channels = channels::FullAndHalf(v4);
        if !lines.side_by_side::<_, 10>(channels, weights, y) {
            lines.in_tiles::<_, 12>(channels, weights, y);
        }
    }
}

struct Backward<'a, 'b> {
    lines: Lines<'a>,
    grad_y: &'a [f32],
    n: usize,
    sums: &'b mut [f32],
}

impl WithSimd for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lines, grad_y, n, sums } = self;
        let mut room = Vec::new();
        let grad_y = in_vectors(simd, grad_y, n, &mut room);
        let k = lines.tap_row_len;
        with_tile!(S, n, 24, |ROWS, N_VECTORS| by_vectors(
            simd,
            sums,
            n,
            inlined!(|sums| {
                let n = N_VECTORS * S::F32_LANES;
                for (tap_row, sums) in sums.chunks_exact_mut(k * n).take(lines.n_tap_rows).enumerate() {
                    let (tiles, rest) = sums.split_at_mut((k - k % ROWS) * n);
                    for (i, sums) in tiles.chunks_exact_mut(ROWS * n).enumerate() {
                        simd.vectorize(Values::<ROWS, N_VECTORS> { lines, grad_y, at: [tap_row, i * ROWS], sums });
                    }
                    let (threes, ones) = rest.split_at_mut(rest.len() - rest.len() % (3 * n));
                    for (i, sums) in threes.chunks_exact_mut(3 * n).enumerate() {
                        simd.vectorize(Values::<3, N_VECTORS> { lines, grad_y, at: [tap_row, k - k % ROWS + 3 * i], sums });
                    }
                    let n_ones = ones.len() / n;
                    for (i, sums) in ones.chunks_exact_mut(n).enumerate() {
                        simd.vectorize(Values::<1, N_VECTORS> { lines, grad_y, at: [tap_row, k - n_ones + i], sums });
                    }
                }
            }),
            |sums, added| sums.iter_mut().zip(added).for_each(|(sum, added)| *sum += added)
        ));
    }
}

/// The sums for `K` values of windows: their row of taps, and their position in it.
struct Values<'a, 'b, const K: usize, const N_VECTORS: usize> {
    lines: Lines<'a>,
    grad_y: &'a [f32],
    at: [usize; 2],
    sums: &'b mut [f32],
}

impl<const K: usize, const N_VECTORS: usize> WithSimd for Values<'_, '_, K, N_VECTORS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { lines, grad_y, at: [tap_row, at], sums } = self;
        let (grad_y, _) = S::as_simd_f32s(grad_y).0.as_chunks::<N_VECTORS>();
        let (sums, _) = S::as_mut_simd_f32s(sums).0.as_chunks_mut::<N_VECTORS>();
        let kept = sums.first_chunk_mut::<K>().expect("a tile is of K sums");
        let mut sums = *kept;
        for (&start, grad_y) in lines.starts.iter().zip(grad_y.chunks_exact(lines.n_pixels)) {
            let x = &lines.values[start + tap_row * lines.len + at..];
            for (i, grad_y) in grad_y.iter().enumerate() {
                let Some(x) = x.get(i * lines.step..).and_then(|x| x.first_chunk::<K>()) else { break };
                for k in 0..K {
                    let x = simd.splat_f32s(x[k]);
                    for v in 0..N_VECTORS {
                        sums[k][v] = simd.mul_add_f32s(x, grad_y[v], sums[k][v]);
                    }
                }
            }
        }
        *kept = sums;
    }
}
