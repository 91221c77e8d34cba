use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::probability::softmax;
use crate::ranked_scores::Tie;
use crate::roc_auc::area;
use crate::scored::Scored;
use crate::tally::{Sums, Tally, Target, tallied};

/// Which areas a [`MultiClassRocAuc`] is the mean of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MultiClass {
    /// For each class, that of its probability, by which its rows are told from all others.
    OneVsRest,
    /// For each pair of classes, those of the two probabilities, by which the rows of one are told from those of the other. It
    /// does not depend on how frequent classes are.
    OneVsOne,
}

/// The area under the ROC curve of several classes: the mean of the areas of each class against all others, or of each pair.
///
/// `sklearn.metrics.roc_auc_score(labels, softmax(logits), multi_class="ovr")` or `"ovo"`, with `average="macro"`, of
/// probabilities in f64. Named `auc_ovr` or `auc_ovo`. All probabilities are kept, `8 * n_classes` bytes per row, and sorted by
/// [`Metric::compute`]: once per class, or twice per pair. Rows may have weights in both, which scikit-learn takes for `"ovr"`.
///
/// A class without a row has no area: [`Error::MissingClass`].
#[derive(Clone, Debug)]
pub struct MultiClassRocAuc {
    rows: Tally<ClassRows>,
    areas: MultiClass,
}

#[derive(Clone, Debug, Default)]
struct ClassRows {
    /// Of each class, a row after the other.
    probabilities: Vec<f64>,
    classes: Vec<usize>,
    weights: Vec<f64>,
}

impl Sums for ClassRows {
    fn add(&mut self, other: Self) {
        self.probabilities.extend(other.probabilities);
        self.classes.extend(other.classes);
        self.weights.extend(other.weights);
    }
}

impl ClassRows {
    /// The area of `class` against the `others`, by its probability. All classes have rows.
    fn area(&self, class: usize, others: impl Fn(usize) -> bool) -> f64 {
        let n_classes = self.probabilities.len() / self.classes.len();
        let rows = self.classes.iter().zip(&self.weights).zip(self.probabilities.chunks_exact(n_classes));
        let rows = rows.filter(|((found, _), _)| **found == class || others(**found));
        let mut rows: Vec<(f64, Tie)> = rows
            .map(|((&found, &weight), probabilities)| {
                let [positive, negative] = if found == class { [weight, 0.0] } else { [0.0, weight] };
                (probabilities[class], Tie { negative, positive })
            })
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let sum = |tied: &[(f64, Tie)], of: fn(&Tie) -> f64| tied.iter().map(|(_, tie)| of(tie)).sum();
        let tie = |tied: &[(f64, Tie)]| Tie { negative: sum(tied, |tie| tie.negative), positive: sum(tied, |tie| tie.positive) };
        area(&rows.chunk_by(|a, b| a.0 == b.0).map(tie).collect::<Vec<_>>()).expect("there are rows of several classes")
    }
}

impl MultiClassRocAuc {
    /// The metric over no rows.
    pub fn new(areas: MultiClass) -> Self {
        let name = match areas {
            MultiClass::OneVsRest => "auc_ovr",
            MultiClass::OneVsOne => "auc_ovo",
        };
        Self { rows: Tally::new(name), areas }
    }
}

impl Metric for MultiClassRocAuc {
    tallied!(rows, Maximize);

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let target = Target::classes(self.rows.metric(), rows)?;
        self.rows.update(rows, target, ClassRows::default(), |rows, row| {
            rows.probabilities.extend(softmax(row.outputs));
            rows.classes.push(row.class());
            rows.weights.push(row.weight);
        })
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        let (rows, _) = self.rows.sums()?;
        let n_classes = rows.probabilities.len() / rows.classes.len();
        let has_rows = |class: &usize| rows.classes.iter().zip(&rows.weights).any(|(of, weight)| of == class && *weight > 0.0);
        if let Some(class) = (0..n_classes).find(|class| !has_rows(class)) {
            return Err(Error::MissingClass { metric: self.rows.metric(), n_rows: self.rows.n_counted(), class });
        }
        let areas: Vec<f64> = match self.areas {
            MultiClass::OneVsRest => (0..n_classes).map(|class| rows.area(class, |_| true)).collect(),
            MultiClass::OneVsOne => {
                let pairs = (0..n_classes).flat_map(|a| (0..n_classes).filter(move |&b| b != a).map(move |b| (a, b)));
                pairs.map(|(a, b)| rows.area(a, |other| other == b)).collect()
            }
        };
        Ok(MetricValue::Number(areas.iter().sum::<f64>() / areas.len() as f64))
    }
}
