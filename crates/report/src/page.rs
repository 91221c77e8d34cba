//! The page around the panels.

use crate::html::escaped;
use crate::panel::Panel;

pub(crate) const STYLE: &str = include_str!("page.css");

/// Widths of the page's columns, in the units of the charts.
const THIRD: f64 = 344.0;
pub(crate) const HALF: f64 = 530.0;
pub(crate) const FULL: f64 = 1100.0;

const HEIGHT: f64 = 270.0;

/// What a page shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) figures: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) panels: Vec<Panel>,
}

impl Page {
    /// The page, which is HTML and well-formed XML.
    pub(crate) fn render(&self) -> String {
        let title = escaped(&self.title);
        let subtitle = if self.subtitle.is_empty() { String::new() } else { format!("<p>{}</p>", escaped(&self.subtitle)) };
        let figure = |(label, value): &(String, String)| {
            format!("<div class=\"figure\"><dt>{}</dt><dd>{}</dd></div>", escaped(label), escaped(value))
        };
        let figures = match &self.figures[..] {
            [] => String::new(),
            figures => format!("<dl class=\"figures\">{}</dl>", figures.iter().map(figure).collect::<String>()),
        };
        let sections: String = self.sections.iter().filter(|section| !section.panels.is_empty()).map(render_section).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/><title>{title}</title><style>{STYLE}</style></head>\n<body><main><header><h1>{title}</h1>{subtitle}</header>\n{figures}\n{sections}<footer>Written by brisk {}.</footer></main></body></html>\n",
            env!("CARGO_PKG_VERSION")
        )
    }
}

fn render_section(section: &Section) -> String {
    let heading = if section.title.is_empty() { String::new() } else { format!("<h2>{}</h2>", escaped(&section.title)) };
    let widths = widths(&section.panels);
    let panels: String = section.panels.iter().zip(widths).map(|(panel, width)| render_panel(panel, width)).collect();
    format!("<section>{heading}<div class=\"panels\">{panels}</div></section>\n")
}

/// The width of each panel. A half-width panel without a neighbour takes the whole row, and so do bars, images and tables of
/// several columns; thirds that do not fill a row become halves.
fn widths(panels: &[Panel]) -> Vec<f64> {
    let wanted = |panel: &Panel| match panel {
        Panel::Lines(chart) if chart.is_square => THIRD,
        Panel::Bars(_) | Panel::Images(_) => FULL,
        Panel::Table(table) if table.has_header() => FULL,
        Panel::Matrix(chart) if chart.is_wide() => FULL,
        _ => HALF,
    };
    let mut widths: Vec<f64> = panels.iter().map(wanted).collect();
    for same in widths.chunk_by_mut(|a, b| a == b).filter(|same| same[0] == THIRD) {
        let n_in_rows = same.len() / 3 * 3;
        same[n_in_rows..].fill(HALF);
    }
    for same in widths.chunk_by_mut(|a, b| a == b).filter(|same| same[0] == HALF && same.len() % 2 == 1) {
        if let Some(last) = same.last_mut() {
            *last = FULL;
        }
    }
    widths
}

fn render_panel(panel: &Panel, width: f64) -> String {
    let key =
        |(name, colour): (&str, String)| format!("<span class=\"key\"><i class=\"bg-{colour}\"></i>{}</span>", escaped(name));
    let legend: String = panel.keys().into_iter().map(key).collect();
    let class = if width == THIRD { "panel third" } else { "panel" };
    let class = if width == FULL { "panel full" } else { class };
    let head = format!("<div class=\"panel-head\"><h3>{}</h3><div>{legend}</div></div>", escaped(panel.title()));
    format!("<div class=\"{class}\">{head}{}</div>", body(panel, width))
}

/// The chart, the table or the images themselves.
pub(crate) fn body(panel: &Panel, width: f64) -> String {
    match panel {
        Panel::Lines(chart) => chart.svg(width, HEIGHT),
        Panel::Bars(chart) => chart.svg(width),
        Panel::Histogram(chart) => chart.svg(width, HEIGHT),
        Panel::Matrix(chart) => chart.svg(width),
        Panel::Scatter(chart) => chart.svg(width, HEIGHT),
        Panel::Table(table) => table.html(),
        Panel::Images(images) => images.html(),
    }
}
