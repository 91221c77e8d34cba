//! Charts of the metrics of each epoch.

use super::{LineChart, Panel, Series};

/// Sets of rows, as names of metrics begin with them.
const SETS: [(&str, &str); 3] = [("train_", "training"), ("valid_", "validation"), ("test_", "test")];

/// A chart per metric. Columns that differ only in the set of rows share one.
pub(super) fn of(columns: &[(&str, &[f64])], best_epoch: Option<usize>) -> Vec<Panel> {
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
            let set = divided(column).0;
            let points = values.iter().enumerate().map(|(epoch, &value)| [(epoch + 1) as f64, value]);
            let series = Series::new(set.unwrap_or(column), points);
            chart = chart.series(if set == Some("training") { series.muted() } else { series });
        }
        Panel::Lines(best_epoch.into_iter().fold(chart, |chart, epoch| chart.mark(epoch as f64, "best")))
    };
    metrics.into_iter().map(chart).collect()
}

/// The set of rows and the metric: `validation` and `loss` of `valid_loss`.
fn divided(column: &str) -> (Option<&'static str>, &str) {
    let of = |(prefix, set): (&str, &'static str)| Some((Some(set), column.strip_prefix(prefix)?));
    SETS.into_iter().find_map(of).unwrap_or((None, column))
}

/// `Log loss` of `log_loss`.
fn title(metric: &str) -> String {
    let words = metric.replace('_', " ");
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
