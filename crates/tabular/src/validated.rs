/// What a network says of validation rows: its outputs, with the labels and weights of the rows.
#[derive(Debug, Default)]
pub(super) struct Validated {
    pub(super) outputs: Vec<f32>,
    pub(super) labels: Vec<f32>,
    pub(super) weights: Option<Vec<f32>>,
}

impl Validated {
    /// Adds rows of the same source.
    pub(super) fn add(&mut self, others: Self) {
        self.outputs.extend(others.outputs);
        self.labels.extend(others.labels);
        if let Some(weights) = others.weights {
            self.weights.get_or_insert_default().extend(weights);
        }
    }
}
