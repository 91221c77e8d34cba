//! Names of metrics for people.

/// Sets of rows, as prefixes of metric names.
const SETS: [(&str, &str); 3] = [("train_", "training"), ("valid_", "validation"), ("test_", "test")];

/// Words of names that are spelled differently for people.
const WORDS: [(&str, &str); 6] = [("auc", "AUC"), ("f1", "F1"), ("mae", "MAE"), ("r2", "R²"), ("rmse", "RMSE"), ("roc", "ROC")];

/// `validation R²` of `valid_r2`, the name in logs and early stopping.
pub(crate) fn metric_label(column: &str) -> String {
    let (set, metric) = divided(column);
    let words = metric.split('_').map(|word| WORDS.iter().find(|(name, _)| *name == word).map_or(word, |&(_, label)| label));
    set.into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// The set of rows and the metric: `validation` and `loss` of `valid_loss`.
pub(super) fn divided(column: &str) -> (Option<&'static str>, &str) {
    let of = |(prefix, set): (&str, &'static str)| Some((Some(set), column.strip_prefix(prefix)?));
    SETS.into_iter().find_map(of).unwrap_or((None, column))
}

/// The label as a title: `Log loss` of `log_loss`.
pub(super) fn title(metric: &str) -> String {
    let label = metric_label(metric);
    let mut chars = label.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::{metric_label, title};

    #[test]
    fn labels_are_those_of_the_literature() {
        for (name, label) in [
            ("valid_r2", "validation R²"),
            ("r2", "R²"),
            ("train_loss", "training loss"),
            ("f1_macro", "F1 macro"),
            ("valid_rmse", "validation RMSE"),
            ("my_metric", "my metric"),
            ("", ""),
        ] {
            assert_eq!(metric_label(name), label, "{name}");
        }
        assert_eq!(title("log_loss"), "Log loss");
        assert_eq!(title("auc"), "AUC");
    }
}
