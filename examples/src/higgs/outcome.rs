use std::path::PathBuf;

use brisk_nn::ScalerReport;
use brisk_nn::tensor::program::DeviceInfo;
use brisk_report::{mebibytes, rows_per_second, seconds, thousands};
use brisk_train::FitReport;
use serde_json::{Value, json};

use super::Options;

/// The result of a training run.
#[derive(Debug)]
pub struct Outcome {
    /// The device that it ran on.
    pub device: DeviceInfo,
    /// How the device implements the precision.
    pub resolved: String,
    /// Rows to train on, including those held out for validation.
    pub n_train_rows: usize,
    /// Rows to test on.
    pub n_test_rows: usize,
    /// Trained parameters.
    pub n_parameters: usize,
    /// Rows gathered per second, without training.
    pub loader_rows_per_s: f64,
    /// The result of the training.
    pub report: FitReport,
    /// The area under the ROC curve for the test rows.
    pub test_auc: f64,
    /// Peak memory of the run on the device, as planned.
    pub planned_peak_bytes: usize,
    /// Memory held on the device at the end.
    pub allocated_bytes: usize,
    /// Seconds since the program started.
    pub seconds: f64,
    /// The run's folder, if it has one.
    pub folder: Option<PathBuf>,
}

impl Outcome {
    /// The results for `--json`.
    pub fn json(&self, options: &Options) -> Value {
        let Self { device, report, .. } = self;
        json!({
            "device": device.to_string(), "executor": device.kind.executor(), "seed": options.seed, "rows": self.n_train_rows,
            "epochs": report.n_epochs, "best_epoch": report.best_epoch, "seconds": self.seconds, "train_seconds": report.train_seconds,
            "loader_rows_per_s": self.loader_rows_per_s, "train_rows_per_s": report.train_rows_per_s,
            "planned_peak_bytes": self.planned_peak_bytes, "allocated_bytes": self.allocated_bytes,
            "precision": options.precision.to_string(), "resolved": self.resolved,
            "loss_scale": report.scaler.map(|scaler| scaler.scale), "skipped_steps": report.scaler.map(|scaler| scaler.n_skipped),
            "simulated": options.is_simulated(), "parameters": self.n_parameters, "valid_auc": report.best_value,
            "test_auc": self.test_auc, "ended": report.ended.to_string(),
            "run_folder": self.folder.as_ref().map(|folder| folder.to_string_lossy()),
        })
    }

    /// The lines of the closing table.
    pub fn lines(&self, options: &Options) -> Vec<(&'static str, String)> {
        let Self { device, resolved, report, .. } = self;
        let scaled = report.scaler.map_or(String::new(), |ScalerReport { scale, n_skipped, .. }| {
            format!("; final loss scale {scale}, {} steps skipped", thousands(n_skipped.into()))
        });
        let data = if options.is_simulated() { "simulated collisions, not measured ones" } else { "from the files given" };
        let [n_train_rows, n_test_rows] = [self.n_train_rows, self.n_test_rows].map(|n_rows| thousands(n_rows as u64));
        let [planned, held] = [self.planned_peak_bytes, self.allocated_bytes].map(|n_bytes| mebibytes(n_bytes as u64));
        let mut lines = vec![
            ("device", device.to_string()),
            ("data", data.to_owned()),
            ("rows", format!("{n_train_rows} to train, {n_test_rows} to test")),
            ("epochs", format!("{}, the best was {}", report.n_epochs, report.best_epoch)),
            ("ended", report.ended.to_string()),
            ("precision", format!("{}, {resolved}{scaled}", options.precision)),
            ("loader rows/s", rows_per_second(self.loader_rows_per_s)),
            ("training rows/s", rows_per_second(report.train_rows_per_s)),
            ("peak memory", format!("{planned} planned, {held} held")),
            ("validation AUC", format!("{:.4}", report.best_value)),
            ("test AUC", format!("{:.4}", self.test_auc)),
            ("time", seconds(self.seconds)),
        ];
        lines.extend(self.folder.as_ref().map(|folder| ("run folder", folder.display().to_string())));
        lines
    }
}
