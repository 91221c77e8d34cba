use crate::error::Error;
use crate::scored::Scored;
use crate::tally::{Sums, Tally, Target, metric};

/// The coefficient of determination: `1 - Σ (label - prediction)² / Σ (label - mean label)²`.
///
/// Called `r2` in logs and early stopping (`valid_r2`), R² in reports. `sklearn.metrics.r2_score(labels, predictions)`. With
/// several labels per row, the mean over the labels. Labels that are all the same, a single row among them, have no R²:
/// [`Error::ConstantLabel`], where scikit-learn gives 0, 1, or NaN and a warning. A training run of `brisk-train` leaves it out
/// with a warning.
#[derive(Clone, Debug)]
pub struct RSquared(Tally<Vec<Deviations>>);

metric!(RSquared, "r2", Maximize, |tally, rows| add(tally, rows), value);

/// Squared errors, and the moments of the labels by which they are compared.
#[derive(Clone, Copy, Debug, Default)]
struct Deviations {
    squared_error: f64,
    weight: f64,
    mean: f64,
    squared_deviation: f64,
}

/// Chan, Golub & LeVeque 1983: exact about the mean, where a difference of sums of squares would cancel.
impl Sums for Deviations {
    fn add(&mut self, other: Self) {
        let weight = self.weight + other.weight;
        if weight > 0.0 {
            let apart = other.mean - self.mean;
            self.mean += apart * other.weight / weight;
            self.squared_deviation += other.squared_deviation + apart * apart * self.weight * other.weight / weight;
        }
        self.weight = weight;
        self.squared_error += other.squared_error;
    }
}

fn add(tally: &mut Tally<Vec<Deviations>>, rows: &Scored<'_>) -> Result<(), Error> {
    let target = Target::values(tally.metric(), rows)?;
    tally.update(rows, target, vec![Deviations::default(); rows.n_labels], |columns, row| {
        for ((column, &output), &label) in columns.iter_mut().zip(row.outputs).zip(row.labels) {
            let squared_error = row.weight * (f64::from(output) - f64::from(label)).powi(2);
            column.add(Deviations { squared_error, weight: row.weight, mean: label.into(), squared_deviation: 0.0 });
        }
    })
}

fn value(tally: &Tally<Vec<Deviations>>) -> Result<f64, Error> {
    let (columns, _) = tally.sums()?;
    if let Some(label) = columns.iter().position(|column| column.squared_deviation == 0.0) {
        let label = (columns.len() > 1).then_some(label);
        let (metric, n_rows, n_ignored) = (tally.metric(), tally.n_counted(), tally.n_ignored());
        return Err(Error::ConstantLabel { metric, label, n_rows, n_ignored });
    }
    let scores = columns.iter().map(|column| 1.0 - column.squared_error / column.squared_deviation);
    Ok(scores.sum::<f64>() / columns.len() as f64)
}
