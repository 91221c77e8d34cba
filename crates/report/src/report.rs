use std::io::Write;
use std::path::Path;

use brisk_atomic_file::write_atomically;
use brisk_metrics::Scored;

use crate::error::Error;
use crate::kernel_panels::{self, KernelTime};
use crate::line_chart::{LineChart, Series};
use crate::page::{Page, Section};
use crate::panel::Panel;
use crate::table::ReportTable;
use crate::{class_panels, epoch_panels, regression_panels};

/// A training run as one HTML page: results in large figures, then sections of charts and tables.
///
/// The page is self-contained: charts are inline SVG, and it loads nothing, runs no script, follows the reader's preference for
/// light or dark, and prints. Values appear when the pointer is over a chart.
///
/// # Examples
/// ```
/// use brisk_metrics::Scored;
/// use brisk_report::Report;
///
/// let mut report = Report::new("letters");
/// report.subtitle("784-256-26, f16, Adam").figure("Validation accuracy", "0.914").figure("Time", "12.4 s");
/// report.section("Training").epochs(&[("train_loss", &[0.9, 0.5, 0.4]), ("valid_loss", &[0.8, 0.6, 0.5])]);
/// report.section("Validation rows").classification(&Scored::binary(&[-1.0, 0.5, 2.0, -0.5], &[0.0, 0.0, 1.0, 1.0]), &[])?;
/// report.section("Configuration").table("Settings", &[("batch_rows", "256"), ("seed", "7")]);
/// assert!(report.to_html().contains("ROC curve"));
/// # Ok::<(), brisk_report::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Report {
    page: Page,
    best_epoch: Option<f64>,
}

impl Report {
    /// A page without sections.
    pub fn new(title: impl Into<String>) -> Self {
        Self { page: Page { title: title.into(), ..Page::default() }, best_epoch: None }
    }

    /// Sets the line below the title.
    pub fn subtitle(&mut self, subtitle: impl Into<String>) -> &mut Self {
        self.page.subtitle = subtitle.into();
        self
    }

    /// Adds a result in large figures.
    pub fn figure(&mut self, label: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.page.figures.push((label.into(), value.into()));
        self
    }

    /// Begins a section, to which panels are added until the next begins. A section without panels is left out.
    pub fn section(&mut self, title: impl Into<String>) -> &mut Self {
        self.page.sections.push(Section { title: title.into(), panels: Vec::new() });
        self
    }

    /// Adds a chart, a table or images.
    pub fn panel(&mut self, panel: impl Into<Panel>) -> &mut Self {
        if self.page.sections.is_empty() {
            self.section("");
        }
        if let Some(section) = self.page.sections.last_mut() {
            section.panels.push(panel.into());
        }
        self
    }

    /// Adds charts, tables or images.
    pub fn panels(&mut self, panels: impl IntoIterator<Item = Panel>) -> &mut Self {
        panels.into_iter().fold(self, Self::panel)
    }

    /// Marks the epoch in the charts of [`epochs`](Self::epochs) that are added after this. The first epoch is 1.
    pub fn best_epoch(&mut self, epoch: usize) -> &mut Self {
        self.best_within(epoch as f64)
    }

    /// Marks a position within an epoch, such as 1.5 in the middle of the second, in the charts of [`epochs`](Self::epochs) that
    /// are added after this.
    pub fn best_within(&mut self, epochs: f64) -> &mut Self {
        self.best_epoch = Some(epochs);
        self
    }

    /// Adds a chart for each metric of the epochs, given as columns with one value per epoch. `train_loss` and `valid_loss` share
    /// a chart; NaN leaves a gap.
    pub fn epochs(&mut self, columns: &[(&str, &[f64])]) -> &mut Self {
        let n_epochs = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let epochs: Vec<f64> = (1..=n_epochs).map(|epoch| epoch as f64).collect();
        self.within_epochs(&epochs, columns)
    }

    /// Adds a chart for each metric, with values also from within epochs: `epochs` has the position of each, in increasing order,
    /// such as 1.5 in the middle of the second epoch.
    pub(crate) fn within_epochs(&mut self, epochs: &[f64], columns: &[(&str, &[f64])]) -> &mut Self {
        self.panels(epoch_panels::of(epochs, columns, self.best_epoch))
    }

    /// Adds a chart of a value per step, such as the learning rate or the scale of the loss.
    pub fn steps(&mut self, title: &str, first_step: usize, values: &[f64]) -> &mut Self {
        let points = values.iter().enumerate().map(|(i, &value)| [(first_step + i) as f64, value]);
        self.panel(LineChart::new(title, "step", [Series::new(title, points)]))
    }

    /// Adds charts of a model's outputs and their labels. Binary: ROC and precision-recall curves, calibration, confusion matrix
    /// and the distribution of scores. Multi-class: confusion matrix and calibration. Multi-label: a ROC curve per label.
    /// `classes` are names, and may be empty.
    ///
    /// # Errors
    /// [`Error::Metric`] for rows that are not those of a classification.
    pub fn classification(&mut self, rows: &Scored<'_>, classes: &[String]) -> Result<&mut Self, Error> {
        Ok(self.panels(class_panels::of(rows, classes, 0.5)?))
    }

    /// Adds the charts of [`classification`](Self::classification) for a model of two classes that predicts the second one where
    /// its probability is above this threshold, from 0 to 1, instead of 0.5. The confusion matrix counts these predictions.
    ///
    /// # Errors
    /// As [`classification`](Self::classification), and for another threshold.
    pub fn classification_above(&mut self, threshold: f32, rows: &Scored<'_>, classes: &[String]) -> Result<&mut Self, Error> {
        Ok(self.panels(class_panels::of(rows, classes, threshold)?))
    }

    /// Adds predictions over labels and the distribution of residuals, for each label of a row.
    ///
    /// # Errors
    /// [`Error::Metric`] for rows that are not those of a regression.
    pub fn regression(&mut self, rows: &Scored<'_>) -> Result<&mut Self, Error> {
        Ok(self.panels(regression_panels::of(rows)?))
    }

    /// Adds the time per batch by kernel, and a table of the slowest ones: the first of `kernels`.
    pub fn kernels(&mut self, kernels: &[KernelTime]) -> &mut Self {
        self.panels(kernel_panels::of(kernels))
    }

    /// Adds a table of names and values.
    pub fn table<N: ToString, V: ToString>(&mut self, title: &str, rows: &[(N, V)]) -> &mut Self {
        self.panel(ReportTable::new(title, rows.iter().map(|(name, value)| (name.to_string(), value.to_string()))))
    }

    /// The page.
    pub fn to_html(&self) -> String {
        self.page.render()
    }

    /// Writes the page to `path`, atomically: a reader sees the old page or the new one.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let html = self.to_html();
        Ok(write_atomically(path.as_ref(), |file| file.write_all(html.as_bytes()))?)
    }
}
