//! The results of a run as an HTML page.

use anyhow::Result;
use brisk_examples::tabular::number;
use brisk_loader::{RowSource, Rows};
use brisk_report::{BarChart, LineChart, Report, ReportTable, Series, seconds, thousands};
use brisk_tabular::{Detected, Target};
use brisk_train::metrics::Scored;
use brisk_train::{FeedElement, FitReport};

use crate::columns;
use crate::results::{MAX_SHOWN, Results};

/// The page, with what the model makes of the test rows of a table; `labelled` are the same rows, preprocessed.
pub(crate) fn of<S>(results: &Results<'_>, detected: &Detected, test: &S, labelled: &Rows) -> Result<Report>
where
    S: RowSource<Feature: FeedElement>,
{
    let model = &results.fitted.model;
    let target = model.target();
    let mut report = Report::new(target.name());
    let [n_rows, n_test] = [results.n_rows, labelled.n_rows()].map(|n| thousands(n as u64));
    report.subtitle(format!("{}, {n_rows} rows, {n_test} of them to test, {}", model.network().kind(), results.device.info()));
    for (name, value) in &results.scores.values {
        report.figure(format!("test {}", name.replace('_', " ")), number(*value));
    }

    let compared = results.compared().map(|(name, [own, linear, constant])| {
        (name.replace('_', " "), format!("{own}; linear model {linear}; {} {constant}", results.constant()))
    });
    report.panel(ReportTable::new("Compared with simpler predictions", compared.collect::<Vec<_>>()));

    report.section("Test rows that are predicted worse than the others");
    let mut worse = results.worse_segments();
    let n_more = worse.len().saturating_sub(MAX_SHOWN);
    worse.truncate(MAX_SHOWN);
    if n_more > 0 {
        worse.push(("and".to_owned(), format!("{n_more} more")));
    }
    if worse.is_empty() {
        worse.push(("none".to_owned(), "differences between parts of the rows are within noise".to_owned()));
    }
    report.panel(ReportTable::new("By the values of a column, worst first", worse));

    report.section("Test rows");
    let predictions = model.predictor(results.device)?.predict(&detected.columns, test)?;
    let mut labels = labelled.labels().to_vec();
    target.restore(&mut labels);
    // Logits, up to a constant of each row.
    let logits: Vec<f32> = predictions.probabilities().iter().map(|p| p.max(f32::MIN_POSITIVE).ln()).collect();
    let n_classes = target.classes().len();
    let outputs: Vec<f32> = match target {
        Target::Number { offset, .. } => predictions.numbers().iter().map(|number| (number - offset) as f32).collect(),
        Target::Classes { .. } if n_classes == 2 => logits.chunks_exact(2).map(|row| row[1] - row[0]).collect(),
        Target::Classes { .. } => logits,
    };
    let scored = match n_classes {
        0 => Scored::values(&outputs, &labels),
        2 => Scored::binary(&outputs, &labels),
        _ => Scored::classes(&outputs, n_classes, &labels),
    };
    let scored = labelled.weights().map_or(scored, |weights| scored.with_weights(weights));
    if n_classes == 0 {
        report.regression(&scored)?;
    } else {
        report.classification_above(model.threshold().map_or(0.5, |at| at.value), &scored, target.classes())?;
    }

    report.section("Columns");
    if let Some(importance) = model.importance() {
        let bars = importance.columns.iter().map(|column| (column.column.as_str(), column.mean.max(0.0)));
        let title = format!("How much worse the {} becomes if a column is permuted", importance.score.replace('_', " "));
        report.panel(BarChart::new(title, "", bars));
    }
    report.panels(columns::table(detected, model).map(Into::into));
    let reports = || results.fitted.reports.iter().enumerate();
    let watched = &results.fitted.report().watched;
    let curve = |(i, network): (usize, &FitReport)| {
        let values = network.watched_values().into_iter().enumerate().map(|(i, value)| [(i + 1) as f64, value]);
        Series::new(format!("network {}", i + 1), values)
    };
    let curves = LineChart::new(watched.replace('_', " "), "epoch", reports().map(curve));
    let cost = |((i, network), weight): ((usize, &FitReport), &f32)| {
        let best = format!("best {watched} {} in epoch {}", number(network.best_value), network.best_epoch);
        let weight = if *weight > 0.0 { format!("weight {}", number(f64::from(*weight))) } else { "not kept".to_owned() };
        (format!("network {}", i + 1), format!("{}, {best}, {weight}", seconds(network.train_seconds)))
    };
    let costs: Vec<_> = reports().zip(&results.fitted.weights).map(cost).collect();
    report.section("Networks").panel(curves).panel(ReportTable::new("What each took, and what it is worth", costs));

    report.section("Run").table("Training", &results.facts());
    let warnings = results.warnings.iter().map(|warning| (String::new(), warning.clone()));
    if !results.warnings.is_empty() {
        report.panel(ReportTable::new("Warnings", warnings));
    }
    Ok(report)
}
