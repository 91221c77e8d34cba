//! How fast the processor's cores multiply and add numbers that are already in registers: the limit of matrix products.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "instructions that only some processors have"))]

use anyhow::Result;
use rayon::ThreadPool;

use super::turns::{Turns, seconds};

/// Instructions that multiply and add.
#[derive(Clone, Copy)]
pub(super) struct Peak {
    pub(super) name: &'static str,
    /// Runs a loop this many times and returns how many operations that were.
    act: fn(usize) -> u64,
}

impl Peak {
    /// Those of this processor for f32; `None` where the loop is not written.
    pub(super) fn of_f32() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return x86::of_f32();
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Its matrix instructions for bf16; `None` where it has none.
    pub(super) fn of_bf16() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return x86::of_bf16();
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// How often the loop runs in a turn on all threads of the pool.
    pub(super) fn n_runs(self, pool: &ThreadPool, turns: &Turns) -> Result<usize> {
        // For some milliseconds: waking the threads must not count.
        const FEW: usize = 1_000_000;
        Ok(FEW * turns.n_runs(self.seconds(pool, FEW)?.1))
    }

    /// Operations per second of all threads of the pool together.
    pub(super) fn flops_per_s(self, pool: &ThreadPool, n_runs: usize) -> Result<f64> {
        let (flops, seconds) = self.seconds(pool, n_runs)?;
        Ok(flops as f64 / seconds)
    }

    fn seconds(self, pool: &ThreadPool, n_runs: usize) -> Result<(u64, f64)> {
        let mut flops = 0;
        let seconds = seconds(1, || {
            flops = pool.broadcast(|_| (self.act)(n_runs)).into_iter().sum();
            Ok(())
        })?;
        Ok((flops, seconds))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{
        __m512bh, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_set1_epi16, _mm512_set1_ps,
        _mm512_setzero_ps,
    };
    use std::hint::black_box;

    use brisk_program::kernels::Bf16Instructions;

    use super::Peak;

    /// Sums in registers, so many that each is ready when its turn comes again.
    const N_SUMS: usize = 12;

    pub(super) fn of_f32() -> Option<Peak> {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions.
            return Some(Peak { name: "AVX-512", act: |n| unsafe { multiply_512(n) } });
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the instructions.
            return Some(Peak { name: "FMA", act: |n| unsafe { multiply_256(n) } });
        }
        None
    }

    pub(super) fn of_bf16() -> Option<Peak> {
        match Bf16Instructions::detect()? {
            // SAFETY: the processor has the instructions, and the system allows them to this process.
            Bf16Instructions::Amx => Some(Peak { name: "AMX", act: |n| unsafe { multiply_tiles(n) } }),
            // SAFETY: the processor has the instructions.
            Bf16Instructions::Avx512 => Some(Peak { name: "AVX512_BF16", act: |n| unsafe { multiply_pairs(n) } }),
            _ => None,
        }
    }

    /// # Safety
    /// The processor must have AVX-512.
    #[target_feature(enable = "avx512f")]
    unsafe fn multiply_512(n: usize) -> u64 {
        let (x, y) = black_box((_mm512_set1_ps(0.5), _mm512_set1_ps(0.5)));
        let mut sums = [_mm512_setzero_ps(); N_SUMS];
        for _ in 0..n {
            sums.iter_mut().for_each(|sum| *sum = _mm512_fmadd_ps(x, y, *sum));
        }
        black_box(sums);
        (n * N_SUMS * 16 * 2) as u64
    }

    /// # Safety
    /// The processor must have AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn multiply_256(n: usize) -> u64 {
        let (x, y) = black_box((_mm256_set1_ps(0.5), _mm256_set1_ps(0.5)));
        let mut sums = [_mm256_set1_ps(0.0); N_SUMS];
        for _ in 0..n {
            sums.iter_mut().for_each(|sum| *sum = _mm256_fmadd_ps(x, y, *sum));
        }
        black_box(sums);
        (n * N_SUMS * 8 * 2) as u64
    }

    /// # Safety
    /// The processor must have AVX512_BF16.
    #[target_feature(enable = "avx512f,avx512bf16,avx512bw")]
    unsafe fn multiply_pairs(n: usize) -> u64 {
        // SAFETY: vectors of the same size, of any bits.
        let x: __m512bh = unsafe { std::mem::transmute(black_box(_mm512_set1_epi16(0x3f00))) };
        let mut sums = [_mm512_setzero_ps(); N_SUMS];
        for _ in 0..n {
            sums.iter_mut().for_each(|sum| *sum = _mm512_dpbf16_ps(*sum, x, x));
        }
        black_box(sums);
        (n * N_SUMS * 32 * 2) as u64
    }

    /// The operand of `ldtilecfg` for eight tiles of 16 rows of 64 bytes: the palette, 15 bytes of zeros, the bytes of a row of
    /// each tile, the rows of each.
    #[repr(C, align(64))]
    struct TileShape([u8; 64]);

    /// # Safety
    /// The processor must have AMX, and the system must allow it.
    unsafe fn multiply_tiles(n: usize) -> u64 {
        const N_TILES: usize = 8;
        let mut shape = TileShape([0; 64]);
        shape.0[0] = 1;
        (0..N_TILES).for_each(|tile| (shape.0[16 + 2 * tile], shape.0[48 + tile]) = (64, 16));
        // Four sums and two tiles of each side, as in a block of a product.
        // SAFETY: the shape is valid; no tile register is used by compiled code, and they are released at the end.
        unsafe {
            asm!(
                "ldtilecfg [{shape}]",
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "tilezero tmm4", "tilezero tmm5", "tilezero tmm6", "tilezero tmm7",
                "2:",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "dec {n}",
                "jnz 2b",
                "tilerelease",
                shape = in(reg) &raw const shape,
                n = inout(reg) n.max(1) => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, readonly),
            );
        }
        (n.max(1) * 4 * 2 * 16 * 16 * 32) as u64
    }
}
