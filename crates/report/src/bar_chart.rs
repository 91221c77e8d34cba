use crate::axis::open_svg;
use crate::html::{escaped, shortened, text};
use crate::number::number;

/// Horizontal bars, the longest first: the time of each kernel, for example.
#[derive(Clone, Debug)]
pub struct BarChart {
    pub(crate) title: String,
    unit: String,
    bars: Vec<(String, f64)>,
}

/// More bars than this are added up as "others".
const MAX_BARS: usize = 16;
const ROW: f64 = 26.0;

impl BarChart {
    /// A chart of values that are not negative, in `unit`. Bars of other values, and of infinities, are left out.
    pub fn new<N: Into<String>>(
        title: impl Into<String>,
        unit: impl Into<String>,
        bars: impl IntoIterator<Item = (N, f64)>,
    ) -> Self {
        let mut bars: Vec<(String, f64)> = bars.into_iter().map(|(name, value)| (name.into(), value)).collect();
        bars.retain(|(_, value)| value.is_finite() && *value >= 0.0);
        bars.sort_by(|a, b| b.1.total_cmp(&a.1));
        if bars.len() > MAX_BARS {
            let others = bars.split_off(MAX_BARS - 1);
            bars.push((format!("{} others", others.len()), others.iter().map(|(_, value)| value).sum()));
        }
        Self { title: title.into(), unit: unit.into(), bars }
    }

    pub(crate) fn svg(&self, width: f64) -> String {
        let height = ROW * self.bars.len() as f64 + 8.0;
        let mut svg = open_svg(&self.title, width, height);
        let total: f64 = self.bars.iter().map(|(_, value)| value).sum();
        let most = self.bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let (left, right) = (230.0, width - 130.0);
        for (index, (name, value)) in self.bars.iter().enumerate() {
            let y = 4.0 + ROW * index as f64;
            let length = if most > 0.0 { (value / most * (right - left)).max(1.0) } else { 1.0 };
            let share = if total > 0.0 { 100.0 * value / total } else { 0.0 };
            let (baseline, unit) = (y + 17.0, escaped(&self.unit));
            svg += &format!("<g class=\"bar\"><title>{}: {} {unit}, {share:.1} %</title>", escaped(name), number(*value));
            svg += &text("name", [left - 12.0, baseline], "end", &shortened(name, 32));
            svg += &format!(
                "<rect class=\"fill-c0\" x=\"{left}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"16\" rx=\"3\"/>",
                y + 4.0
            );
            svg += &format!(
                "<text class=\"value\" x=\"{:.1}\" y=\"{baseline:.1}\">{} {unit}<tspan class=\"share\"> · {share:.0} %</tspan></text></g>",
                left + length + 8.0,
                number(*value)
            );
        }
        svg + "</svg>"
    }
}
