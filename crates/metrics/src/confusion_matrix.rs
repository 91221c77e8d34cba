use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::probability::arg_max;
use crate::scored::Scored;
use crate::tally::{Tally, Target, columns, named, tallied};

/// How often each class is predicted as each: `[actual, predicted]`, sums of weights if rows have any.
///
/// `sklearn.metrics.confusion_matrix(labels, predictions, labels=range(n_classes))`. Binary rows have two classes. Multi-label
/// rows are refused. Its value is a [`MetricValue::Matrix`], which has no order, so it cannot be watched by early stopping.
/// # Cost
/// `8 * n_classes²` bytes, and as many per 16 384 rows of one update.
#[derive(Clone, Debug)]
pub struct ConfusionMatrix(Tally<Vec<[f64; 1]>>);

named!(ConfusionMatrix, "confusion_matrix");

impl Metric for ConfusionMatrix {
    fn is_number(&self) -> bool {
        false
    }

    tallied!(0, Maximize);

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let target = Target::of_classification(self.0.metric(), rows)?;
        if target == Target::Labels {
            return Err(columns(self.0.metric(), rows, "one label: a row of several labels has no single class"));
        }
        let n = rows.n_outputs.max(2);
        self.0.update(rows, target, vec![[0.0]; n * n], |cells, row| {
            let predicted = if target == Target::Binary { usize::from(row.outputs[0] > 0.0) } else { arg_max(row.outputs) };
            cells[row.class() * n + predicted][0] += row.weight;
        })
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        let (cells, _) = self.0.sums()?;
        Ok(MetricValue::Matrix { n: cells.len().isqrt(), values: cells.concat() })
    }
}
