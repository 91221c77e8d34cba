use crate::axis::{Axis, AxisScale, Frame};
use crate::number::number;

/// Points, with the diagonal on which both coordinates are the same: predictions over labels.
#[derive(Clone, Debug)]
pub struct ScatterChart {
    pub(crate) title: String,
    x_label: String,
    y_label: String,
    points: Vec<[f64; 2]>,
}

/// Beyond this number of points, only every second, third and so on is drawn.
const MAX_POINTS: usize = 1500;

impl ScatterChart {
    /// A chart of `points`, each `[x, y]`.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
        points: impl IntoIterator<Item = [f64; 2]>,
    ) -> Self {
        let points: Vec<[f64; 2]> = points.into_iter().filter(|point| point.iter().all(|x| x.is_finite())).collect();
        let every = points.len().div_ceil(MAX_POINTS).max(1);
        let points = points.into_iter().step_by(every).collect();
        Self { title: title.into(), x_label: x_label.into(), y_label: y_label.into(), points }
    }

    pub(crate) fn svg(&self, width: f64, height: f64) -> String {
        // The same range on both axes, so that the diagonal means equality.
        let axis = Axis::over(self.points.iter().flatten().copied(), None, AxisScale::Linear).padded();
        let frame = Frame::new(axis, axis, width, height);
        let mut svg = frame.open(&self.title, &self.x_label, &self.y_label);
        svg += &frame.diagonal();
        for &point in &self.points {
            let Some([x, y]) = frame.place(point) else { continue };
            let [from, to] = point.map(number);
            svg += &format!(
                "<circle class=\"point fill-c0\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"><title>{from}, {to}</title></circle>"
            );
        }
        svg + "</svg>"
    }
}
