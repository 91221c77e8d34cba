//! Charts of a regression.

use brisk_metrics::{MeanAbsoluteError, Metric, Scored};

use crate::error::Error;
use crate::histogram::Histogram;
use crate::panel::Panel;
use crate::scatter_chart::ScatterChart;

/// Predictions over labels, and residuals, for each label of a row.
pub(crate) fn of(rows: &Scored<'_>) -> Result<Vec<Panel>, Error> {
    // The metric checks counts, columns and NaN for the charts as well.
    MeanAbsoluteError::new().measure(rows)?;
    let n = rows.n_labels;
    let panels = (0..n).flat_map(|column| {
        let of_column = |values: &[f32]| values.iter().skip(column).step_by(n).map(|&value| f64::from(value)).collect::<Vec<_>>();
        let (predictions, labels) = (of_column(rows.outputs), of_column(rows.labels));
        let which = if n == 1 { String::new() } else { format!(" of label {column}") };
        let points = labels.iter().zip(&predictions).map(|(&label, &prediction)| [label, prediction]);
        let scatter = ScatterChart::new(format!("Predictions{which}"), "label", "prediction", points);
        let residuals: Vec<f64> = labels.iter().zip(&predictions).map(|(label, prediction)| prediction - label).collect();
        let title = format!("Residuals{which}");
        [Panel::from(scatter), Histogram::new(title, "prediction - label", 40, [("residual", residuals)]).into()]
    });
    Ok(panels.collect())
}
