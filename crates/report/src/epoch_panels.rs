//! Charts of the metrics of each epoch.

use crate::line_chart::{LineChart, Series};
use crate::metric_label::{divided, title};
use crate::panel::Panel;

/// A chart per metric, with values at `epochs`. Columns that differ only in the set of rows share a chart.
pub(crate) fn of(epochs: &[f64], columns: &[(&str, &[f64])], best_epoch: Option<f64>) -> Vec<Panel> {
    let mut metrics: Vec<&str> = Vec::new();
    for (column, _) in columns {
        let metric = divided(column).1;
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let chart = |metric: &str| {
        let columns = columns.iter().filter(|(column, _)| divided(column).1 == metric);
        let series = columns.map(|(column, values)| {
            let set = divided(column).0.map(|set| set.label);
            let points = epochs.iter().zip(values.iter()).map(|(&epoch, &value)| [epoch, value]);
            Series { is_muted: set == Some("training"), ..Series::new(set.unwrap_or(column), points) }
        });
        let mark = best_epoch.map(|epoch| (epoch, "best".to_owned()));
        Panel::Lines(LineChart { mark, ..LineChart::new(title(metric), "epoch", series) })
    };
    metrics.into_iter().map(chart).collect()
}
