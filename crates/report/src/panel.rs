use crate::bar_chart::BarChart;
use crate::histogram::Histogram;
use crate::image_grid::ImageGrid;
use crate::line_chart::LineChart;
use crate::matrix_chart::MatrixChart;
use crate::scatter_chart::ScatterChart;
use crate::table::ReportTable;

/// A chart, a table or images of a [`Report`](crate::Report).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Panel {
    /// Lines over a common axis.
    Lines(LineChart),
    /// Horizontal bars.
    Bars(BarChart),
    /// Counts of values.
    Histogram(Histogram),
    /// A matrix of classes.
    Matrix(MatrixChart),
    /// Points.
    Scatter(ScatterChart),
    /// Names and values.
    Table(ReportTable),
    /// Images with captions.
    Images(ImageGrid),
}

impl Panel {
    /// Names and classes of colours for a legend.
    pub(crate) fn keys(&self) -> Vec<(&str, String)> {
        match self {
            Self::Lines(chart) => chart.keys(),
            Self::Histogram(chart) => chart.keys(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Self::Lines(chart) => &chart.title,
            Self::Bars(chart) => &chart.title,
            Self::Histogram(chart) => &chart.title,
            Self::Matrix(chart) => &chart.title,
            Self::Scatter(chart) => &chart.title,
            Self::Table(table) => &table.title,
            Self::Images(images) => &images.title,
        }
    }
}

macro_rules! panel_from {
    ($($variant:ident $type:ty),*) => {
        $(impl From<$type> for Panel {
            fn from(panel: $type) -> Self {
                Self::$variant(panel)
            }
        })*
    };
}
panel_from!(Lines LineChart, Bars BarChart, Histogram Histogram, Matrix MatrixChart, Scatter ScatterChart, Table ReportTable, Images ImageGrid);
