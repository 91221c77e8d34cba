use super::dictionary::LocalValues;
use super::digits::may_lose;
use super::{Digits, FeatureDType, Roles};
use crate::statistics::{ColumnStatistics, Moments};

/// Rows to be added to a table, and the statistics gathered from them on the worker threads.
#[derive(Debug)]
pub(crate) struct RowChunk {
    /// `[n_rows, n_features]`; NaN where a value is missing.
    pub(crate) features: Vec<f32>,
    /// `[n_rows, n_categories]`: codes of `values`, 0 where a value is missing.
    pub(crate) categories: Vec<u32>,
    pub(crate) labels: ChunkLabels,
    /// One per row, or empty.
    pub(crate) weights: Vec<f32>,
    /// The values of each categorical column.
    pub(crate) values: Vec<LocalValues>,
    /// What the numbers lost in rounding: one for each feature including indicators, then one for each label, then one for the
    /// weight if there is one.
    pub(crate) digits: Vec<Digits>,
    /// The features as they are stored, if not as `f32`.
    stored: Stored,
    pub(super) moments: Moments,
    n_labels: usize,
}

#[derive(Debug)]
pub(crate) enum ChunkLabels {
    Numbers(Vec<f32>),
    /// Codes of the classes that were found in this chunk, counted from 1.
    Found(Vec<u32>, LocalValues),
    /// Numbers of known classes.
    Known(Vec<u32>),
}

#[derive(Debug)]
enum Stored {
    F32,
    #[cfg(feature = "half")]
    F16(Vec<half::f16>),
    U8(Vec<u8>),
}

impl RowChunk {
    pub(crate) fn new(roles: &Roles) -> Self {
        use super::roles::Labels;
        Self {
            features: Vec::new(),
            categories: Vec::new(),
            labels: match roles.labels {
                Labels::Number | Labels::Binary | Labels::Absent => ChunkLabels::Numbers(Vec::new()),
                Labels::Found => ChunkLabels::Found(Vec::new(), LocalValues::default()),
                Labels::Known(_) => ChunkLabels::Known(Vec::new()),
            },
            weights: Vec::new(),
            values: roles.categories.iter().map(|_| LocalValues::default()).collect(),
            digits: vec![Digits::NONE; roles.n_numbers()],
            stored: match roles.rules.dtype {
                FeatureDType::F32 => Stored::F32,
                #[cfg(feature = "half")]
                FeatureDType::F16 => Stored::F16(Vec::new()),
                FeatureDType::U8 => Stored::U8(Vec::new()),
            },
            moments: Moments::new(roles.rules.n_features()),
            n_labels: roles.n_labels(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.features.clear();
        self.categories.clear();
        self.weights.clear();
        self.values.iter_mut().for_each(LocalValues::clear);
        self.digits.fill(Digits::NONE);
        match &mut self.labels {
            ChunkLabels::Numbers(labels) => labels.clear(),
            ChunkLabels::Known(labels) => labels.clear(),
            ChunkLabels::Found(labels, values) => {
                labels.clear();
                values.clear();
            }
        }
    }

    /// Converts the features to their stored type, and gathers their moments; called after the last row.
    pub(crate) fn seal(&mut self) {
        self.moments.clear();
        match &mut self.stored {
            Stored::F32 => self.moments.add(&self.features),
            #[cfg(feature = "half")]
            Stored::F16(stored) => {
                stored.clear();
                stored.extend(self.features.iter().map(|&value| half::f16::from_f32(value)));
                let n_features = self.moments.n_cols();
                for (i, (&value, rounded)) in self.features.iter().zip(&*stored).enumerate() {
                    let digits = &mut self.digits[i % n_features];
                    if value.fract() == 0.0 && rounded.to_f32() != value {
                        digits.note_half(value);
                    } else {
                        digits.note_error(value.into(), rounded.to_f64());
                    }
                }
                self.moments.add(stored);
            }
            Stored::U8(stored) => {
                stored.clear();
                // Whole numbers within the range, as `FeatureRules` has checked.
                stored.extend(self.features.iter().map(|&value| value as u8));
                self.moments.add(stored);
            }
        }
    }

    /// Replaces NaN by these values in the first columns of sealed rows.
    pub(super) fn fill(&mut self, values: &[f32]) {
        let (n_features, mut any) = (self.moments.n_cols(), false);
        for (i, feature) in self.features.iter_mut().enumerate().filter(|(_, feature)| feature.is_nan()) {
            if let Some(&value) = values.get(i % n_features) {
                (*feature, any) = (value, true);
            }
        }
        if any {
            self.seal();
        }
    }

    /// The positions of the features and labels of which rounding to `f32` may have taken a relevant share, given the spread of
    /// these rows.
    pub(crate) fn narrow(&self) -> Vec<usize> {
        let mut all = self.moments.statistics();
        if let ChunkLabels::Numbers(numbers) = &self.labels {
            let mut labels = Moments::new(self.n_labels);
            labels.add(numbers);
            all.extend(labels.statistics());
        }
        let is_narrow = |column: &ColumnStatistics| {
            let largest = column.min.abs().max(column.max.abs());
            largest > 0.0 && may_lose(largest, column.std)
        };
        (0..all.len()).filter(|&place| is_narrow(&all[place])).collect()
    }

    /// The number of labels: of rows, if each has one.
    pub(super) fn n_labels(&self) -> usize {
        match &self.labels {
            ChunkLabels::Numbers(labels) => labels.len(),
            ChunkLabels::Found(labels, _) | ChunkLabels::Known(labels) => labels.len(),
        }
    }

    /// The bytes of the features.
    pub(super) fn stored(&self) -> &[u8] {
        match &self.stored {
            Stored::F32 => bytemuck::cast_slice(&self.features),
            #[cfg(feature = "half")]
            Stored::F16(stored) => bytemuck::cast_slice(stored),
            Stored::U8(stored) => stored,
        }
    }
}
