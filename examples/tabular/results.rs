//! The results of a run, as text and as JSON.

use brisk_examples::tabular::number;
use brisk_nn::tensor::program::Device;
use brisk_report::{closing_table, mebibytes, rows_per_second, seconds, thousands};
use brisk_table::printable;
use brisk_tabular::{Calibration, Fitted, FoldScore, IntervalScore, NumberCalibration, Segment, SegmentErrors, TargetScale};
use brisk_train::Scores;
use serde_json::{Map, Value, json};

use crate::options::Options;
use crate::scale::Chosen;

/// What training takes.
pub(crate) struct Planned {
    pub(crate) peak_bytes: usize,
    pub(crate) loader_rows_per_s: f64,
}

/// The results of a run.
pub(crate) struct Results<'a> {
    pub(crate) options: &'a Options,
    pub(crate) device: &'a Device,
    pub(crate) fitted: &'a Fitted,
    pub(crate) planned: Planned,
    /// The scale of a target that is a number.
    pub(crate) chosen: Option<Chosen>,
    /// The rows of the table.
    pub(crate) n_rows: usize,
    pub(crate) warnings: Vec<String>,
    /// Of the test rows.
    pub(crate) scores: Scores,
    /// Those of a linear model of the same columns, unless the run was stopped.
    pub(crate) linear: Option<Scores>,
    /// Those of a constant prediction.
    pub(crate) trivial: Scores,
    /// How much lower the log loss, or the squared error, is than that of the constant, and the standard error.
    pub(crate) gain: [f64; 2],
    /// The score at the threshold, and at 0.5.
    pub(crate) at_threshold: Option<[f64; 2]>,
    /// What intervals are worth on the test rows.
    pub(crate) held: Option<IntervalScore>,
    /// How well parts of the test rows are predicted.
    pub(crate) segments: Option<SegmentErrors>,
    pub(crate) elapsed: f64,
}

/// How many columns the table of importance shows, and how many segments the page.
pub(crate) const MAX_SHOWN: usize = 10;

impl Results<'_> {
    /// The results as one JSON object.
    pub(crate) fn json(&self) -> Value {
        let Self { options, device, fitted, planned, .. } = self;
        let (report, model) = (fitted.report(), &fitted.model);
        let mut results = json!({
            "device": device.info().to_string(), "executor": device.info().kind.executor(), "seed": options.seed,
            "rows": self.n_rows, "epochs": report.n_epochs, "best_epoch": report.best_epoch, "seconds": self.elapsed,
            "train_seconds": fitted.reports.iter().map(|report| report.train_seconds).sum::<f64>(), "weights": fitted.weights,
            "loader_rows_per_s": planned.loader_rows_per_s, "train_rows_per_s": report.train_rows_per_s,
            "planned_peak_bytes": planned.peak_bytes, "precision": options.precision_on(device).to_string(), "simulated": false,
            "parameters": model.model().params().n_trained(), "target": model.target().name(),
            "task": model.target().kind().to_string(), "ended": report.ended.to_string(),
            "model_folder": options.at_last(&options.out).to_string_lossy(), "warnings": self.warnings, "importance": model.importance(),
        });
        let rare = model.preprocessing().rare_values();
        results["rare_values"] = rare.map(|(column, n_rare)| (column.to_owned(), n_rare.into())).collect::<Map<_, _>>().into();
        if let Some((scale, reason)) = self.chosen {
            results["target_scale"] = json!(scale);
            results["target_scale_reason"] = json!(reason.map(|reason| reason.to_string()));
        }
        for (prefix, scores) in [("test", Some(&self.scores)), ("linear", self.linear.as_ref()), ("trivial", Some(&self.trivial))]
        {
            let Some(scores) = scores else { continue };
            scores.values.iter().for_each(|(name, value)| results[format!("{prefix}_{name}")] = Value::from(*value));
        }
        results["test_gain"] = json!(self.gain);
        match model.calibration() {
            Some(Calibration::Classes(calibration)) => {
                results["temperature"] = json!(calibration.temperature);
                results["constant_share"] = json!(calibration.constant_share);
            }
            Some(Calibration::Number(calibration)) => {
                results["valid_gain"] = json!([calibration.gain, calibration.gain_error]);
                results["calibration_slope"] = json!(calibration.slope);
                results["calibration_intercept"] = json!(self.intercept(*calibration));
            }
            None => {}
        }
        if !fitted.fold_scores.is_empty() {
            let fold = |FoldScore { name, values, mean, deviation }| {
                (name, json!({ "values": values, "mean": mean, "deviation": deviation }))
            };
            results["folds"] = fitted.scores_by_name().into_iter().map(fold).collect::<Map<_, _>>().into();
        }
        if let (Some(at), Some([chosen, half])) = (model.threshold(), self.at_threshold) {
            results["threshold"] = json!({
                "metric": at.metric, "value": at.value, "test_score": chosen, "test_score_at_half": half,
            });
        }
        if let Some(segments) = &self.segments {
            results["worse_segments"] = json!(segments.worse().collect::<Vec<_>>());
        }
        if let (Some(intervals), Some(IntervalScore { coverage, mean_width, .. })) = (model.intervals(), self.held) {
            results["intervals"] = json!(intervals);
            results["test_interval_coverage"] = json!(coverage);
            results["test_interval_width"] = json!(mean_width);
        }
        results
    }

    /// The test scores next to those of a linear model and of a constant prediction.
    pub(crate) fn scores(&self) -> String {
        let constant = self.constant();
        let mut table = format!("{:<12}{:>14}{:>16}   {constant}\n", "test", self.fitted.model.network().kind(), "linear model");
        for (name, [own, linear, constant]) in self.compared() {
            table += &format!("{name:<12}{own:>14}{linear:>16}   {constant}\n");
        }
        table
    }

    /// Whether the linear model predicts the test rows better, by the loss that the networks were trained on.
    pub(crate) fn linear_is_better(&self) -> bool {
        let name = if self.fitted.model.target().classes().is_empty() { "rmse" } else { "log_loss" };
        let of_linear = self.linear.as_ref().and_then(|scores| scores.get(name));
        of_linear.zip(self.scores.get(name)).is_some_and(|(linear, own)| linear < own)
    }

    /// What the constant prediction is.
    pub(crate) fn constant(&self) -> &'static str {
        if self.fitted.model.target().classes().is_empty() { "mean of the training rows" } else { "shares of the classes" }
    }

    /// The name of each score, and its values for the model, the linear model and the constant prediction.
    pub(crate) fn compared(&self) -> impl Iterator<Item = (&str, [String; 3])> {
        self.scores.values.iter().zip(&self.trivial.values).map(|((name, own), (_, constant))| {
            let linear = self.linear.as_ref().and_then(|scores| scores.get(name));
            (name.as_str(), [number(*own), linear.map_or_else(|| "-".to_owned(), number), number(*constant)])
        })
    }

    /// The scores of the folds, as text.
    pub(crate) fn folds(&self) -> Option<String> {
        let folds = self.fitted.scores_by_name();
        let n_folds = self.fitted.fold_scores.len();
        if n_folds == 1 {
            // A run that was stopped has one fold, which does not show how different they are.
            let line = |score: &FoldScore| format!("{:<12}{:>14}\n", score.name, number(score.mean));
            return Some(format!("out of 1 fold\n{}", folds.iter().map(line).collect::<String>()));
        }
        let line = |FoldScore { name, mean, deviation, .. }: &FoldScore| {
            format!("{name:<12}{:>14} \u{b1} {}\n", number(*mean), number(*deviation))
        };
        (!folds.is_empty()).then(|| format!("out of {n_folds} folds\n{}", folds.iter().map(line).collect::<String>()))
    }

    /// The most important columns.
    pub(crate) fn importance(&self) -> Option<String> {
        let importance = self.fitted.model.importance()?;
        let shown = &importance.columns[..importance.columns.len().min(MAX_SHOWN)];
        let width = shown.iter().map(|column| printable(&column.column).to_string().chars().count()).max().unwrap_or(0);
        let mut table = format!("{:<width$}  {} if permuted\n", "column", importance.score);
        for column in shown {
            let [mean, deviation] = [column.mean, column.deviation].map(number);
            let sign = if column.mean > 0.0 { "+" } else { "" };
            // One permutation has no deviation.
            let deviation = if importance.n_repeats > 1 { format!(" \u{b1} {deviation}") } else { String::new() };
            table += &format!("{:<width$}  {sign}{mean}{deviation}\n", printable(&column.column).to_string());
        }
        let n_others = importance.columns.len() - shown.len();
        if n_others > 0 {
            table += &format!("and {n_others} more\n");
        }
        Some(table)
    }

    /// What is added to numbers in the units of the target.
    fn intercept(&self, NumberCalibration { slope, intercept, .. }: NumberCalibration) -> f64 {
        intercept + (1.0 - slope) * self.fitted.model.target().offset()
    }

    /// The parts of the test rows that are predicted worse than all others, worst first, and how badly.
    pub(crate) fn worse_segments(&self) -> Vec<(String, String)> {
        let Some(segments) = &self.segments else { return Vec::new() };
        let SegmentErrors { score: name, all, .. } = segments;
        let described = |segment: &Segment| {
            let score = &segment.score;
            let [own, of_all] = [score, all].map(|score| number(score.value));
            let mut text = format!("{} {own}, for all test rows {of_all}", name.replace('_', " "));
            if let (Some(own), Some(of_all)) = (score.error_rate, all.error_rate) {
                text += &format!("; {:.1} % are predicted wrong, {:.1} % of all test rows", 100.0 * own, 100.0 * of_all);
            }
            if let Some(bias) = score.bias {
                text += &format!("; on average {} too {}", number(bias.abs()), if bias < 0.0 { "low" } else { "high" });
            }
            if score.value >= score.constant {
                text += "; one prediction for all of them would not be worse";
            }
            (segment.to_string(), format!("{text}; {} rows", thousands(score.n_rows as u64)))
        };
        segments.worse().map(described).collect()
    }

    /// The results of the training, as text.
    pub(crate) fn lines(&self) -> String {
        closing_table(&self.facts())
    }

    /// The results of the training.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let Self { options, device, fitted, planned, .. } = self;
        let (report, model) = (fitted.report(), &fitted.model);
        let precision = options.precision_on(device);
        let units = match self.chosen {
            None => "",
            Some((TargetScale::Standard, _)) => " of the standardised target",
            Some((TargetScale::Log, _)) => " of the standardised logarithms of the target",
        };
        let mut lines = vec![
            ("epochs", format!("{}, {}", report.n_epochs, report.ended)),
            ("best epoch", format!("{}, {} {}{units}", report.best_epoch, report.watched, number(report.best_value))),
            ("training", format!("{} rows/s", rows_per_second(report.train_rows_per_s))),
            ("precision", format!("{precision}, {}", precision.resolved(device))),
            ("memory", mebibytes(planned.peak_bytes as u64)),
            ("time", seconds(self.elapsed)),
        ];
        if fitted.reports.len() > 1 {
            let n_kept = fitted.weights.iter().filter(|&&weight| weight > 0.0).count();
            let kept = format!("{} trained, {n_kept} kept; the one with the greatest weight:", fitted.reports.len());
            lines.insert(0, ("networks", kept));
        }
        if let Some((scale, reason)) = self.chosen {
            let reason = reason.map(|reason| format!(": {reason}"));
            lines.push(("target scale", format!("{scale}{}", reason.unwrap_or_default())));
        }
        match model.calibration() {
            Some(Calibration::Classes(calibration)) => lines.push(("temperature", format!("{:.3}", calibration.temperature))),
            Some(Calibration::Number(calibration)) if !calibration.is_identity() => {
                let line =
                    format!("{:.3} times the network's number, plus {}", calibration.slope, number(self.intercept(*calibration)));
                lines.push(("calibration", line));
            }
            _ => {}
        }
        if let (Some(at), Some([chosen, half])) = (model.threshold(), self.at_threshold) {
            let class = model.target().classes().last().map_or("", String::as_str);
            let scores = format!("{} {} on the test rows, {} at 0.5", at.metric, number(chosen), number(half));
            lines.push(("threshold", format!("{} for {}: {scores}", number(at.value.into()), printable(class))));
        }
        if let (Some(intervals), Some(IntervalScore { coverage, mean_width, .. })) = (model.intervals(), self.held) {
            let [found, asked] = [coverage, intervals.coverage].map(|share| 100.0 * share);
            let width = number(mean_width);
            lines.push((
                "intervals",
                format!("for {asked} % of the numbers; {found:.1} % of those of the test rows, {width} wide on average"),
            ));
        }
        if let Some((segment, score)) = self.worse_segments().first() {
            lines.push(("worst rows", format!("{segment}: {score}")));
        }
        lines.push(("model", printable(&options.at_last(&options.out)).to_string()));
        lines.extend(options.report_path().map(|path| ("report", printable(&options.at_last(&path)).to_string())));
        lines
    }
}
