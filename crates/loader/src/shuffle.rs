#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "the instructions that a processor has are found out at run time")
)]

use crate::gather::BLOCK;

/// The order of one epoch: a keyed bijection of `0..n_rows`, so that position `i` is row `shuffle.row(i)`, computed and never
/// stored.
///
/// There is no index array, any position costs the same, and threads, workers and devices that share the two integers
/// (seed, epoch) agree on every bit.
///
/// # Specification
/// A GPU kernel that reads [`keys`](Self::keys) and [`bits`](Self::bits) can implement the same function from this specification.
/// All arithmetic wraps, on `u32` unless `u64` is stated.
/// ```text
/// bits    = max(2, ceil(log2(n_rows)))          lo_bits = bits / 2        hi_bits = bits - lo_bits
/// lo_mask = 2^lo_bits - 1                       hi_mask = 2^hi_bits - 1
///
/// z[i]    = finish(seed + (epoch + 1) * 0xD1B54A32D192ED03 + (i + 1) * 0x9E3779B97F4A7C15)        u64, i = 0..8
/// keys[i] = z[i] >> 32
/// finish(z):  z ^= z >> 30;  z *= 0xBF58476D1CE4E5B9;  z ^= z >> 27;  z *= 0x94D049BB133111EB;  z ^= z >> 31       u64
///
/// mix(x, k):  x ^= k;  x *= 0x85EBCA6B;  x ^= x >> 13;  x *= 0xC2B2AE35;  x ^= x >> 16
///
/// feistel(v): lo = v & lo_mask;  hi = v >> lo_bits
///             for i in 0..8:   i even: hi ^= mix(lo, keys[i]) & hi_mask     i odd: lo ^= mix(hi, keys[i]) & lo_mask
///             hi << lo_bits | lo
///
/// row(position): v = position;  do v = feistel(v) while v >= n_rows;  v
/// ```
/// `feistel` permutes `0..2^bits`, which is less than twice `n_rows` (from 3 rows on), so the walk takes less than two steps on
/// average. It ends because it starts below `n_rows` and is on a cycle.
///
/// # Reference
/// Luby & Rackoff 1988 for the network; Black & Rogaway 2002, "Ciphers with Arbitrary Finite Domains", for the walk. This is a
/// good shuffle, not a cipher.
///
/// # Examples
/// ```
/// use brisk_loader::Shuffle;
///
/// let shuffle = Shuffle::new(10, 42, 0);
/// let rows: Vec<u32> = (0..10).map(|position| shuffle.row(position)).collect();
/// assert_eq!(rows, [5, 9, 7, 3, 6, 2, 0, 8, 1, 4]);
/// assert_eq!(shuffle.position_of(7), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shuffle {
    n_rows: u32,
    bits: u32,
    lo_bits: u32,
    lo_mask: u32,
    hi_mask: u32,
    keys: [u32; 8],
}

/// So few positions need less memory than a block.
pub(crate) const FEW: usize = 32;

/// An epoch that no training run reaches: its keys are reserved for splits, so that a split and an order may share a seed.
pub(crate) const SPLIT_EPOCH: u32 = u32::MAX;

impl Shuffle {
    /// The order of `epoch` under `seed`. Does not allocate, and takes a few dozen instructions.
    pub fn new(n_rows: u32, seed: u64, epoch: u32) -> Self {
        let bits = (u32::BITS - n_rows.saturating_sub(1).leading_zeros()).max(2);
        let lo_bits = bits / 2;
        let lo_mask = (1 << lo_bits) - 1;
        let hi_mask = (1 << (bits - lo_bits)) - 1;
        Self { n_rows, bits, lo_bits, lo_mask, hi_mask, keys: round_keys(seed, epoch) }
    }

    /// The number of rows that are permuted.
    pub fn n_rows(&self) -> u32 {
        self.n_rows
    }

    /// The width of the network: it permutes `0..2^bits`.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The key of each round.
    pub fn keys(&self) -> [u32; 8] {
        self.keys
    }

    /// The row at `position`.
    ///
    /// # Panics
    /// If the position is out of range, as when indexing a slice.
    pub fn row(&self, position: u32) -> u32 {
        self.check(position);
        let mut v = position;
        loop {
            v = self.feistel(v);
            if v < self.n_rows {
                return v;
            }
        }
    }

    /// The position of `row`: the inverse of [`row`](Self::row).
    ///
    /// # Panics
    /// If the row is out of range, as when indexing a slice.
    pub fn position_of(&self, row: u32) -> u32 {
        self.check(row);
        let mut v = row;
        loop {
            v = self.feistel_back(v);
            if v < self.n_rows {
                return v;
            }
        }
    }

    /// Computes the rows at positions `first`, `first + 1`, …, in blocks that use SIMD.
    ///
    /// # Panics
    /// If the last position is out of range.
    pub fn fill(&self, first: u32, rows: &mut [u32]) {
        for (position, row) in (u64::from(first)..).zip(rows.iter_mut()) {
            // A position that does not fit in `u32` is out of range for any `n_rows`; `permute` reports it.
            *row = u32::try_from(position).unwrap_or(u32::MAX);
        }
        self.permute(rows);
    }

    /// Replaces each position by its row; like [`fill`](Self::fill), for positions that are not consecutive.
    ///
    /// # Panics
    /// If a position is out of range.
    pub fn permute(&self, positions: &mut [u32]) {
        if let Some(&greatest) = positions.iter().max() {
            self.check(greatest);
        }
        // Setting up arrays for a block would take longer than shuffling the few rows of a lane.
        if positions.len() <= FEW {
            return self.permute_few::<FEW>(positions);
        }
        positions.chunks_mut(BLOCK).for_each(|block| self.permute_few::<BLOCK>(block));
    }

    /// [`permute`](Self::permute) of at most `N` positions.
    fn permute_few<const N: usize>(&self, positions: &mut [u32]) {
        self.rounds::<N>(positions);
        self.walk::<N>(positions);
    }

    #[track_caller]
    fn check(&self, index: u32) {
        assert!(index < self.n_rows, "index {index} is out of range for a shuffle of {} rows", self.n_rows);
    }

    #[inline(always)]
    fn feistel(&self, v: u32) -> u32 {
        let (mut lo, mut hi) = (v & self.lo_mask, v >> self.lo_bits);
        for keys in self.keys.as_chunks::<2>().0 {
            hi ^= mix(lo, keys[0]) & self.hi_mask;
            lo ^= mix(hi, keys[1]) & self.lo_mask;
        }
        hi << self.lo_bits | lo
    }

    fn feistel_back(&self, v: u32) -> u32 {
        let (mut lo, mut hi) = (v & self.lo_mask, v >> self.lo_bits);
        for keys in self.keys.as_chunks::<2>().0.iter().rev() {
            lo ^= mix(hi, keys[1]) & self.lo_mask;
            hi ^= mix(lo, keys[0]) & self.hi_mask;
        }
        hi << self.lo_bits | lo
    }

    /// Applies one `feistel` to each of at most `N` values.
    fn rounds<const N: usize>(&self, values: &mut [u32]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.rounds_by_avx2::<N>(values) };
        }
        self.rounds_in_vectors::<N>(values);
    }

    /// Without AVX2, x86-64 has no multiplication of vectors of `u32`.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2")]
    fn rounds_by_avx2<const N: usize>(&self, values: &mut [u32]) {
        self.rounds_in_vectors::<N>(values);
    }

    /// Each round goes over all values before the next one starts: compilers vectorise this form, and no value waits for the
    /// multiplications of its own previous round.
    #[inline(always)]
    fn rounds_in_vectors<const N: usize>(&self, values: &mut [u32]) {
        let (mut lo, mut hi) = ([0_u32; N], [0_u32; N]);
        let (lo, hi) = (&mut lo[..values.len()], &mut hi[..values.len()]);
        for ((lo, hi), &mut v) in lo.iter_mut().zip(hi.iter_mut()).zip(values.iter_mut()) {
            (*lo, *hi) = (v & self.lo_mask, v >> self.lo_bits);
        }
        for keys in self.keys.as_chunks::<2>().0 {
            for (lo, hi) in lo.iter_mut().zip(hi.iter_mut()) {
                *hi ^= mix(*lo, keys[0]) & self.hi_mask;
                *lo ^= mix(*hi, keys[1]) & self.lo_mask;
            }
        }
        for ((&mut lo, &mut hi), v) in lo.iter_mut().zip(hi.iter_mut()).zip(values.iter_mut()) {
            *v = hi << self.lo_bits | lo;
        }
    }

    /// Applies `feistel` again to the values that are not below `n_rows`, packed together, until there are none left.
    fn walk<const N: usize>(&self, values: &mut [u32]) {
        let mut outside = [0_u32; N];
        let mut slots = [0_u16; N];
        let mut n_outside = 0;
        for (slot, &v) in values.iter().enumerate() {
            slots[n_outside] = slot as u16;
            outside[n_outside] = v;
            n_outside += usize::from(v >= self.n_rows);
        }
        while n_outside > 0 {
            self.rounds::<N>(&mut outside[..n_outside]);
            let n = n_outside;
            n_outside = 0;
            for i in 0..n {
                let (v, slot) = (outside[i], slots[i]);
                values[usize::from(slot)] = v;
                slots[n_outside] = slot;
                outside[n_outside] = v;
                n_outside += usize::from(v >= self.n_rows);
            }
        }
    }
}

#[inline(always)]
fn mix(x: u32, key: u32) -> u32 {
    let x = (x ^ key).wrapping_mul(0x85EB_CA6B);
    let x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

fn round_keys(seed: u64, epoch: u32) -> [u32; 8] {
    let start = seed.wrapping_add((u64::from(epoch) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03));
    std::array::from_fn(|i| {
        let z = start.wrapping_add((i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        (splitmix64_finish(z) >> 32) as u32
    })
}

pub(crate) fn splitmix64_finish(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}
