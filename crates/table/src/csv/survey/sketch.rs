/// How many smallest hashes are kept: counts below are exact, others have an error of about 3 %.
const SIZE: usize = 1024;

/// Estimates how many different values there are, from the smallest of their hashes. The estimate does not depend on the order of
/// the values.
///
/// # Reference
/// Bar-Yossef et al. 2002, "Counting distinct elements in a data stream", algorithm 2 (k minimum values).
#[derive(Clone, Debug, Default)]
pub(super) struct Distinct {
    /// The smallest hashes; sorted and without duplicates up to `n_sorted`.
    hashes: Vec<u64>,
    n_sorted: usize,
}

impl Distinct {
    pub(super) fn add(&mut self, value: &[u8]) {
        self.insert(hash(value));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        other.hashes.iter().for_each(|&hash| self.insert(hash));
    }

    /// The number of different values.
    pub(super) fn count(&self) -> u64 {
        let mut sorted = self.clone();
        sorted.compact();
        match sorted.hashes.get(SIZE - 1) {
            Some(&largest) => ((SIZE - 1) as f64 / (largest as f64 / u64::MAX as f64)) as u64,
            None => sorted.hashes.len() as u64,
        }
    }

    fn insert(&mut self, hash: u64) {
        if self.n_sorted == SIZE && hash >= self.hashes[SIZE - 1] {
            return;
        }
        self.hashes.push(hash);
        if self.hashes.len() >= self.n_sorted + SIZE {
            self.compact();
        }
    }

    fn compact(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.hashes.truncate(SIZE);
        self.n_sorted = self.hashes.len();
    }
}

/// A hash of 64 evenly distributed bits: multiplication of 8 bytes at a time, and the finalizer of SplitMix64.
fn hash(value: &[u8]) -> u64 {
    let mut state = value.len() as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for chunk in value.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0x2545_f491_4f6c_dd1d);
        state ^= state >> 29;
    }
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

#[cfg(test)]
mod tests {
    use super::Distinct;

    #[test]
    fn counts_are_exact_if_small_and_close_if_large() {
        let count = |n: u32, repeats: u32| {
            let (mut first, mut second) = (Distinct::default(), Distinct::default());
            for value in 0..n * repeats {
                let half = if value % 2 == 0 { &mut first } else { &mut second };
                half.add((value % n).to_string().as_bytes());
            }
            first.merge(&second);
            first.count()
        };
        for (n, repeats) in [(0, 1), (1, 5000), (3, 1000), (1023, 4)] {
            assert_eq!(count(n, repeats), u64::from(n), "{n}");
        }
        for n in [5000, 100_000] {
            assert!((count(n, 2) as f64 / f64::from(n) - 1.0).abs() < 0.1, "{n}: {}", count(n, 2));
        }
    }
}
