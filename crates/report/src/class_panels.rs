//! Charts of a classification.

use brisk_metrics::{
    Accuracy, AveragePrecision, ConfusionMatrix, ExpectedCalibrationError, Metric, MetricValue, RocAuc, Scored,
    calibration_curve, precision_recall_curve, roc_curve,
};

use crate::error::Error;
use crate::histogram::Histogram;
use crate::line_chart::{LineChart, Series};
use crate::matrix_chart::MatrixChart;
use crate::panel::Panel;

/// More classes than this are not drawn as a matrix.
const MAX_CLASSES: usize = 200;

/// The charts; two classes are told apart by this probability of the second one.
pub(crate) fn of(rows: &Scored<'_>, classes: &[String], threshold: f32) -> Result<Vec<Panel>, Error> {
    if !(0.0..=1.0).contains(&threshold) {
        let (found, expected) = (f64::from(threshold), "a probability from 0 to 1".to_owned());
        return Err(brisk_metrics::Error::Setting { metric: "classification", setting: "threshold", found, expected }.into());
    }
    // The metric checks counts, columns, labels and NaN for the charts as well.
    Accuracy::new().measure(rows)?;
    match (rows.n_outputs, rows.n_labels) {
        (1, _) => binary(rows, classes, threshold),
        (_, 1) => multi_class(rows, classes),
        _ => Ok(vec![multi_label(rows, classes)?]),
    }
}

fn binary(rows: &Scored<'_>, classes: &[String], threshold: f32) -> Result<Vec<Panel>, Error> {
    let mut panels = Vec::new();
    // Rows of one class have no curves; their other charts are drawn.
    if rows.labels.contains(&0.0) && rows.labels.contains(&1.0) {
        let area = value(&mut RocAuc::new(), rows)?;
        let roc = Series::new("true positive rate", roc_curve(rows)?);
        panels.push(roc_chart(format!("ROC curve · AUC {area:.4}")).series(roc).square().into());
        let precision = value(&mut AveragePrecision::new(), rows)?;
        let curve = Series::new("precision", precision_recall_curve(rows)?);
        let chart = of_shares(format!("Precision and recall · AP {precision:.4}"), "recall", "precision");
        panels.push(chart.series(curve).square().into());
    }
    panels.push(calibration(rows)?);
    // Positive where the probability is above the threshold.
    let shifted: Vec<f32> = rows.outputs.iter().map(|logit| logit - (threshold / (1.0 - threshold)).ln()).collect();
    panels.push(confusion(&Scored { outputs: &shifted, ..*rows }, classes)?);
    let of_class = |class: f32| {
        let scores = rows.outputs.iter().zip(rows.labels).filter(move |(_, label)| **label == class);
        scores.map(|(&score, _)| f64::from(score)).collect::<Vec<f64>>()
    };
    let name = |class: usize| classes.get(class).cloned().unwrap_or_else(|| format!("label {class}"));
    let groups = [(name(0), of_class(0.0)), (name(1), of_class(1.0))];
    panels.push(Histogram::new("Scores by label", "logit", 40, groups).into());
    Ok(panels)
}

fn multi_class(rows: &Scored<'_>, classes: &[String]) -> Result<Vec<Panel>, Error> {
    let mut panels = vec![];
    if rows.n_outputs <= MAX_CLASSES {
        panels.push(confusion(rows, classes)?);
    }
    panels.push(calibration(rows)?);
    Ok(panels)
}

/// A ROC curve for each label that has both values.
fn multi_label(rows: &Scored<'_>, classes: &[String]) -> Result<Panel, Error> {
    let n = rows.n_labels;
    let mut chart = roc_chart("ROC curves".to_owned());
    for column in 0..n {
        let of_column = |values: &[f32]| values.iter().skip(column).step_by(n).copied().collect::<Vec<f32>>();
        let (outputs, labels) = (of_column(rows.outputs), of_column(rows.labels));
        if labels.contains(&0.0) && labels.contains(&1.0) {
            let name = classes.get(column).cloned().unwrap_or_else(|| format!("label {column}"));
            let one = Scored { weights: rows.weights, ..Scored::binary(&outputs, &labels) };
            chart = chart.series(Series::new(name, roc_curve(&one)?));
        }
    }
    Ok(chart.into())
}

fn roc_chart(title: String) -> LineChart {
    of_shares(title, "false positive rate", "true positive rate").diagonal()
}

/// A chart of numbers from 0 to 1.
fn of_shares(title: String, x_label: &str, y_label: &str) -> LineChart {
    LineChart::new(title).x_label(x_label).y_label(y_label).x_range([0.0, 1.0]).y_range([0.0, 1.0])
}

fn calibration(rows: &Scored<'_>) -> Result<Panel, Error> {
    let error = value(&mut ExpectedCalibrationError::new(), rows)?;
    let points = calibration_curve(rows, 15)?;
    let chart = of_shares(format!("Calibration · error {error:.4}"), "predicted probability", "observed frequency");
    Ok(chart.series(Series::new("observed", points)).diagonal().square().into())
}

fn confusion(rows: &Scored<'_>, classes: &[String]) -> Result<Panel, Error> {
    match ConfusionMatrix::new().measure(rows)? {
        MetricValue::Matrix { values, .. } => Ok(MatrixChart::new("Confusion matrix", classes, values).into()),
        other => unreachable!("a confusion matrix, not {other:?}"),
    }
}

fn value(metric: &mut dyn Metric, rows: &Scored<'_>) -> Result<f64, Error> {
    Ok(metric.measure(rows)?.number().unwrap_or(f64::NAN))
}
