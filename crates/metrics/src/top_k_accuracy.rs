use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::{Row, Tally, Target};

/// The share of rows whose label is among the classes of the `k` largest logits; of equal logits, the last class comes first.
///
/// `sklearn.metrics.top_k_accuracy_score(labels, logits, k=k, labels=range(n_classes))`. For multi-class classification with more
/// than `k` classes. Its name has the number: `top_5_accuracy`.
#[derive(Clone, Debug)]
pub struct TopKAccuracy {
    k: usize,
    name: String,
    tally: Tally<[f64; 1]>,
}

impl TopKAccuracy {
    /// The metric over no rows. `k` is at least 1 and below the number of classes, which [`Metric::update`] checks.
    pub fn new(k: usize) -> Self {
        Self { k, name: format!("top_{k}_accuracy"), tally: Tally::new("top_k_accuracy") }
    }
}

impl Metric for TopKAccuracy {
    fn name(&self) -> &str {
        &self.name
    }

    fn direction(&self) -> Direction {
        Direction::Maximize
    }

    fn reset(&mut self) {
        self.tally.reset();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let metric = self.tally.metric();
        let target = Target::classes(metric, rows)?;
        if !(1..rows.n_outputs).contains(&self.k) {
            let expected = format!("1 to {}, fewer than the {} classes", rows.n_outputs - 1, rows.n_outputs);
            return Err(Error::Setting { metric, setting: "k", found: self.k as f64, expected });
        }
        self.tally.add_scores(rows, target, |row, _| f64::from(u8::from(rank(row) < self.k)))
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.tally.mean().map(MetricValue::Number)
    }
}

/// How many classes come before the row's label.
fn rank(row: Row<'_>) -> usize {
    let (class, of_label) = (row.class(), row.outputs[row.class()]);
    let others = row.outputs.iter().enumerate();
    others.filter(|&(other, &logit)| logit > of_label || (logit == of_label && other > class)).count()
}
