use crate::axis::{Axis, AxisScale, Frame};
use crate::html::{escaped, text};
use crate::number::number;

/// Lines over a common axis.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// The title.
    pub title: String,
    /// The name of the horizontal axis.
    pub x_label: String,
    /// The name of the vertical axis; may be empty.
    pub y_label: String,
    /// The lines.
    pub series: Vec<Series>,
    /// The range of the horizontal axis, if it is not that of the points.
    pub x_range: Option<[f64; 2]>,
    /// The range of the vertical axis, if it is not that of the points.
    pub y_range: Option<[f64; 2]>,
    /// The scales of the horizontal and of the vertical axis.
    pub scales: [AxisScale; 2],
    /// Whether the diagonal is drawn, where curves lie if predictions are random.
    pub has_diagonal: bool,
    /// A position on the horizontal axis that is marked, and its note.
    pub mark: Option<(f64, String)>,
    /// Whether the chart is nearly square: it takes a third of the page's width, not half of it.
    pub is_square: bool,
}

/// One line of a [`LineChart`].
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points, each `[x, y]`, in increasing order of `x`. A value that is not finite leaves a gap.
    pub points: Vec<[f64; 2]>,
    /// Whether it is grey, as a reference for others.
    pub is_muted: bool,
}

impl Series {
    /// A line through `points` in a colour.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = [f64; 2]>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), is_muted: false }
    }
}

/// Colours of the style sheet.
const N_COLOURS: usize = 6;
/// Beyond this number of points, only the lowest and highest of each of half as many ranges are drawn.
const MAX_POINTS: usize = 600;
/// Beyond this number of points, no dots are drawn.
const MAX_DOTS: usize = 40;
/// The maximum number of positions along the axis that show their values.
const MAX_HOVERS: usize = 120;

impl LineChart {
    /// A chart of these lines.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, series: impl IntoIterator<Item = Series>) -> Self {
        Self { title: title.into(), x_label: x_label.into(), series: series.into_iter().collect(), ..Self::default() }
    }

    /// The names of the lines and the classes of their colours, for a legend: none for a single line.
    pub(crate) fn keys(&self) -> Vec<(&str, String)> {
        let keys = self.series.iter().enumerate().map(|(index, series)| (&*series.name, self.colour(index)));
        if self.series.len() < 2 { Vec::new() } else { keys.collect() }
    }

    pub(crate) fn svg(&self, width: f64, height: f64) -> String {
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let x = Axis::over(points().map(|[x, _]| x), self.x_range, self.scales[0]);
        let y = Axis::over(points().map(|[_, y]| y), self.y_range, self.scales[1]);
        let frame = Frame::new(x, if self.y_range.is_some() { y } else { y.padded() }, width, height);
        let mut svg = frame.open(&self.title, &self.x_label, &self.y_label);
        if self.has_diagonal {
            svg += &frame.diagonal();
        }
        if let Some((at, note)) = &self.mark
            && let Some(x) = frame.x_of(*at)
        {
            let (anchor, shift) = if frame.x.at(*at) > Some(0.7) { ("end", -6.0) } else { ("start", 6.0) };
            svg += &format!("<path class=\"mark\" d=\"M{x:.1} {}V{:.1}\"/>", frame.top(), frame.bottom());
            svg += &text("note", [x + shift, frame.top() + 10.0], anchor, note);
        }
        // Reference lines are drawn first, below the others.
        let mut order: Vec<usize> = (0..self.series.len()).collect();
        order.sort_by_key(|&index| !self.series[index].is_muted);
        for index in order {
            svg += &self.line(index, &frame);
        }
        svg += &self.hovers(&frame);
        svg + "</svg>"
    }

    /// The class of a line's colour: `c0` and so on, or `cm` if it is muted.
    fn colour(&self, index: usize) -> String {
        if self.series[index].is_muted {
            return "cm".to_owned();
        }
        let n_before = self.series[..index].iter().filter(|series| !series.is_muted).count();
        format!("c{}", n_before % N_COLOURS)
    }

    fn line(&self, index: usize, frame: &Frame) -> String {
        let (colour, points) = (self.colour(index), thinned(&self.series[index].points));
        let (mut path, mut dots, mut is_drawing) = (String::new(), String::new(), false);
        let mut drawn: Vec<[f64; 2]> = Vec::new();
        for &point in &points {
            let Some([x, y]) = frame.place(point) else {
                is_drawing = false;
                continue;
            };
            path += &format!("{}{x:.1} {y:.1}", if is_drawing { 'L' } else { 'M' });
            drawn.push([x, y]);
            is_drawing = true;
            if points.len() <= MAX_DOTS {
                dots += &format!("<circle class=\"dot fill-{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/>");
            }
        }
        let is_whole = drawn.len() == points.len();
        let area = match (drawn.first(), drawn.last()) {
            (Some([first, _]), Some([last, _]))
                if self.series.len() == 1 && is_whole && drawn.len() > 1 && frame.y.at(0.0) == Some(0.0) =>
            {
                let bottom = frame.bottom();
                format!("<path class=\"area fill-{colour}\" d=\"{path}L{last:.1} {bottom:.1}L{first:.1} {bottom:.1}Z\"/>")
            }
            _ => String::new(),
        };
        format!("{area}<path class=\"line stroke-{colour}\" d=\"{path}\"/>{dots}")
    }

    /// Invisible bands that show the values below the pointer.
    fn hovers(&self, frame: &Frame) -> String {
        let series: Vec<(&str, Vec<[f64; 2]>)> =
            self.series.iter().map(|series| (&*series.name, thinned(&series.points))).collect();
        let Some((_, longest)) = series.iter().max_by_key(|(_, points)| points.len()) else { return String::new() };
        let shown: Vec<[f64; 2]> = longest.iter().copied().step_by(longest.len().div_ceil(MAX_HOVERS).max(1)).collect();
        let band = (frame.right() - frame.left()) / shown.len().max(1) as f64;
        let mut svg = String::new();
        for [x, _] in shown {
            let Some(middle) = frame.x_of(x) else { continue };
            let (top, height) = (frame.top(), frame.bottom() - frame.top());
            let values = series.iter().filter_map(|(name, points)| {
                let nearest = points.iter().min_by(|a, b| (a[0] - x).abs().total_cmp(&(b[0] - x).abs()))?;
                Some(format!("{}: {}", escaped(name), number(nearest[1])))
            });
            let values: Vec<String> = values.collect();
            svg += &format!(
                "<g class=\"hover\"><title>{} {}\n{}</title><rect x=\"{:.1}\" y=\"{top}\" width=\"{band:.1}\" height=\"{height:.1}\"/><path d=\"M{middle:.1} {top}v{height:.1}\"/></g>",
                escaped(&self.x_label),
                number(x),
                values.join("\n"),
                middle - band / 2.0,
            );
        }
        svg
    }
}

/// At most [`MAX_POINTS`] points: the lowest and the highest of each range, in their original order.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let mut thinned = Vec::with_capacity(MAX_POINTS + 2);
    for range in points.chunks(points.len().div_ceil(MAX_POINTS / 2)) {
        let by_value = |a: &&[f64; 2], b: &&[f64; 2]| a[1].total_cmp(&b[1]);
        let (Some(&low), Some(&high)) = (range.iter().min_by(by_value), range.iter().max_by(by_value)) else { continue };
        thinned.extend(if low[0] <= high[0] { [low, high] } else { [high, low] });
    }
    // The first and the last point are kept.
    if let (Some(&first), Some(&last)) = (points.first(), points.last()) {
        thinned.insert(0, first);
        thinned.push(last);
    }
    thinned
}
