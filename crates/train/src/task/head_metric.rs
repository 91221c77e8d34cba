use std::ops::Range;

use brisk_metrics::{Direction, Error, Metric, MetricValue, Scored};

use crate::standardisation::Standardisation;

/// A metric of one head, over its columns of the outputs and of the labels.
#[derive(Debug)]
pub(super) struct HeadMetric {
    name: String,
    metric: Box<dyn Metric>,
    outputs: Range<usize>,
    labels: Range<usize>,
    scale: Option<Standardisation>,
}

impl HeadMetric {
    /// `columns` are those of the outputs and of the labels.
    pub(super) fn new(head: &str, metric: Box<dyn Metric>, columns: [&Range<usize>; 2], scale: Option<&Standardisation>) -> Self {
        let (name, [outputs, labels]) = (format!("{head}_{}", metric.name()), columns.map(Clone::clone));
        Self { name, metric, outputs, labels, scale: scale.cloned() }
    }

    fn named(&self, error: Error) -> Error {
        Error::Custom { metric: self.name.clone(), cause: Box::new(error) }
    }
}

impl Metric for HeadMetric {
    fn name(&self) -> &str {
        &self.name
    }

    fn direction(&self) -> Direction {
        self.metric.direction()
    }

    fn reset(&mut self) {
        self.metric.reset();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let Self { outputs, labels, .. } = self;
        if outputs.end > rows.n_outputs || labels.end > rows.n_labels {
            let expected = format!("at least {} outputs and {} labels", outputs.end, labels.end);
            let (n_outputs, n_labels) = (rows.n_outputs, rows.n_labels);
            return Err(self.named(Error::Columns { metric: "head", n_outputs, n_labels, expected }));
        }
        let mut own_outputs = columns(rows.outputs, rows.n_outputs, outputs);
        let own_labels = columns(rows.labels, rows.n_labels, labels);
        restore(self.scale.as_ref(), &mut own_outputs);
        let own = Scored {
            outputs: &own_outputs,
            n_outputs: outputs.len(),
            labels: &own_labels,
            n_labels: labels.len(),
            weights: rows.weights,
        };
        self.metric.update(&own).map_err(|error| self.named(error))
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.metric.compute().map_err(|error| self.named(error))
    }

    fn is_number(&self) -> bool {
        self.metric.is_number()
    }
}

/// Some columns of `[n_rows, n_cols]`.
pub(super) fn columns(values: &[f32], n_cols: usize, range: &Range<usize>) -> Vec<f32> {
    values.chunks_exact(n_cols.max(1)).flat_map(|row| &row[range.clone()]).copied().collect()
}

/// Standardised outputs in the units of the labels.
pub(super) fn restore(scale: Option<&Standardisation>, outputs: &mut [f32]) {
    if let Some(scale) = scale {
        let columns = scale.mean().iter().zip(scale.inv_std()).cycle();
        outputs.iter_mut().zip(columns).for_each(|(output, (mean, inv_std))| *output = *output / inv_std + mean);
    }
}
