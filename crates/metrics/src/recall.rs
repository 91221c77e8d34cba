use crate::class_counts::{class_score, ratio};

class_score! {
    /// The share of rows of a class that are predicted as such, `tp / (tp + fn)`; 0 where nothing is labelled.
    ///
    /// `sklearn.metrics.recall_score(labels, predictions, average=average, zero_division=0)`. A binary prediction is 1 if its
    /// logit is positive, a multi-class one is the class of the largest logit. Binary rows have two classes for any average but
    /// [`Average::Binary`](crate::Average::Binary). The name has the average: `recall` for binary, `recall_macro` and so on for
    /// others.
    Recall, "recall", |&[hits, _, labelled, _]| ratio(hits, labelled)
}
