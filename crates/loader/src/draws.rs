use crate::error::Error;
use crate::shuffle::splitmix64_finish;

/// Rows drawn with replacement, in proportion to their weights, as with PyTorch's `WeightedRandomSampler(weights, n_draws)`.
///
/// Draw `i` of an epoch is a pure function of (seed, epoch, `i`), by Walker's alias table: two random numbers and two reads,
/// whatever the number of rows. So an epoch can be resumed anywhere, and all threads and ranks agree. The table takes eight bytes
/// per row.
///
/// # Specification
/// Arithmetic is on `u64` and wraps; `finish` is that of [`Shuffle`](crate::Shuffle); `G = 0x9E3779B97F4A7C15`.
/// ```text
/// base   = finish(seed + (epoch + 1) * 0xD1B54A32D192ED03)
/// a      = finish(base - (2 * i + 1) * G)        b = finish(base - (2 * i + 2) * G)
/// column = high 64 bits of the 128-bit product a * n_rows
/// row    = column if (b >> 32) < threshold[column], else alias[column]
/// ```
///
/// # Reference
/// Walker 1977, "An Efficient Method for Generating Discrete Random Variables with General Distributions"; the table as in Vose
/// 1991.
///
/// # Examples
/// Three of four rows are of class 0; drawn by weight, each class makes up half of the draws:
/// ```
/// use std::sync::Arc;
/// use brisk_loader::{Batching, Loader, Rows, WeightedDraws, class_balanced_weights};
///
/// let labels: Vec<f32> = (0..1000).map(|row| f32::from(row % 4 == 0)).collect();
/// let draws = WeightedDraws::new(&class_balanced_weights(&labels), labels.len())?;
/// let rows = Rows::new(vec![0.5; 1000], labels, 1)?;
/// let mut loader = Loader::new(&rows, Batching::of(100).weighted(42, Arc::new(draws)))?;
/// let mut batches = loader.epoch(0);
/// let mut n_ones = 0;
/// while let Some(batch) = batches.next_batch()? {
///     n_ones += batch.labels.iter().filter(|&&label| label == 1.0).count();
/// }
/// assert!((450..550).contains(&n_ones));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedDraws {
    /// For each row the threshold below which a draw stays with it, and the row that is drawn instead otherwise.
    columns: Vec<(u32, u32)>,
    n_draws: u32,
}

impl WeightedDraws {
    /// A table of weights, which need not sum to 1, and the number of rows per epoch. A row of weight 0 is never drawn.
    ///
    /// # Errors
    /// [`Error::SampleWeight`] for a weight that is negative or not finite; [`Error::NoSampleWeight`] if none is above 0;
    /// [`Error::TooManyRows`] beyond 2³² − 1 weights or draws.
    pub fn new(weights: &[f64], n_draws: usize) -> Result<Self, Error> {
        let n_rows = weights.len();
        let n_most = n_rows.max(n_draws);
        let (Ok(n), Ok(n_draws)) = (u32::try_from(n_rows), u32::try_from(n_draws)) else {
            return Err(Error::TooManyRows { n_rows: n_most });
        };
        if let Some(row) = weights.iter().position(|&weight| !(weight >= 0.0 && weight.is_finite())) {
            return Err(Error::SampleWeight { row, weight: weights[row] });
        }
        let greatest = (0..n_rows).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
        let Some(greatest) = greatest.filter(|&row| weights[row] > 0.0) else {
            return Err(Error::NoSampleWeight { n_weights: n_rows });
        };
        // Divided by the greatest weight first, so that the sum cannot overflow.
        let total: f64 = weights.iter().map(|weight| weight / weights[greatest]).sum();
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / weights[greatest] / total * f64::from(n)).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) = (0..n).partition(|&row| shares[row as usize] < 1.0);
        let mut columns: Vec<(u32, u32)> = (0..n).map(|row| (u32::MAX, row)).collect();
        while let (Some(&lack), Some(&plenty)) = (small.last(), large.last()) {
            small.pop();
            columns[lack as usize] = (threshold(shares[lack as usize]), plenty);
            shares[plenty as usize] -= 1.0 - shares[lack as usize];
            if shares[plenty as usize] < 1.0 {
                large.pop();
                small.push(plenty);
            }
        }
        // Because of rounding, some rows may have a share slightly below 1, or of 0; the rest goes to the row with the greatest
        // weight.
        for lack in small {
            columns[lack as usize] = (threshold(shares[lack as usize]), greatest as u32);
        }
        Ok(Self { columns, n_draws })
    }

    /// The number of weights.
    pub fn n_rows(&self) -> u32 {
        self.columns.len() as u32
    }

    /// The number of rows that an epoch draws.
    pub fn n_draws(&self) -> u32 {
        self.n_draws
    }

    /// Identifies these weights.
    pub(crate) fn fingerprint(&self) -> u64 {
        let both = |&(threshold, alias): &(u32, u32)| u64::from(threshold) << 32 | u64::from(alias);
        self.columns.iter().fold(0, |hash, column| splitmix64_finish(hash ^ both(column)).wrapping_add(1))
    }

    /// Replaces the index of each draw by the row drawn.
    ///
    /// # Panics
    /// If an index is not below `n_draws`.
    pub fn draw(&self, seed: u64, epoch: u32, draws: &mut [u32]) {
        let greatest = draws.iter().copied().max().unwrap_or(0);
        assert!(greatest < self.n_draws || draws.is_empty(), "index {greatest} is out of range for {} draws", self.n_draws);
        let base = splitmix64_finish(seed.wrapping_add((u64::from(epoch) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03)));
        let random = |k: u64| splitmix64_finish(base.wrapping_sub(k.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for draw in draws {
            let i = 2 * u64::from(*draw);
            let column = ((u128::from(random(i + 1)) * self.columns.len() as u128) >> 64) as u32;
            let (threshold, alias) = self.columns[column as usize];
            let stays = (random(i + 2) >> 32) < u64::from(threshold);
            *draw = if stays { column } else { alias };
        }
    }
}

/// Converts a share from 0 to 1 to a threshold for 32 random bits. For a share of 1, the alias is the row itself.
fn threshold(share: f64) -> u32 {
    (share * 4_294_967_296.0) as u32
}

/// Weights for [`WeightedDraws`] with which all classes of labels are drawn equally often: the reciprocal of the number of rows
/// with the same label.
pub fn class_balanced_weights(labels: &[f32]) -> Vec<f64> {
    let classes = crate::classes::Classes::of(labels);
    let counts = classes.counts();
    classes.of_row.iter().map(|&class| 1.0 / counts[class as usize] as f64).collect()
}
