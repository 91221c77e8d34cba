//! A chart as a standalone SVG file.

use crate::html::escaped;
use crate::page::{FULL, HALF, STYLE, body};
use crate::panel::Panel;

/// The height of the title.
const HEAD: f64 = 40.0;

impl Panel {
    /// The chart as an SVG file with its title, for a README or a paper; `None` for a table or images.
    pub fn to_svg(&self) -> Option<String> {
        let width = match self {
            Self::Bars(_) => FULL,
            Self::Matrix(chart) if chart.is_wide() => FULL,
            _ => HALF,
        };
        let chart = match self {
            Self::Table(_) | Self::Images(_) => return None,
            chart => body(chart, width),
        };
        // The chart starts with its size: `<svg xmlns="…" viewBox="0 0 530 270" …>`.
        let height: f64 = chart.split("viewBox=\"0 0 ").nth(1)?.split(['"', ' ']).nth(1)?.parse().ok()?;
        let (outer, title, style) = (height + HEAD, escaped(self.title()), escaped(STYLE));
        let (mut keys, mut right) = (String::new(), width - 16.0);
        for (name, colour) in self.keys().into_iter().rev() {
            keys += &format!("<text class=\"tick\" x=\"{right:.0}\" y=\"26\" text-anchor=\"end\">{}</text>", escaped(name));
            right -= 6.5 * name.chars().count() as f64 + 20.0;
            keys += &format!("<rect class=\"fill-{colour}\" x=\"{right:.0}\" y=\"20\" width=\"12\" height=\"3\"/>");
            right -= 14.0;
        }
        let size = format!("viewBox=\"0 0 {width:.0} {outer:.0}\" width=\"{width:.0}\" height=\"{outer:.0}\"");
        let font = "font-family=\"Inter,system-ui,sans-serif\"";
        let inner = format!(
            "svg svg{{width:{width:.0}px;height:{height:.0}px}}.title{{fill:var(--ink);font-size:14px;font-weight:600}}.card{{fill:var(--card)}}"
        );
        Some(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} {font}><style>{style}{inner}</style><rect class=\"card\" width=\"{width:.0}\" height=\"{outer:.0}\"/><text class=\"title\" x=\"16\" y=\"26\">{title}</text>{keys}<g transform=\"translate(0 {HEAD})\">{chart}</g></svg>\n"
        ))
    }
}
