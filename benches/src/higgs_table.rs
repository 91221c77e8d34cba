//! The table for speed comparisons: HIGGS-shaped, bit-identical to the one that its Python twin makes.
//!
//! Uses only splitmix64's finalizer and IEEE `+ - * /` in a fixed order. Row `i` depends only on `(i, seed)`.

use rayon::prelude::*;

/// Columns of the table.
pub(crate) const N_COLS: usize = 28;
const N_LOW: usize = 21;
const N_HIDDEN: usize = 12;

/// Features `[n_rows, 28]` and labels `[n_rows]`.
pub(crate) fn higgs_table(n_rows: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
    let teacher = Teacher::new();
    let mut features = vec![0.0; n_rows * N_COLS];
    let mut labels = vec![0.0; n_rows];
    features.par_chunks_exact_mut(N_COLS).zip(&mut labels).enumerate().for_each(|(i, (x, label))| {
        for (j, x) in x[..N_LOW].iter_mut().enumerate() {
            *x = unit(hash(32 * i as u64 + j as u64, seed));
        }
        for q in 0..7 {
            x[N_LOW + q] = x[3 * q] * x[3 * q + 1] - x[3 * q + 2] * 0.5;
        }
        let u = (hash(32 * i as u64 + 31, seed) >> 11) as f64 / (1_u64 << 53) as f64;
        *label = f32::from(u8::from(u < teacher.probability(x)));
    });
    (features, labels)
}

/// `Σ (28 row + col + 1) bits(x) + Σ ((row + 1) label) << 32`, wrapping: the checksum that both twins print.
pub(crate) fn checksum(features: &[f32], labels: &[f32]) -> String {
    let x = features.iter().enumerate().map(|(i, x)| (i as u64 + 1).wrapping_mul(u64::from(x.to_bits())));
    let y = labels.iter().enumerate().map(|(row, y)| ((row as u64 + 1) * *y as u64) << 32);
    format!("{:016x}", x.chain(y).fold(0, u64::wrapping_add))
}

struct Teacher {
    w: [[f64; N_LOW]; N_HIDDEN],
    v: [f64; N_HIDDEN],
}

impl Teacher {
    fn new() -> Self {
        let w = |k: usize, j: usize| f64::from(unit(hash((N_LOW * k + j) as u64, 7_000_021))) * 0.45;
        let v = |k: usize| f64::from(unit(hash(k as u64, 7_000_038)));
        Self { w: std::array::from_fn(|k| std::array::from_fn(|j| w(k, j))), v: std::array::from_fn(v) }
    }

    /// The probability of label 1; sums are computed from left to right, in f64.
    fn probability(&self, x: &[f32]) -> f64 {
        let h: [f64; N_HIDDEN] = std::array::from_fn(|k| {
            let t = self.w[k].iter().zip(x).fold(0.0, |t, (w, x)| t + w * f64::from(*x));
            t / (1.0 + t.abs())
        });
        let z = (0..N_HIDDEN).fold(0.0, |z, k| z + self.v[k] * h[k] * h[(k + 1) % N_HIDDEN]);
        let z = (z + 0.35 * f64::from(x[N_LOW]) - 0.35 * f64::from(x[N_LOW + 1])) * 6.0;
        0.5 * (1.0 + z / (1.0 + z.abs()))
    }
}

fn hash(i: u64, seed: u64) -> u64 {
    let h = (i.wrapping_add(1)).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed);
    let h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    h ^ (h >> 31)
}

/// A nearly normal number from a hash: the sum of its four 16-bit words, centred and scaled to variance 1.
fn unit(h: u64) -> f32 {
    let words = (h & 0xFFFF) + (h >> 16 & 0xFFFF) + (h >> 32 & 0xFFFF) + (h >> 48);
    (words as i64 - 131_070) as f32 * (1.0_f32 / 37_837.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bits_as_in_python() {
        let (features, labels) = higgs_table(1_000, 1);
        assert_eq!(checksum(&features, &labels), "0ba4ef19149d1f8c", "the checksum that higgs_table.py prints");
    }
}
