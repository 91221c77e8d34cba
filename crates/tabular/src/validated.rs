use crate::mean::n_effective;

/// What a network says of validation rows: its outputs, with the labels and weights of the rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Validated {
    pub(super) outputs: Vec<f32>,
    pub(super) labels: Vec<f32>,
    pub(super) weights: Option<Vec<f32>>,
}

impl Validated {
    /// How many rows of equal weight have means that are [as uncertain](n_effective).
    pub(super) fn n_effective(&self) -> f64 {
        n_effective(self.labels.len(), self.weights.as_deref())
    }

    /// The weight of a row; 1 without weights.
    pub(super) fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row].into())
    }

    /// All rows of several sets of the same source.
    pub(super) fn of_all<'a>(sets: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for Self { outputs, labels, weights } in sets {
            all.outputs.extend(outputs);
            all.labels.extend(labels);
            if let Some(weights) = weights {
                all.weights.get_or_insert_default().extend(weights);
            }
        }
        all
    }
}
