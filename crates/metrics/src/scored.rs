/// Rows that a model has scored: its outputs with labels and, optionally, weights.
///
/// The numbers of outputs and labels per row determine the kind of task:
///
/// | task | outputs | labels |
/// | --- | --- | --- |
/// | binary classification | 1 logit; positive predicts 1 | 1, which is 0.0 or 1.0 |
/// | multi-class classification | `n_classes` logits | 1, a class number below `n_classes` |
/// | multi-label classification | `n` logits, `n > 1` | `n`, each 0.0 or 1.0 |
/// | regression | `n` predictions | `n` finite numbers |
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a> {
    /// Logits or predictions, `[n_rows, n_outputs]`, row-major.
    pub outputs: &'a [f32],
    /// Outputs per row.
    pub n_outputs: usize,
    /// `[n_rows, n_labels]`, row-major.
    pub labels: &'a [f32],
    /// Labels per row; 0 for a task that takes none.
    pub n_labels: usize,
    /// `[n_rows]`, finite and not negative. Without weights every row counts as 1; a row of weight 0 does not count.
    pub weights: Option<&'a [f32]>,
}

impl<'a> Scored<'a> {
    /// Rows of a binary classification: one logit and one label.
    pub fn binary(logits: &'a [f32], labels: &'a [f32]) -> Self {
        Self::columns(logits, labels, 1)
    }

    /// Rows of a regression of one value: one prediction and one label; for several values, see [`columns`](Self::columns).
    pub fn values(predictions: &'a [f32], labels: &'a [f32]) -> Self {
        Self::columns(predictions, labels, 1)
    }

    /// Rows of `n_classes` logits and the number of their class.
    pub fn classes(outputs: &'a [f32], n_classes: usize, labels: &'a [f32]) -> Self {
        Self { outputs, n_outputs: n_classes, labels, n_labels: 1, weights: None }
    }

    /// Rows with as many labels as outputs: multi-label classification, or regression of several values.
    pub fn columns(outputs: &'a [f32], labels: &'a [f32], n_columns: usize) -> Self {
        Self { outputs, n_outputs: n_columns, labels, n_labels: n_columns, weights: None }
    }

    /// The same rows with weights.
    #[must_use]
    pub fn with_weights(self, weights: &'a [f32]) -> Self {
        Self { weights: Some(weights), ..self }
    }

    /// How many rows there are, by their labels; by their outputs if they have none.
    pub fn n_rows(&self) -> usize {
        match self.n_labels {
            0 => self.outputs.len() / self.n_outputs.max(1),
            n_labels => self.labels.len() / n_labels,
        }
    }
}
