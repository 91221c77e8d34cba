#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod axis;
mod bar_chart;
mod class_panels;
mod closing_table;
mod encoded_image;
mod epoch_panels;
mod error;
mod event_file;
mod histogram;
mod history;
mod html;
mod image_grid;
mod kernel_panels;
mod line_chart;
mod matrix_chart;
mod metric_label;
mod metrics_log;
mod number;
mod page;
mod panel;
mod regression_panels;
mod report;
mod scatter_chart;
mod standalone;
mod step_log;
mod table;

pub use axis::AxisScale;
pub use bar_chart::BarChart;
pub use closing_table::closing_table;
// For `brisk-train` and the programs of this repository, which print the same numbers; other programs have their own formats.
#[doc(hidden)]
pub use closing_table::{mebibytes, rows_per_second, seconds, thousands};
pub use error::Error;
pub use event_file::EventWriter;
pub use histogram::Histogram;
pub use history::{EpochMetrics, RunFacts, RunHistory};
pub use image_grid::ImageGrid;
pub use kernel_panels::KernelTime;
pub use line_chart::{LineChart, Series};
pub use matrix_chart::MatrixChart;
pub use metrics_log::MetricsLog;
pub use panel::Panel;
pub use report::Report;
pub use scatter_chart::ScatterChart;
pub use step_log::{BatchWait, StepLog};
pub use table::ReportTable;
