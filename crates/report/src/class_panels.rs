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
        panels.push(LineChart { is_square: true, ..roc_chart(format!("ROC curve · AUC {area:.4}"), vec![roc]) }.into());
        let precision = value(&mut AveragePrecision::new(), rows)?;
        let curve = Series::new("precision", precision_recall_curve(rows)?);
        let title = format!("Precision and recall · AP {precision:.4}");
        panels.push(LineChart { is_square: true, ..of_shares(title, "recall", "precision", vec![curve]) }.into());
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
    let mut curves = Vec::new();
    for column in 0..n {
        let of_column = |values: &[f32]| values.iter().skip(column).step_by(n).copied().collect::<Vec<f32>>();
        let (outputs, labels) = (of_column(rows.outputs), of_column(rows.labels));
        if labels.contains(&0.0) && labels.contains(&1.0) {
            let name = classes.get(column).cloned().unwrap_or_else(|| format!("label {column}"));
            let one = Scored { weights: rows.weights, ..Scored::binary(&outputs, &labels) };
            curves.push(Series::new(name, roc_curve(&one)?));
        }
    }
    Ok(roc_chart("ROC curves".to_owned(), curves).into())
}

fn roc_chart(title: String, curves: Vec<Series>) -> LineChart {
    LineChart { has_diagonal: true, ..of_shares(title, "false positive rate", "true positive rate", curves) }
}

/// A chart of numbers from 0 to 1.
fn of_shares(title: String, x_label: &str, y_label: &str, series: Vec<Series>) -> LineChart {
    let range = Some([0.0, 1.0]);
    LineChart { y_label: y_label.to_owned(), x_range: range, y_range: range, ..LineChart::new(title, x_label, series) }
}

fn calibration(rows: &Scored<'_>) -> Result<Panel, Error> {
    let error = value(&mut ExpectedCalibrationError::new(), rows)?;
    let (title, observed) = (format!("Calibration · error {error:.4}"), Series::new("observed", calibration_curve(rows, 15)?));
    let chart = of_shares(title, "predicted probability", "observed frequency", vec![observed]);
    Ok(LineChart { has_diagonal: true, is_square: true, ..chart }.into())
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
