//! Axes, grids and the area between them.

use crate::html::{escaped, text, turned_text};
use crate::number::tick;

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal distances are equal differences.
    #[default]
    Linear,
    /// Equal distances are equal ratios. Values of 0 or less are left out.
    Log,
}

/// A range of values along an axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: AxisScale,
    /// Whether all values are whole numbers, such as epochs.
    is_whole: bool,
}

impl Axis {
    /// An axis for the values, or for `range` if it is given.
    pub(crate) fn over(values: impl Iterator<Item = f64>, range: Option<[f64; 2]>, scale: AxisScale) -> Self {
        let usable = values.filter(|&value| value.is_finite() && (scale == AxisScale::Linear || value > 0.0));
        let mut is_whole = range.is_none();
        let usable = usable.inspect(|value| is_whole &= value.fract() == 0.0);
        let found = usable.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
        let [low, high] = range.unwrap_or(found);
        let (low, high) = if low <= high { (low, high) } else { (0.5, 1.5) };
        // A single value is placed in the middle.
        let (low, high) = match (high - low > f64::EPSILON * high.abs(), scale) {
            (true, _) => (low, high),
            (false, AxisScale::Log) => (low / 2.0, high * 2.0),
            (false, AxisScale::Linear) => {
                let half = if low == 0.0 { 0.5 } else { low.abs() / 2.0 };
                (low - half, high + half)
            }
        };
        Self { low, high, scale, is_whole }
    }

    /// The same axis with a margin at both ends.
    pub(crate) fn padded(self) -> Self {
        let Self { low, high, scale, .. } = self;
        match scale {
            AxisScale::Linear => {
                let room = 0.06 * (high - low);
                // No margin below 0 for values that cannot be negative.
                let below = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
                Self { low: below, high: high + room, ..self }
            }
            AxisScale::Log => {
                let room = (high / low).powf(0.05);
                Self { low: low / room, high: high * room, ..self }
            }
        }
    }

    /// Where a value is, from 0 to 1; `None` if the axis cannot show it.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let at = match self.scale {
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        (at.is_finite() && (-1e-6..=1.0 + 1e-6).contains(&at)).then_some(at)
    }

    /// Values to label, and their labels: about `n` of them.
    pub(crate) fn ticks(&self, n: usize) -> Vec<(f64, String)> {
        let decades = (self.high / self.low).log10();
        if self.scale == AxisScale::Log && decades >= 2.0 {
            let every = (decades / n as f64).ceil().max(1.0) as i32;
            let (first, last) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
            let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
            return powers.map(|power| (10_f64.powi(power), format!("1e{power}"))).collect();
        }
        let step = nice_step((self.high - self.low) / n as f64);
        let step = if self.is_whole { step.max(1.0) } else { step };
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| (i as f64 * step, tick(i as f64 * step, step))).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let leading = [1.0, 2.0, 5.0].into_iter().find(|leading| leading * power >= step * (1.0 - 1e-9));
    leading.unwrap_or(10.0) * power
}

/// The area of a chart between its axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    width: f64,
    height: f64,
}

const LEFT: f64 = 54.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

impl Frame {
    pub(crate) fn new(x: Axis, y: Axis, width: f64, height: f64) -> Self {
        Self { x, y, width, height }
    }

    pub(crate) fn left(&self) -> f64 {
        LEFT
    }

    pub(crate) fn right(&self) -> f64 {
        self.width - RIGHT
    }

    pub(crate) fn top(&self) -> f64 {
        TOP
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    /// Where a point is drawn.
    pub(crate) fn place(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        Some([self.x_of(x)?, self.y_of(y)?])
    }

    pub(crate) fn x_of(&self, value: f64) -> Option<f64> {
        Some(LEFT + self.x.at(value)? * (self.right() - LEFT))
    }

    fn y_of(&self, value: f64) -> Option<f64> {
        Some(self.bottom() - self.y.at(value)? * (self.bottom() - TOP))
    }

    /// The line from the lower left to the upper right corner.
    pub(crate) fn diagonal(&self) -> String {
        format!("<path class=\"diagonal\" d=\"M{LEFT} {:.1}L{:.1} {TOP}\"/>", self.bottom(), self.right())
    }

    /// Starts the SVG and draws the grid with its labels.
    pub(crate) fn open(&self, title: &str, x_label: &str, y_label: &str) -> String {
        let Self { width, height, .. } = *self;
        let mut svg = open_svg(title, width, height);
        for (value, label) in self.y.ticks(5) {
            let Some(y) = self.y_of(value) else { continue };
            svg += &format!("<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", self.right());
            svg += &text("tick", [LEFT - 8.0, y + 4.0], "end", &label);
        }
        let n_ticks = if width > 800.0 { 10 } else { 6 };
        for (value, label) in self.x.ticks(n_ticks) {
            let Some(x) = self.x_of(value) else { continue };
            svg += &format!("<path class=\"axis\" d=\"M{x:.1} {:.1}v4\"/>", self.bottom());
            svg += &text("tick", [x, self.bottom() + 18.0], "middle", &label);
        }
        svg += &format!("<path class=\"axis\" d=\"M{LEFT} {:.1}H{:.1}\"/>", self.bottom(), self.right());
        svg += &text("label", [(LEFT + self.right()) / 2.0, height - 8.0], "middle", x_label);
        if !y_label.is_empty() {
            svg += &turned_text([12.0, (TOP + self.bottom()) / 2.0], y_label);
        }
        svg
    }
}

/// The opening of a chart of that size.
pub(crate) fn open_svg(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    )
}
