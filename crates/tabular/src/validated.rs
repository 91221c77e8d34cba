/// What a network says of validation rows: its outputs, with the labels and weights of the rows.
pub(super) struct Validated {
    pub(super) outputs: Vec<f32>,
    pub(super) labels: Vec<f32>,
    pub(super) weights: Option<Vec<f32>>,
}
