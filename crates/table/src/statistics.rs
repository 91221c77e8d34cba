use crate::dtype::{DType, Element};

/// The number of rows whose mean is computed before their deviations: few enough that they stay in the L1 cache in between.
const BLOCK_ROWS: usize = 128;

/// Rows of one dimension have statistics for each column. Other rows, such as images, have them for each index of their last
/// dimension, the channel: statistics for each of 150,528 values would take a header of 16 MB, and pixels are not normalised one
/// by one.
pub(crate) fn n_statistics(row_shape: &[usize]) -> usize {
    row_shape.last().copied().unwrap_or(0)
}

/// Statistics of the values of one column, without missing values (NaN).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// The number of values.
    pub count: u64,
    /// Their mean; NaN if there are none, as for all fields below.
    pub mean: f64,
    /// Their population standard deviation, `sqrt(Σ (x - mean)² / count)`.
    pub std: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

/// Running count, mean and squared deviations of every column; partial results merge.
///
/// # Reference
/// Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance": deviations are taken about the mean of each block
/// of rows and blocks are merged in order, so that neither a large mean nor the number of threads affects the result.
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

    #[cfg(feature = "import")]
    pub(crate) fn n_cols(&self) -> usize {
        self.columns.len()
    }

    /// Adds `values`: `[n_rows, n_cols]`.
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

    /// Adds values of a dtype by their bytes, which are aligned for it. `false` for one that has no [`Element`].
    pub(crate) fn add_stored(&mut self, dtype: DType, bytes: &[u8]) -> bool {
        match dtype {
            DType::F32 => self.add::<f32>(bytemuck::cast_slice(bytes)),
            DType::U8 => self.add::<u8>(bytes),
            DType::U32 => self.add::<u32>(bytemuck::cast_slice(bytes)),
            DType::I32 => self.add::<i32>(bytemuck::cast_slice(bytes)),
            DType::I64 => self.add::<i64>(bytemuck::cast_slice(bytes)),
            DType::F64 => self.add::<f64>(bytemuck::cast_slice(bytes)),
            #[cfg(feature = "half")]
            DType::F16 => self.add::<half::f16>(bytemuck::cast_slice(bytes)),
            #[cfg(feature = "half")]
            DType::BF16 => self.add::<half::bf16>(bytemuck::cast_slice(bytes)),
            _ => return false,
        }
        true
    }

    /// Adds the same value of one column that many times.
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

    /// Adds the values of other moments of the same columns, which come after those of `self`.
    pub(crate) fn merge(&mut self, later: &Moments) {
        for (column, later) in self.columns.iter_mut().zip(&later.columns) {
            column.merge(later);
        }
    }

    /// The moments from which these statistics were computed, except for rounding.
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

    /// Like [`add`](Self::add), one value at a time: for blocks in which values are missing or infinite.
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

/// Per-column sums over one block, computed row by row, so that columns fill the SIMD lanes.
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

    /// Computes sums and extremes; a missing or infinite value makes the sum of its column NaN or infinite.
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

    /// Computes squared deviations from the means, which are stored in place of the sums.
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
