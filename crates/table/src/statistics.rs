use crate::Element;

/// Rows whose mean is taken before their deviations are: they stay in the first-level cache in between.
const BLOCK_ROWS: usize = 128;

/// What is known of the values of one column, missing values (NaN) left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// How many values were there.
    pub count: u64,
    /// Their mean; NaN if there were none, as for all that follow.
    pub mean: f64,
    /// Their standard deviation about the mean, `sqrt(Σ (x - mean)² / count)`: that of the rows at hand, not an estimate for others.
    pub std: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

/// Running count, mean and squared deviations of every column; partial results merge.
///
/// # Reference
/// Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance": deviations are taken about the mean of each block of
/// rows and blocks are merged in order, so that neither a large mean nor the number of threads shows in the result.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    count: u64,
    mean: f64,
    /// Σ (x - mean)²
    deviations: f64,
    min: f64,
    max: f64,
}

const NOTHING_SEEN: Column = Column { count: 0, mean: 0.0, deviations: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

impl Moments {
    pub(crate) fn new(n_cols: usize) -> Self {
        Self { columns: vec![NOTHING_SEEN; n_cols] }
    }

    /// Takes in `values`: `[n_rows, n_cols]`.
    pub(crate) fn add<T: Element>(&mut self, values: &[T]) {
        let n_cols = self.columns.len();
        if n_cols == 0 {
            return;
        }
        let mut scratch = Scratch::new(n_cols);
        for block in values.chunks(BLOCK_ROWS * n_cols) {
            scratch.sum(block);
            if scratch.sums.iter().all(|sum| sum.is_finite()) {
                self.merge_block(&mut scratch, block);
            } else {
                self.add_with_gaps(block);
            }
        }
    }

    /// Takes in one column's value that many times.
    #[cfg(feature = "import")]
    #[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "each importer uses its own part of it"))]
    pub(crate) fn add_repeated(&mut self, col: usize, count: u64, value: f64) {
        self.columns[col].merge(&Column { count, mean: value, deviations: 0.0, min: value, max: value });
    }

    #[cfg(feature = "import")]
    #[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "each importer uses its own part of it"))]
    pub(crate) fn clear(&mut self) {
        self.columns.fill(NOTHING_SEEN);
    }

    /// Takes in what other moments of the same columns have seen, after what these have.
    pub(crate) fn merge(&mut self, later: &Moments) {
        for (column, later) in self.columns.iter_mut().zip(&later.columns) {
            column.merge(later);
        }
    }

    /// What was known when these statistics were taken, but for roundings.
    pub(crate) fn from_statistics(statistics: &[ColumnStatistics]) -> Self {
        let column = |known: &ColumnStatistics| match known.count {
            0 => NOTHING_SEEN,
            count => Column {
                count,
                mean: known.mean,
                deviations: known.std * known.std * count as f64,
                min: known.min,
                max: known.max,
            },
        };
        Self { columns: statistics.iter().map(column).collect() }
    }

    pub(crate) fn statistics(&self) -> Vec<ColumnStatistics> {
        self.columns.iter().map(Column::statistics).collect()
    }

    fn merge_block<T: Element>(&mut self, scratch: &mut Scratch<T>, block: &[T]) {
        let n_cols = self.columns.len();
        let n_rows = (block.len() / n_cols) as f64;
        for mean in &mut scratch.sums {
            *mean /= n_rows;
        }
        scratch.deviate(block);
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.merge(&Column {
                count: n_rows as u64,
                mean: scratch.sums[i],
                deviations: scratch.deviations[i],
                min: scratch.min[i].to_f64(),
                max: scratch.max[i].to_f64(),
            });
        }
    }

    /// The same, one value at a time: for blocks in which values are missing or infinite.
    fn add_with_gaps<T: Element>(&mut self, block: &[T]) {
        for row in block.chunks_exact(self.columns.len()) {
            for (column, value) in self.columns.iter_mut().zip(row) {
                let value = value.to_f64();
                if !value.is_nan() {
                    column.merge(&Column { count: 1, mean: value, deviations: 0.0, min: value, max: value });
                }
            }
        }
    }
}

impl Column {
    fn merge(&mut self, later: &Column) {
        if later.count == 0 {
            return;
        }
        let count = self.count + later.count;
        let delta = later.mean - self.mean;
        let share = later.count as f64 / count as f64;
        self.mean += delta * share;
        self.deviations += later.deviations + delta * delta * self.count as f64 * share;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.count = count;
    }

    fn statistics(&self) -> ColumnStatistics {
        let known = |value: f64| if self.count == 0 { f64::NAN } else { value };
        ColumnStatistics {
            count: self.count,
            mean: known(self.mean),
            std: known((self.deviations / self.count as f64).sqrt()),
            min: known(self.min),
            max: known(self.max),
        }
    }
}

/// Per-column sums over one block, row after row, so that columns fill the vector lanes.
struct Scratch<T> {
    sums: Vec<f64>,
    deviations: Vec<f64>,
    min: Vec<T>,
    max: Vec<T>,
}

impl<T: Element> Scratch<T> {
    fn new(n_cols: usize) -> Self {
        Self {
            sums: vec![0.0; n_cols],
            deviations: vec![0.0; n_cols],
            min: vec![T::zeroed(); n_cols],
            max: vec![T::zeroed(); n_cols],
        }
    }

    /// Sums and extremes; a missing or infinite value makes its column's sum so.
    fn sum(&mut self, block: &[T]) {
        let n_cols = self.sums.len();
        let Some(first) = block.get(..n_cols) else { return };
        self.sums.fill(0.0);
        self.min.copy_from_slice(first);
        self.max.copy_from_slice(first);
        for row in block.chunks_exact(n_cols) {
            let columns = self.sums.iter_mut().zip(&mut self.min).zip(&mut self.max);
            for (((sum, min), max), &value) in columns.zip(row) {
                *sum += value.to_f64();
                *min = if value < *min { value } else { *min };
                *max = if value > *max { value } else { *max };
            }
        }
    }

    /// Squared deviations from the means, which stand where the sums stood.
    fn deviate(&mut self, block: &[T]) {
        self.deviations.fill(0.0);
        for row in block.chunks_exact(self.sums.len()) {
            for ((deviations, &mean), &value) in self.deviations.iter_mut().zip(&self.sums).zip(row) {
                let delta = value.to_f64() - mean;
                *deviations += delta * delta;
            }
        }
    }
}
