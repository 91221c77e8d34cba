use crate::axis::open_svg;
use crate::html::{escaped, shortened, text, turned_text};
use crate::number::number;

/// A confusion matrix: rows are the actual classes, columns the predicted ones, and colours the shares of a row.
#[derive(Clone, Debug)]
pub struct MatrixChart {
    pub(crate) title: String,
    names: Vec<String>,
    values: Vec<f64>,
}

impl MatrixChart {
    /// A chart of `values`, `[n, n]`, row-major. Classes without an entry in `names` are labelled by their numbers.
    ///
    /// # Panics
    /// If `values` is not square.
    pub fn new(title: impl Into<String>, names: &[String], values: Vec<f64>) -> Self {
        let n = values.len().isqrt();
        assert_eq!(n * n, values.len(), "a confusion matrix is square");
        let names = (0..n).map(|class| names.get(class).cloned().unwrap_or_else(|| class.to_string())).collect();
        Self { title: title.into(), names, values }
    }

    /// Whether there are too many classes for half of the page's width.
    pub(crate) fn is_wide(&self) -> bool {
        self.names.len() > 12
    }

    pub(crate) fn svg(&self, width: f64) -> String {
        let n = self.names.len().max(1);
        let (left, top, right) = (120.0, 40.0, 16.0);
        let cell = ((width - left - right) / n as f64).min(if n <= 4 { 104.0 } else { 64.0 });
        // With few classes, cells are wider than high, so that the chart is no higher than others.
        let row = if n <= 4 { cell * 0.72 } else { cell.min(720.0 / n as f64) };
        let left = left + (width - left - right - cell * n as f64) / 2.0;
        let height = top + row * n as f64 + 12.0;
        let mut svg = open_svg(&self.title, width, height);
        let middle = left + cell * n as f64 / 2.0;
        svg += &text("label", [middle, 12.0], "middle", "predicted");
        svg += &turned_text([left - 104.0, top + row * n as f64 / 2.0], "actual");
        let has_names = row >= 12.0;
        let n_chars = ((cell / 7.5) as usize).max(1);
        for (class, name) in self.names.iter().enumerate().filter(|_| has_names) {
            let (x, y) = (left + cell * (class as f64 + 0.5), top + row * (class as f64 + 0.5) + 4.0);
            svg += &text("tick", [x, top - 8.0], "middle", &shortened(name, n_chars));
            svg += &text("tick", [left - 8.0, y], "end", &shortened(name, 13));
        }
        for (actual, counts) in self.values.chunks(n).enumerate() {
            let total: f64 = counts.iter().sum();
            for (predicted, &count) in counts.iter().enumerate() {
                let share = if total > 0.0 { count / total } else { 0.0 };
                let (x, y) = (left + cell * predicted as f64, top + row * actual as f64);
                let colour = if actual == predicted { "fill-c0" } else { "fill-c2" };
                svg += &format!(
                    "<g><title>{} predicted as {}: {}, {:.1} %</title><rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{cell:.1}\" height=\"{row:.1}\"/><rect class=\"{colour}\" fill-opacity=\"{:.3}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"/>",
                    escaped(&self.names[actual]),
                    escaped(&self.names[predicted]),
                    number(count),
                    100.0 * share,
                    if count > 0.0 { 0.08 + 0.92 * share } else { 0.0 },
                    x + 1.0,
                    y + 1.0,
                    (cell - 2.0).max(0.5),
                    (row - 2.0).max(0.5),
                );
                let shown = number(count);
                if cell >= 8.0 * shown.chars().count() as f64 + 4.0 && row >= 18.0 && count > 0.0 {
                    let class = if share > 0.5 { "count on" } else { "count" };
                    svg += &text(class, [x + cell / 2.0, y + row / 2.0 + 4.0], "middle", &shown);
                }
                svg += "</g>";
            }
        }
        svg + "</svg>"
    }
}
