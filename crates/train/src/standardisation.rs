use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use brisk_loader::{ColumnMoments, RowBuffers, RowSelection, RowSource, labels_of};
use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Persistent};
use brisk_nn::{FeatureScale, Parameters};

use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::moments::Moments;
use crate::rows::FeedRows;
use crate::rows::inspect::{FINITE_LABEL, column_count, failed, label_count, layout_of, no_rows, wrong_label};
use crate::survey::moments_of;

/// Brings columns to mean 0 and variance 1, on the device, when a batch is gathered. Bytes count as 0 to 255.
#[derive(Debug, Clone)]
pub struct Standardisation {
    mean: Vec<f32>,
    inv_std: Vec<f32>,
    pub(crate) buffers: [Persistent; 4],
}

impl Standardisation {
    /// The names of the means and of the inverse standard deviations in checkpoints.
    const MEAN: &str = "input.mean";
    const INV_STD: &str = "input.inv_std";

    /// Mean and standard deviation (of the population, as scikit-learn's `StandardScaler`) of each column, in one pass in f64.
    ///
    /// A column that never changes, or by less than `f32` can represent, is only centred. A source that
    /// [has moments](RowSource::column_moments), such as a table with statistics, is not read.
    ///
    /// # Errors
    /// [`Error::RowSet`]; [`Error::Value`] names the first row and column not finite; [`Error::Rows`] if the source fails.
    pub fn of<S: FeedRows>(name: &'static str, source: &S) -> Result<Self, Error> {
        layout_of(name, source)?;
        if let Some(known) = Self::known(source) {
            return Ok(known);
        }
        Ok(Self::of_moments(&moments_of(name, source)?))
    }

    /// By the moments of columns of finite values.
    pub(crate) fn of_moments(moments: &Moments) -> Self {
        let inv_std = moments.squares.iter().map(|s| inverse((s / moments.count).sqrt())).collect();
        Self::new(moments.mean.iter().map(|&mean| mean as f32).collect(), inv_std)
    }

    /// The same of some labels of each row, such as those of a [head](crate::Head::standardised) that learns numbers.
    ///
    /// # Errors
    /// As [`of`](Self::of), with [`Error::RowLayout`] if the rows do not have these labels, and [`Error::Value`].
    pub fn of_labels<S: RowSource>(set: &'static str, source: &S, labels: Range<usize>) -> Result<Self, Error> {
        let n_labels = source.n_labels();
        if labels.end > n_labels || labels.is_empty() {
            return Err(label_count(set, n_labels, labels.end.max(1)));
        }
        let all = labels_of(source).map_err(|error| failed(set, &error))?;
        if all.is_empty() {
            return Err(no_rows(set, 0, source.n_cols()));
        }
        let own: Vec<f32> = all.chunks_exact(n_labels).flat_map(|row| &row[labels.clone()]).copied().collect();
        if let Some(i) = own.iter().position(|label| !label.is_finite()) {
            let place = [i / labels.len(), labels.start + i % labels.len()];
            return Err(wrong_label(set, source, place, own[i], FINITE_LABEL.into()));
        }
        let mut moments = Moments::new(labels.len());
        moments.add(&own);
        Ok(Self::of_moments(&moments))
    }

    /// From the moments that the source knows of its columns.
    pub(crate) fn known<S: RowSource>(source: &S) -> Option<Self> {
        let moments = source.column_moments()?;
        let of_columns = moments.iter().map(|&ColumnMoments { mean, std }| (mean as f32, inverse(std)));
        let (mean, inv_std) = of_columns.unzip();
        Some(Self::new(mean, inv_std))
    }

    /// From known values, such as those of a checkpoint.
    pub fn new(mean: Vec<f32>, inv_std: Vec<f32>) -> Self {
        let buffer = |name, len| Persistent::required(name, DType::F32, len);
        let buffers = [buffer("mean", mean.len()), buffer("inv_std", inv_std.len()), buffer("zero", 1), buffer("one", 1)];
        Self { mean, inv_std, buffers }
    }

    /// The one in a checkpoint or a file of a model, if it has one.
    pub(crate) fn in_checkpoint(checkpoint: &Checkpoint) -> Result<Option<Self>, Error> {
        let Some(mean) = checkpoint.f32_if_any(Self::MEAN)? else { return Ok(None) };
        let inv_std = checkpoint.f32(Self::INV_STD, &[mean.len()])?.to_vec();
        Ok(Some(Self::new(mean, inv_std)))
    }

    pub(crate) fn insert_into(&self, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        let n_cols = self.mean.len();
        checkpoint.insert(Self::MEAN, &[n_cols], self.mean.clone())?;
        checkpoint.insert(Self::INV_STD, &[n_cols], self.inv_std.clone())
    }

    /// Whether a tensor of a checkpoint is part of one.
    pub(crate) fn is_named(name: &str) -> bool {
        [Self::MEAN, Self::INV_STD].contains(&name)
    }

    /// Leaves `n_cols` columns as they are.
    pub fn none(n_cols: usize) -> Self {
        Self::new(vec![0.0; n_cols], vec![1.0; n_cols])
    }

    /// Brings `n_cols` columns of bytes from 0 to 255 to 0 to 1.
    pub fn bytes(n_cols: usize) -> Self {
        Self::new(vec![0.0; n_cols], vec![1.0 / 255.0; n_cols])
    }

    /// The same mean and deviation for all pixels of a channel, for images with channels last: those of all its values.
    ///
    /// # Errors
    /// [`Error::RowLayout`] if the columns are not pixels of `n_channels` values.
    pub fn per_channel(self, n_channels: usize) -> Result<Self, Error> {
        let n_cols = self.mean.len();
        if n_channels == 0 || !n_cols.is_multiple_of(n_channels) {
            let expected = n_cols.next_multiple_of(n_channels.max(1));
            return Err(column_count("train", n_cols, expected));
        }
        let n_pixels = n_cols / n_channels;
        let of_channel = |channel: usize| {
            let columns = (channel..n_cols).step_by(n_channels);
            let mean = columns.clone().map(|col| f64::from(self.mean[col])).sum::<f64>() / n_pixels as f64;
            let squares = columns.map(|col| (f64::from(self.mean[col]) - mean).powi(2) + f64::from(self.inv_std[col]).powi(-2));
            (mean as f32, (squares.sum::<f64>() / n_pixels as f64).sqrt() as f32)
        };
        let (mean, std): (Vec<f32>, Vec<f32>) = (0..n_channels).map(of_channel).unzip();
        Ok(Self::of_channels(&mean, &std, n_pixels))
    }

    /// From the mean and the standard deviation of each channel of images of `n_pixels`, channels last.
    pub fn of_channels(mean: &[f32], std: &[f32], n_pixels: usize) -> Self {
        Self::new(mean.repeat(n_pixels), std.iter().map(|std| 1.0 / std).collect::<Vec<_>>().repeat(n_pixels))
    }

    /// The same, for rows of `n_cols` columns.
    pub(crate) fn checked(self, n_cols: usize) -> Result<Self, Error> {
        if self.mean.len() != n_cols {
            return Err(column_count("train", n_cols, self.mean.len()));
        }
        Ok(self)
    }

    /// The first column of rows with the moments of `rows` that this leaves far from mean 0 and deviation 1. Columns with equal
    /// mean and deviation, such as the pixels of a channel, are one. Columns that are only scaled, not centred, are not judged,
    /// nor are deviations of constant columns.
    pub(crate) fn misfit(&self, rows: &Self) -> Option<usize> {
        const FAR: f64 = 4.0;
        let mut groups: BTreeMap<[u32; 2], Vec<usize>> = BTreeMap::new();
        for (col, (mean, inv_std)) in self.mean.iter().zip(&self.inv_std).enumerate().filter(|(_, (mean, _))| **mean != 0.0) {
            groups.entry([mean.to_bits(), inv_std.to_bits()]).or_default().push(col);
        }
        let is_far = |columns: &&Vec<usize>| {
            let first = columns[0];
            let (mean, inv_std) = (f64::from(self.mean[first]), f64::from(self.inv_std[first]));
            let n = columns.len() as f64;
            let own_mean = columns.iter().map(|&col| f64::from(rows.mean[col])).sum::<f64>() / n;
            // A constant column has a factor of 1.
            let changing: Vec<usize> = columns.iter().copied().filter(|&col| rows.inv_std[col] != 1.0).collect();
            let square = |&col: &usize| (f64::from(rows.mean[col]) - own_mean).powi(2) + f64::from(rows.inv_std[col]).powi(-2);
            let std = (changing.iter().map(square).sum::<f64>() / n).sqrt() * inv_std;
            let is_scaled = !changing.is_empty() && !(1.0 / FAR..=FAR).contains(&std);
            ((own_mean - mean) * inv_std).abs() > FAR || is_scaled
        };
        groups.values().filter(is_far).map(|columns| columns[0]).min()
    }

    /// Whether it leaves columns as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.mean.iter().all(|&mean| mean == 0.0) && self.inv_std.iter().all(|&inv_std| inv_std == 1.0)
    }

    /// The first column that `other`, of as many columns, standardises differently. Values that were computed in another order
    /// differ by rounding.
    pub(crate) fn differing_column(&self, other: &Self) -> Option<usize> {
        const TOLERANCE: f32 = 1e-4;
        let differs = |&col: &usize| {
            let is_near = |a: f32, b: f32| (a - b).abs() <= TOLERANCE;
            if (self.mean[col], self.inv_std[col]) == (other.mean[col], other.inv_std[col]) {
                return false;
            }
            let mean_off = (self.mean[col] - other.mean[col]) * self.inv_std[col];
            !is_near(mean_off, 0.0) || !is_near(other.inv_std[col] / self.inv_std[col], 1.0)
        };
        (0..self.mean.len()).find(differs)
    }

    /// For parameters to [note](Parameters::set_trained_on).
    pub(crate) fn features(&self) -> Arc<FeatureScale> {
        Arc::new(FeatureScale { mean: self.mean.clone(), inv_std: self.inv_std.clone() })
    }

    /// Checks that the newest values of `params` were trained on features that are standardised by `scale`, if that is known.
    pub(crate) fn check(scale: Option<&Self>, params: &Parameters, expected: &'static str) -> Result<(), Error> {
        let Some(trained_on) = params.trained_on() else { return Ok(()) };
        let trained_on = Self::new(trained_on.mean.clone(), trained_on.inv_std.clone());
        let n_cols = trained_on.mean.len();
        let described = |scale: &Self, col: usize| {
            format!("column {col} with mean {} and deviation {}", scale.mean[col], 1.0 / scale.inv_std[col])
        };
        let (found, col) = match scale.filter(|scale| !scale.is_plain()) {
            None if trained_on.is_plain() => return Ok(()),
            None => ("none".to_owned(), trained_on.differing_column(&Self::none(n_cols)).unwrap_or(0)),
            Some(scale) if scale.mean.len() != n_cols => (format!("that of {} columns", scale.mean.len()), 0),
            Some(scale) => match trained_on.differing_column(scale) {
                None => return Ok(()),
                Some(col) => (described(scale, col), col),
            },
        };
        let trained_on = described(&trained_on, col);
        let found = format!("{found}, for parameters whose newest values were trained on {n_cols} columns, {trained_on}");
        Err(Error::setting("standardisation", found, expected))
    }

    /// The columns' means.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// One over the columns' standard deviations.
    pub fn inv_std(&self) -> &[f32] {
        &self.inv_std
    }

    /// Rows of `source`, standardised on the host as batches are on a device: `[rows.len(), n_cols]`. Initial values that depend
    /// on data are computed from such rows, as the filters of a whitening are.
    ///
    /// # Errors
    /// [`Error::RowLayout`] if the rows have another number of columns; [`Error::Rows`] if the source has no such rows, or fails.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::Rows;
    /// use brisk_train::Standardisation;
    ///
    /// let train = Rows::new(vec![0_u8, 10, 4, 30], vec![0.0, 1.0], 2)?;
    /// let scale = Standardisation::of("train", &train)?;
    /// assert_eq!(scale.rows("train", &train, 0..2)?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rows<S: FeedRows>(&self, set: &'static str, source: &S, rows: Range<usize>) -> Result<Vec<f32>, Error> {
        let (n_rows, n_cols) = (rows.len(), source.n_cols());
        if n_cols != self.mean.len() {
            return Err(column_count(set, n_cols, self.mean.len()));
        }
        let mut features = vec![S::Feature::default(); n_rows.saturating_mul(n_cols)];
        let mut labels = vec![0.0; n_rows.saturating_mul(source.n_labels())];
        source
            .gather(RowSelection::Range(rows), RowBuffers::new(&mut features, &mut labels))
            .map_err(|error| failed(set, &error))?;
        let values = features.into_iter().zip(self.mean.iter().zip(&self.inv_std).cycle());
        Ok(values.map(|(x, (mean, inv_std))| (x.into() - mean) * inv_std).collect())
    }

    /// Writes the values to `device`, for a graph of your own that gathers batches by [`Feed::record`](crate::Feed::record); a
    /// [`Step`](crate::Step) and a [`Scorer`](crate::Scorer) write them.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device has no room.
    pub fn write(&self, device: &Device) -> Result<(), Error> {
        let values: [&[f32]; 4] = [&self.mean, &self.inv_std, &[0.0], &[1.0]];
        for (buffer, values) in self.buffers.iter().zip(values).filter(|(_, values)| !values.is_empty()) {
            device.write(buffer, values)?;
        }
        Ok(())
    }
}

/// The same means and deviations.
impl PartialEq for Standardisation {
    fn eq(&self, other: &Self) -> bool {
        self.mean == other.mean && self.inv_std == other.inv_std
    }
}

/// One over a standard deviation; 1 if that is not a finite `f32`.
fn inverse(std: f64) -> f32 {
    let inverse = (1.0 / std) as f32;
    if inverse.is_finite() { inverse } else { 1.0 }
}
