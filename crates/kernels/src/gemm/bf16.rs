//! Blocks of products of bf16 by the processor's own matrix instructions, with sums in f32.
//!
//! | instructions | processors | one instruction |
//! | --- | --- | --- |
//! | AMX: `tdpbf16ps` | Xeons since Sapphire Rapids | 16 by 16 sums of 32 products each |
//! | AVX512_BF16: `vdpbf16ps` | Zen 4, Xeons since Cooper Lake | 16 sums of 2 products each |
//!
//! Xeons since Sapphire Rapids start an instruction of AVX512_BF16 every other cycle, and two of f32's in each: half as many
//! products. Where AMX is missing, as in many virtual machines, these multiply in f32 instead.
//!
//! Both take operands in pairs along K, round each sum to nearest even, and treat subnormal numbers as 0, in operands and in
//! results. AMX is reached by inline assembly, since its intrinsics are not stable, and Linux has to be asked for its registers.
#![expect(unsafe_code, reason = "matrix instructions read and write by address")]
#![cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "other processors have none of these instructions"))]

use std::fmt;
use std::sync::OnceLock;

use bytemuck::{Pod, Zeroable};
use half::bf16;

/// Elements of a cache line, and of a vector register of the widest kind; rows and columns of a tile.
pub(crate) const LANES: usize = 16;
/// Columns of a panel: two vectors, or two tiles. Products of no more than half of them use one.
pub(crate) const WIDTH: usize = 2 * LANES;
/// Rows of a block of tiles.
pub(crate) const HEIGHT: usize = 32;
/// K indices of a tile, by which operands are padded.
pub(crate) const STEP: usize = 32;
/// Lines of a tile of a panel.
pub(crate) const TILE_LINES: usize = STEP / 2;

/// A pair of K indices of all columns of a panel: the first in the lower half of a word, the second in the upper one.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct PairLine(pub(crate) [u32; WIDTH]);

/// [`STEP`] K indices of one row.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Step(pub(crate) [bf16; STEP]);

// SAFETY: arrays of numbers without padding: each is as long as a multiple of its alignment.
unsafe impl Zeroable for PairLine {}
// SAFETY: as above.
unsafe impl Pod for PairLine {}
// SAFETY: as above.
unsafe impl Zeroable for Step {}
// SAFETY: as above.
unsafe impl Pod for Step {}

/// Instructions of a processor that multiply bf16 and add in f32, by which the CPU computes products whose operands are both
/// stored in bf16: several times as fast as in f32. Processors without any convert the operands to f32.
///
/// Subnormal numbers count as 0 in these products, as operands and as results; each sum is rounded to nearest even.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bf16Instructions {
    /// AMX, of Intel's Xeons since Sapphire Rapids. Needs Linux, which has to be asked for the registers.
    Amx,
    /// AVX512_BF16, of AMD's processors since Zen 4 and Intel's since Cooper Lake. Intel's since Sapphire Rapids have it for
    /// compatibility: at half the speed of f32.
    Avx512,
}

impl fmt::Display for Bf16Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amx => "AMX",
            Self::Avx512 => "AVX512_BF16",
        })
    }
}

impl Bf16Instructions {
    /// The fastest that this machine has, and that its operating system allows; `None` if f32 is faster.
    pub fn detect() -> Option<Self> {
        static DETECTED: OnceLock<Option<Bf16Instructions>> = OnceLock::new();
        let pays = |instructions: &Self| instructions.is_available() && instructions.is_faster_than_f32();
        *DETECTED.get_or_init(|| [Self::Amx, Self::Avx512].into_iter().find(pays))
    }

    /// The rows that it multiplies to multiply `n` of them, at most [`HEIGHT`].
    pub(crate) const fn rows(self, n: usize) -> usize {
        match self {
            Self::Amx => n.next_multiple_of(LANES),
            Self::Avx512 => n,
        }
    }

    /// The K indices of which the rows that it reads must be a multiple.
    pub(crate) const fn depth(self) -> usize {
        match self {
            Self::Amx => STEP,
            Self::Avx512 => 2,
        }
    }
}

/// Rows of a left side. Their K indices are contiguous, or contiguous within each of several segments. Rows may overlap, except
/// for those that are packed: these are in bands of [`HEIGHT`] rows, with a segment for each tile. The lines of a tile are
/// adjacent for AMX; for AVX512_BF16, which reads pairs one by one, the pairs of all rows of a band are interleaved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines<'a> {
    /// From the first row of a band on.
    pub(crate) data: &'a [bf16],
    /// Rows of that band that are left out.
    pub(crate) first_row: usize,
    /// From one row of a band to the next.
    pub(crate) stride: usize,
    /// From one pair of K indices to the next: 2, unless rows are interleaved.
    pub(crate) pair_stride: usize,
    pub(crate) n_rows: usize,
    /// K indices of a segment that are multiplied.
    pub(crate) depth: usize,
    pub(crate) n_segments: usize,
    /// From one segment of a row to the next.
    pub(crate) segment_stride: usize,
    /// Rows of a band: any number for AVX512_BF16, a multiple of [`HEIGHT`] for AMX.
    pub(crate) band_rows: usize,
    /// From one band to the next.
    pub(crate) band_stride: usize,
}

impl<'a> Lines<'a> {
    /// Rows of a single segment.
    pub(crate) fn new(data: &'a [bf16], stride: usize, n_rows: usize, depth: usize) -> Self {
        let (band_rows, band_stride) = (HEIGHT, HEIGHT * stride);
        Self {
            data,
            first_row: 0,
            stride,
            pair_stride: 2,
            n_rows,
            depth,
            n_segments: 1,
            segment_stride: 0,
            band_rows,
            band_stride,
        }
    }

    /// The rows from `row` on, at most `n` of them.
    pub(crate) fn rows(self, row: usize, n: usize) -> Self {
        let at = self.first_row + row;
        let (band, first_row) = (at / self.band_rows, at % self.band_rows);
        Self { data: &self.data[band * self.band_stride..], first_row, n_rows: n.min(self.n_rows - row), ..self }
    }

    /// Where a row begins.
    pub(super) fn start(&self, row: usize) -> usize {
        let at = self.first_row + row;
        at / self.band_rows * self.band_stride + at % self.band_rows * self.stride
    }

    /// Where each of the first rows begins.
    #[inline(always)]
    fn starts<const N: usize>(&self) -> [usize; N] {
        let (mut row, mut start) = (self.first_row, self.first_row * self.stride);
        std::array::from_fn(|_| {
            let of_row = start;
            (row, start) = (row + 1, start + self.stride);
            if row == self.band_rows {
                (row, start) = (0, start - self.band_rows * self.stride + self.band_stride);
            }
            of_row
        })
    }

    /// K indices of all segments.
    pub(crate) fn len(self) -> usize {
        self.n_segments * self.depth
    }

    fn assert_in_bounds(&self) {
        // Then the last row ends last.
        assert!(self.band_stride >= (self.band_rows - 1) * self.stride, "bands of {} rows overlap", self.band_rows);
        let last_pair = (self.depth.max(2) / 2 - 1) * self.pair_stride;
        let end = (self.n_segments - 1) * self.segment_stride + self.start(self.n_rows - 1) + last_pair + 2;
        assert!(
            end <= self.data.len(),
            "{} segments of {} rows of {} at {} reach past {} elements",
            self.n_segments,
            self.n_rows,
            self.depth,
            self.stride,
            self.data.len()
        );
    }
}

/// Lines of a panel of a right side, of which those of a tile are adjacent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panel<'a> {
    pub(crate) lines: &'a [PairLine],
    /// From the first line of a tile to that of the next one.
    pub(crate) tile_stride: usize,
}

/// K indices that are adjacent on both sides of a product.
#[derive(Debug, Clone, Copy)]
struct Runs {
    n: usize,
    /// K indices of a run; fewer in the last one.
    depth: usize,
    /// From one run to the next: elements of the left side, lines of the right one.
    left: usize,
    right: usize,
}

impl Runs {
    fn of(a: &Lines<'_>, panel: &Panel<'_>) -> Self {
        if panel.tile_stride == TILE_LINES {
            return Self { n: a.n_segments, depth: a.depth, left: a.segment_stride, right: a.depth / 2 };
        }
        assert!(a.n_segments == 1 || a.depth == STEP, "segments of {} K indices and a panel whose tiles are apart", a.depth);
        let left = if a.n_segments == 1 { STEP } else { a.segment_stride };
        Self { n: a.len().div_ceil(STEP), depth: STEP, left, right: panel.tile_stride }
    }
}

/// Where a block of sums is: in a matrix whose rows are `stride` apart.
#[derive(Debug)]
pub(crate) struct Sums<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) stride: usize,
    /// Columns that are computed: [`WIDTH`] or [`LANES`].
    pub(crate) n_cols: usize,
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{
        __cpuid, __cpuid_count, __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_load_si512, _mm512_loadu_ps, _mm512_setzero_ps,
        _mm512_storeu_ps,
    };
    use std::sync::OnceLock;

    use half::bf16;

    use super::{Bf16Instructions, HEIGHT, LANES, Lines, PairLine, Panel, Runs, STEP, Sums, TILE_LINES, WIDTH};

    impl Bf16Instructions {
        /// Whether this machine, and its operating system, have it.
        pub(crate) fn is_available(self) -> bool {
            match self {
                Self::Amx => has_tiles(),
                Self::Avx512 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16"),
            }
        }

        /// Whether this machine, which has it, multiplies faster by it than in f32. Measured on an Emerald Rapids: 85 billion
        /// operations a second by AVX512_BF16, 175 in f32.
        pub(super) fn is_faster_than_f32(self) -> bool {
            let vendor = __cpuid(0);
            let is_intel = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"GenuineIntel";
            self == Self::Amx || !(is_intel && is_x86_feature_detected!("avx512fp16"))
        }

        /// `sums = a panel`, or `sums += a panel`, for up to [`HEIGHT`] rows of `a` and the first columns of `panel`. With
        /// [`Bf16Instructions::Amx`], there must be [`HEIGHT`] rows or half of them.
        ///
        /// # Panics
        /// If the depth of `a` is 0 or not a multiple of [`Bf16Instructions::depth`], `panel` has too few lines for it, or one of
        /// the operands is too short.
        #[inline]
        pub(crate) fn multiply(self, tiles: &TileRegisters, a: Lines<'_>, panel: Panel<'_>, sums: Sums<'_>, adds: bool) {
            a.assert_in_bounds();
            let end = (a.n_rows - 1) * sums.stride + sums.n_cols;
            assert!([LANES, WIDTH].contains(&sums.n_cols), "{} columns", sums.n_cols);
            assert!(end <= sums.data.len(), "sums of {} rows reach past {} elements", a.n_rows, sums.data.len());
            let last = (a.len() / 2).saturating_sub(1);
            assert!(
                a.depth.is_multiple_of(self.depth())
                    && a.depth > 0
                    && last / TILE_LINES * panel.tile_stride + last % TILE_LINES < panel.lines.len(),
                "{} segments of depth {} and {} lines, of which tiles are {} apart",
                a.n_segments,
                a.depth,
                panel.lines.len(),
                panel.tile_stride
            );
            let (runs, panel) = (Runs::of(&a, &panel), panel.lines);
            match self {
                Self::Amx => {
                    assert!([LANES, HEIGHT].contains(&a.n_rows) && tiles.are_configured, "{} rows of tiles", a.n_rows);
                    assert!(a.first_row + a.n_rows <= a.band_rows && a.pair_stride == 2, "rows of several bands, or interleaved");
                    // SAFETY: the operands are long enough for the runs, and the tiles are configured.
                    unsafe { multiply_tiles(a, panel, runs, sums, adds) }
                }
                Self::Avx512 => {
                    assert!(self.is_available(), "a machine without AVX512_BF16");
                    let Sums { data, stride, n_cols } = sums;
                    let by_rows = const { [by_rows::<1>(), by_rows::<2>()] }[n_cols / LANES - 1];
                    for row in (0..a.n_rows).step_by(MAX_ROWS) {
                        let (a, y) = (a.rows(row, MAX_ROWS), &mut data[row * stride..]);
                        // SAFETY: the machine has the instructions, and the operands are long enough for the rows and columns of
                        // the function.
                        unsafe { by_rows[a.n_rows - 1](a, (panel, runs), y, stride, adds) };
                    }
                }
            }
        }

        /// Prepares this thread for [`multiply`](Self::multiply).
        pub(crate) fn registers(self) -> TileRegisters {
            let are_configured = self == Self::Amx;
            if are_configured {
                assert!(self.is_available(), "a machine without AMX");
                let shape = TileShape::all();
                // SAFETY: the machine has AMX, and the shape is valid.
                unsafe { asm!("ldtilecfg [{}]", in(reg) &shape, options(nostack, readonly)) };
            }
            TileRegisters { are_configured, this_thread: std::marker::PhantomData }
        }
    }

    /// The tile registers of this thread in use. When this is dropped they are released, since the system would otherwise save
    /// them whenever it switches threads.
    #[derive(Debug)]
    pub(crate) struct TileRegisters {
        are_configured: bool,
        this_thread: std::marker::PhantomData<*const ()>,
    }

    impl Drop for TileRegisters {
        fn drop(&mut self) {
            if self.are_configured {
                // SAFETY: the machine has AMX, since the tiles are configured.
                unsafe { asm!("tilerelease", options(nostack, nomem)) };
            }
        }
    }

    /// The operand of `ldtilecfg`.
    #[repr(C, align(64))]
    struct TileShape {
        palette: u8,
        start_row: u8,
        reserved: [u8; 14],
        row_bytes: [u16; 16],
        n_rows: [u8; 16],
    }

    impl TileShape {
        /// Eight tiles of 16 rows of 64 bytes.
        fn all() -> Self {
            let of_eight = |tile: usize| tile < 8;
            Self {
                palette: 1,
                start_row: 0,
                reserved: [0; 14],
                row_bytes: std::array::from_fn(|tile| if of_eight(tile) { 64 } else { 0 }),
                n_rows: std::array::from_fn(|tile| if of_eight(tile) { 16 } else { 0 }),
            }
        }
    }

    /// Whether the processor has AMX for bf16 and the system lets this process use it.
    fn has_tiles() -> bool {
        static HAS_TILES: OnceLock<bool> = OnceLock::new();
        *HAS_TILES.get_or_init(|| {
            const AMX_BF16: u32 = 1 << 22;
            const AMX_TILE: u32 = 1 << 24;
            let has_leaf = __cpuid(0).eax >= 7;
            has_leaf && __cpuid_count(7, 0).edx & (AMX_BF16 | AMX_TILE) == AMX_BF16 | AMX_TILE && may_use_tiles()
        })
    }

    /// Asks Linux for the tile registers, for all threads of this process. It refuses where it does not support them.
    #[cfg(target_os = "linux")]
    fn may_use_tiles() -> bool {
        const SYS_ARCH_PRCTL: i64 = 158;
        const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
        const XFEATURE_XTILEDATA: i64 = 18;
        let result: i64;
        // SAFETY: this system call has no memory operands; it changes rcx, r11 and rax.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") SYS_ARCH_PRCTL => result,
                in("rdi") ARCH_REQ_XCOMP_PERM,
                in("rsi") XFEATURE_XTILEDATA,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        result == 0
    }

    #[cfg(not(target_os = "linux"))]
    fn may_use_tiles() -> bool {
        false
    }

    /// The products of one or two tiles of rows, and one or two of the panel's tiles.
    ///
    /// # Safety
    /// The operands must be as long as [`Bf16Instructions::multiply`] checks, and the tiles configured.
    #[inline]
    unsafe fn multiply_tiles(a: Lines<'_>, panel: &[PairLine], runs: Runs, sums: Sums<'_>, adds: bool) {
        let (a_stride, y_stride) = (a.stride * size_of::<u16>(), sums.stride * size_of::<f32>());
        let (above, y_above) = (a.data[a.start(0)..].as_ptr(), sums.data.as_mut_ptr());
        // Not read or written if there are 16 rows.
        let (below, y_below) = (above.wrapping_add(LANES * a.stride), y_above.wrapping_add(LANES * sums.stride));
        let (two_rows, two_cols) = (a.n_rows > LANES, sums.n_cols > LANES);

        // Moves one tile of sums.
        macro_rules! transfer {
            ($instruction:literal, $sums:ident) => {
                // SAFETY: the instruction reads or writes 16 rows of 64 bytes that are within the sums. No tile register is used
                // by compiled code.
                unsafe {
                    asm!(
                        $instruction,
                        at = in(reg) $sums, stride = in(reg) y_stride,
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        options(nostack),
                    );
                }
            };
        }
        // Moves those that are computed.
        macro_rules! transfer_all {
            ($left:literal $right:literal $left_below:literal $right_below:literal) => {
                transfer!($left, y_above);
                if two_cols {
                    transfer!($right, y_above);
                }
                if two_rows {
                    transfer!($left_below, y_below);
                }
                if two_rows && two_cols {
                    transfer!($right_below, y_below);
                }
            };
        }
        let next = if runs.depth == STEP { runs.right } else { TILE_LINES };
        // Fetches some lines of the panel that the next step reads, of one of its tiles or of both. Fetched between products,
        // they are in the first-level cache when they are read; products that waited for them took up to 1.4 times as long.
        macro_rules! fetch {
            (one $lines:literal) => {
                concat!(".irp line, ", $lines, "\nprefetcht0 [{panel} + {next} + 128*\\line]\n.endr")
            };
            (both $lines:literal) => {
                concat!(
                    ".irp line, ",
                    $lines,
                    "\nprefetcht0 [{panel} + {next} + 128*\\line]\nprefetcht0 [{panel} + {next} + 128*\\line + 64]\n.endr"
                )
            };
        }
        // Adds the products of all K indices, by the instructions for one step.
        macro_rules! add_products {
            ($($instruction:expr),+ $(,)?) => {
                // SAFETY: each instruction reads 16 rows of 64 bytes that are within the operands; fetching ahead may reach
                // beyond them, since it never fails. No tile register is used by compiled code.
                unsafe {
                    asm!(
                        "2:",
                        "mov {n}, {n_steps}",
                        "3:",
                        $($instruction,)+
                        "add {above}, 64",
                        "add {below}, 64",
                        "add {panel}, 2048",
                        "dec {n}",
                        "jnz 3b",
                        "add {above}, {skip}",
                        "add {below}, {skip}",
                        "add {panel}, {skipped_lines}",
                        "dec {n_runs}",
                        "jnz 2b",
                        above = inout(reg) above => _, below = inout(reg) below => _, panel = inout(reg) panel.as_ptr() => _,
                        n = out(reg) _, n_steps = in(reg) runs.depth / STEP, n_runs = inout(reg) runs.n => _,
                        skip = in(reg) runs.left.wrapping_sub(runs.depth).wrapping_mul(size_of::<u16>()),
                        skipped_lines = in(reg) (runs.right - runs.depth / 2) * size_of::<PairLine>(),
                        stride = in(reg) a_stride, width = in(reg) size_of::<PairLine>(),
                        next = in(reg) next * size_of::<PairLine>(),
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack, readonly),
                    );
                }
            };
        }

        if adds {
            transfer_all!(
                "tileloadd tmm0, [{at} + {stride}*1]" "tileloadd tmm1, [{at} + {stride}*1 + 64]"
                "tileloadd tmm2, [{at} + {stride}*1]" "tileloadd tmm3, [{at} + {stride}*1 + 64]"
            );
        } else {
            // SAFETY: no tile register is used by compiled code.
            unsafe {
                asm!(
                    "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    options(nostack, nomem),
                );
            }
        }
        match (two_rows, two_cols) {
            (true, true) => add_products!(
                "tileloadd tmm4, [{above} + {stride}*1]",
                "tileloadd tmm6, [{panel} + {width}*1]",
                fetch!(both "0, 1, 2, 3"),
                "tileloadd tmm7, [{panel} + {width}*1 + 64]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                fetch!(both "4, 5, 6, 7"),
                "tileloadd tmm5, [{below} + {stride}*1]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                fetch!(both "8, 9, 10, 11"),
                "tdpbf16ps tmm2, tmm5, tmm6",
                fetch!(both "12, 13, 14, 15"),
                "tdpbf16ps tmm3, tmm5, tmm7",
            ),
            (true, false) => add_products!(
                "tileloadd tmm4, [{above} + {stride}*1]",
                "tileloadd tmm6, [{panel} + {width}*1]",
                fetch!(one "0, 1, 2, 3, 4, 5, 6, 7"),
                "tileloadd tmm5, [{below} + {stride}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                fetch!(one "8, 9, 10, 11, 12, 13, 14, 15"),
                "tdpbf16ps tmm2, tmm5, tmm6",
            ),
            (false, true) => add_products!(
                "tileloadd tmm4, [{above} + {stride}*1]",
                "tileloadd tmm6, [{panel} + {width}*1]",
                fetch!(both "0, 1, 2, 3, 4, 5, 6, 7"),
                "tileloadd tmm7, [{panel} + {width}*1 + 64]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                fetch!(both "8, 9, 10, 11, 12, 13, 14, 15"),
                "tdpbf16ps tmm1, tmm4, tmm7",
            ),
            (false, false) => add_products!(
                "tileloadd tmm4, [{above} + {stride}*1]",
                "tileloadd tmm6, [{panel} + {width}*1]",
                fetch!(one "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"),
                "tdpbf16ps tmm0, tmm4, tmm6",
            ),
        }
        transfer_all!(
            "tilestored [{at} + {stride}*1], tmm0" "tilestored [{at} + {stride}*1 + 64], tmm1"
            "tilestored [{at} + {stride}*1], tmm2" "tilestored [{at} + {stride}*1 + 64], tmm3"
        );
    }

    /// Rows whose sums are in registers at a time.
    const MAX_ROWS: usize = 8;

    /// [`multiply_dots`] for `V` vectors of a panel and 1 to [`MAX_ROWS`] rows.
    type ByRows = [unsafe fn(Lines<'_>, (&[PairLine], Runs), &mut [f32], usize, bool); MAX_ROWS];

    const fn by_rows<const V: usize>() -> ByRows {
        [
            multiply_dots::<1, V>,
            multiply_dots::<2, V>,
            multiply_dots::<3, V>,
            multiply_dots::<4, V>,
            multiply_dots::<5, V>,
            multiply_dots::<6, V>,
            multiply_dots::<7, V>,
            multiply_dots::<8, V>,
        ]
    }

    /// The products of the first `R` rows of `a` and the first `V` vectors of a panel.
    ///
    /// # Safety
    /// The machine must have AVX512_BF16, and the operands `R` rows.
    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn multiply_dots<const R: usize, const V: usize>(
        a: Lines<'_>,
        (panel, runs): (&[PairLine], Runs),
        y: &mut [f32],
        stride: usize,
        adds: bool,
    ) {
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        if adds {
            for (row, sums) in sums.iter_mut().enumerate() {
                let y = y[row * stride..][..V * LANES].as_ptr();
                // SAFETY: the vectors are within the slice.
                sums.iter_mut().enumerate().for_each(|(v, sum)| *sum = unsafe { _mm512_loadu_ps(y.add(v * LANES)) });
            }
        }
        let starts: [usize; R] = a.starts();
        for run in 0..runs.n {
            let n_pairs = runs.depth.min(a.len() - run * runs.depth) / 2;
            // SAFETY: a line has two vectors, and is aligned to them; each row of `a` has all pairs of this run.
            unsafe {
                let rows = starts.map(|start| a.data.as_ptr().add(run * runs.left + start));
                for (pair, PairLine(b)) in panel[run * runs.right..][..n_pairs].iter().enumerate() {
                    let b: [__m512bh; V] =
                        std::array::from_fn(|v| std::mem::transmute(_mm512_load_si512(b.as_ptr().add(v * LANES).cast())));
                    for (row, sums) in rows.iter().zip(&mut sums) {
                        let x = broadcast(*row, pair * (a.pair_stride / 2));
                        sums.iter_mut().zip(b).for_each(|(sum, b)| *sum = _mm512_dpbf16_ps(*sum, x, b));
                    }
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            let y = y[row * stride..][..V * LANES].as_mut_ptr();
            // SAFETY: the vectors are within the slice.
            sums.into_iter().enumerate().for_each(|(v, sum)| unsafe { _mm512_storeu_ps(y.add(v * LANES), sum) });
        }
    }

    /// The pair at index `pair` of those from `row` on, in all lanes. The compiler would choose `vbroadcastss`, which on Zen 4
    /// takes turns with products: with one vector of columns, they took 1.4 times as long.
    ///
    /// # Safety
    /// The machine must have AVX-512, and the pair must be readable.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn broadcast(row: *const bf16, pair: usize) -> __m512bh {
        let x: __m512i;
        // SAFETY: the instruction reads the pair.
        unsafe {
            asm!(
                "vpbroadcastd {x}, dword ptr [{row} + {pair}*4]",
                x = out(zmm_reg) x, row = in(reg) row, pair = in(reg) pair,
                options(pure, readonly, nostack, preserves_flags),
            );
            std::mem::transmute(x)
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod other {
    use super::{Bf16Instructions, Lines, Panel, Sums};

    impl Bf16Instructions {
        /// Whether this machine, and its operating system, have it.
        pub(crate) fn is_available(self) -> bool {
            false
        }

        /// Unreachable, since no instructions are available.
        pub(super) fn is_faster_than_f32(self) -> bool {
            false
        }

        /// Unreachable, since no instructions are available.
        pub(crate) fn multiply(self, _: &TileRegisters, _: Lines<'_>, _: Panel<'_>, _: Sums<'_>, _: bool) {
            panic!("a machine without {self:?}");
        }

        /// Unreachable, since no instructions are available.
        pub(crate) fn registers(self) -> TileRegisters {
            panic!("a machine without {self:?}");
        }
    }

    /// Tile registers in use.
    #[derive(Debug)]
    pub(crate) struct TileRegisters;
}
