//! Hits, predictions and labels per class, from which precision, recall and F1 are computed.

use crate::error::Error;
use crate::probability::arg_max;
use crate::scored::Scored;
use crate::tally::{Tally, Target};

/// How the scores of several classes become one, as in scikit-learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Average {
    /// The score of class 1. For binary classification.
    Binary,
    /// The mean over classes. A class that is neither labelled nor predicted in any row, rows of weight 0 among them, is left
    /// out, unless rows are multi-label.
    Macro,
    /// One score, of the counts of all classes together.
    Micro,
    /// The mean over classes, weighted by how many rows each class labels.
    Weighted,
}

/// The weights of a class's rows: hits, predicted, labelled; then the number of rows that are predicted or labelled, whatever
/// their weight.
pub(crate) type Counts = [f64; 4];

/// The counts per class of all rows.
pub(crate) type ClassCounts = Tally<Vec<Counts>>;

impl ClassCounts {
    /// Counts the rows. Binary rows have two classes, unless only class 1 is requested.
    pub(crate) fn count(&mut self, rows: &Scored<'_>, average: Average) -> Result<(), Error> {
        let target = match average {
            Average::Binary => Target::binary(self.metric(), rows)?,
            _ => Target::of_classification(self.metric(), rows)?,
        };
        let n_classes = if target == Target::Binary { 2 } else { rows.n_outputs };
        self.update_all(rows, target, vec![Counts::default(); n_classes], |classes, row| {
            if target == Target::Labels {
                for ((counts, &logit), &label) in classes.iter_mut().zip(row.outputs).zip(row.labels) {
                    let (predicted, labelled) = (logit > 0.0, label > 0.0);
                    counts[0] += if predicted && labelled { row.weight } else { 0.0 };
                    counts[1] += if predicted { row.weight } else { 0.0 };
                    counts[2] += if labelled { row.weight } else { 0.0 };
                }
                return;
            }
            let predicted = if target == Target::Binary { usize::from(row.outputs[0] > 0.0) } else { arg_max(row.outputs) };
            for (class, count) in [(predicted, 1), (row.class(), 2)] {
                classes[class][count] += row.weight;
                classes[class][3] += 1.0;
            }
            if predicted == row.class() {
                classes[predicted][0] += row.weight;
            }
        })
    }

    /// The average of `score` over the classes.
    pub(crate) fn averaged(&self, average: Average, score: impl Fn(&Counts) -> f64) -> Result<f64, Error> {
        let (classes, _) = self.sums()?;
        let occurs = |counts: &&Counts| self.target() == Target::Labels || counts[3] > 0.0;
        Ok(match average {
            Average::Binary => score(&classes[1]),
            Average::Micro => {
                score(&classes.iter().fold(Counts::default(), |sum, counts| [0, 1, 2, 3].map(|i| sum[i] + counts[i])))
            }
            Average::Macro => {
                let n_classes = classes.iter().filter(occurs).count();
                classes.iter().filter(occurs).map(score).sum::<f64>() / n_classes as f64
            }
            Average::Weighted => {
                let total: f64 = classes.iter().map(|counts| counts[2]).sum();
                ratio(classes.iter().map(|counts| counts[2] * score(counts)).sum(), total)
            }
        })
    }
}

/// Declares a metric that is a score of each class, averaged. Its name ends in the average, unless that is of binary rows.
macro_rules! class_score {
    ($(#[$doc:meta])* $Metric:ident, $name:literal, $score:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $Metric {
            average: $crate::class_counts::Average,
            counts: $crate::class_counts::ClassCounts,
        }

        impl $Metric {
            /// The metric over no rows.
            pub fn new(average: $crate::class_counts::Average) -> Self {
                use $crate::class_counts::Average;
                let name = match average {
                    Average::Binary => $name,
                    Average::Macro => concat!($name, "_macro"),
                    Average::Micro => concat!($name, "_micro"),
                    Average::Weighted => concat!($name, "_weighted"),
                };
                Self { average, counts: $crate::class_counts::ClassCounts::new(name) }
            }

            fn score(&self) -> Result<f64, $crate::error::Error> {
                self.counts.averaged(self.average, $score)
            }
        }

        impl $crate::metric::Metric for $Metric {
            $crate::tally::tallied!(counts, Maximize);

            fn update(&mut self, rows: &$crate::scored::Scored<'_>) -> Result<(), $crate::error::Error> {
                self.counts.count(rows, self.average)
            }

            fn compute(&self) -> Result<$crate::metric::MetricValue, $crate::error::Error> {
                self.score().map($crate::metric::MetricValue::Number)
            }
        }
    };
}
pub(crate) use class_score;

/// `a / b`, and 0 where both are 0.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}
