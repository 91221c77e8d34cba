use crate::axis::{Axis, AxisScale, Frame};
use crate::html::escaped;
use crate::number::number;

/// Counts of values in ranges of equal width, for one or several groups of values.
#[derive(Clone, Debug)]
pub struct Histogram {
    pub(crate) title: String,
    x_label: String,
    low: f64,
    width: f64,
    /// Names, and counts per bin.
    groups: Vec<(String, Vec<f64>)>,
}

impl Histogram {
    /// Counts the finite values of each group in `n_bins` ranges between the lowest and the highest value of all groups.
    pub fn new<N: Into<String>>(
        title: impl Into<String>,
        x_label: impl Into<String>,
        n_bins: usize,
        groups: impl IntoIterator<Item = (N, Vec<f64>)>,
    ) -> Self {
        let groups: Vec<(String, Vec<f64>)> = groups.into_iter().map(|(name, values)| (name.into(), values)).collect();
        let values = groups.iter().flat_map(|(_, values)| values).copied().filter(|value| value.is_finite());
        let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
        let n_bins = n_bins.max(1);
        let (low, high) = match (low, high) {
            (low, high) if low < high => (low, high),
            (low, high) if low == high => (low - 0.5, high + 0.5),
            _ => (0.0, 1.0),
        };
        let width = (high - low) / n_bins as f64;
        let count = |values: Vec<f64>| {
            let mut counts = vec![0.0; n_bins];
            for value in values.into_iter().filter(|value| value.is_finite()) {
                counts[(((value - low) / width) as usize).min(n_bins - 1)] += 1.0;
            }
            counts
        };
        let groups = groups.into_iter().map(|(name, values)| (name, count(values))).collect();
        Self { title: title.into(), x_label: x_label.into(), low, width, groups }
    }

    /// The names of the groups and the classes of their colours, for a legend: none for a single group.
    pub(crate) fn keys(&self) -> Vec<(&str, String)> {
        let keys = self.groups.iter().enumerate().map(|(index, (name, _))| (name.as_str(), format!("c{index}")));
        if self.groups.len() < 2 { Vec::new() } else { keys.collect() }
    }

    pub(crate) fn svg(&self, width: f64, height: f64) -> String {
        let n_bins = self.groups.first().map_or(1, |(_, counts)| counts.len());
        let most = self.groups.iter().flat_map(|(_, counts)| counts).copied().fold(1.0, f64::max);
        let high = self.low + self.width * n_bins as f64;
        let x = Axis::over(std::iter::empty(), Some([self.low, high]), AxisScale::Linear);
        let y = Axis::over(std::iter::empty(), Some([0.0, most * 1.05]), AxisScale::Linear);
        let frame = Frame::new(x, y, width, height);
        let mut svg = frame.open(&self.title, &self.x_label, "rows");
        let opacity = if self.groups.len() > 1 { 0.55 } else { 0.85 };
        for (index, (name, counts)) in self.groups.iter().enumerate() {
            for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                let start = self.low + self.width * bin as f64;
                let corners = (frame.place([start, count]), frame.place([(start + self.width).min(high), 0.0]));
                let (Some([left, top]), Some([right, bottom])) = corners else { continue };
                let (range, name) = (format!("{} to {}", number(start), number(start + self.width)), escaped(name));
                svg += &format!(
                    "<rect class=\"fill-c{index}\" fill-opacity=\"{opacity}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{name} {range}: {} rows</title></rect>",
                    left + 0.5,
                    (right - left - 1.0).max(0.5),
                    bottom - top,
                    number(count)
                );
            }
        }
        svg + "</svg>"
    }
}
