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
        let mut chart = LineChart::new(title(metric)).x_label("epoch");
        for (column, values) in columns.iter().filter(|(column, _)| divided(column).1 == metric) {
            let set = divided(column).0.map(|set| set.label);
            let points = epochs.iter().zip(values.iter()).map(|(&epoch, &value)| [epoch, value]);
            let series = Series::new(set.unwrap_or(column), points);
            chart = chart.series(if set == Some("training") { series.muted() } else { series });
        }
        Panel::Lines(best_epoch.into_iter().fold(chart, |chart, epoch| chart.mark(epoch, "best")))
    };
    metrics.into_iter().map(chart).collect()
}
