use crate::class_counts::{class_score, ratio};

class_score! {
    /// The share of predictions of a class that are right, `tp / (tp + fp)`; 0 where nothing is predicted.
    ///
    /// `sklearn.metrics.precision_score(labels, predictions, average=average, zero_division=0)`. A binary prediction is 1 if its
    /// logit is positive, a multi-class one is the class of the largest logit. Binary rows have two classes for any average but
    /// [`Average::Binary`](crate::Average::Binary). The name has the average: `precision` for binary, `precision_macro` and so on
    /// for others.
    Precision, "precision", |&[hits, predicted, ..]| ratio(hits, predicted)
}
