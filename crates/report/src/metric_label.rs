//! Names of metrics for people.

/// A set of rows: its name in names of metrics, and its label.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
}

const SETS: [Set; 3] =
    [Set { name: "train", label: "training" }, Set { name: "valid", label: "validation" }, Set { name: "test", label: "test" }];

/// Words of names that are spelled differently for people.
const WORDS: [(&str, &str); 6] = [("auc", "AUC"), ("f1", "F1"), ("mae", "MAE"), ("r2", "R²"), ("rmse", "RMSE"), ("roc", "ROC")];

/// `validation R²` of `valid_r2`, the name in logs and early stopping.
pub(crate) fn metric_label(column: &str) -> String {
    let (set, metric) = divided(column);
    let words = metric.split('_').map(|word| WORDS.iter().find(|(name, _)| *name == word).map_or(word, |&(_, label)| label));
    set.map(|set| set.label).into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// The set of rows and the metric: `valid` and `loss` of `valid_loss`.
pub(crate) fn divided(column: &str) -> (Option<Set>, &str) {
    let of = |set: Set| Some((Some(set), column.strip_prefix(set.name)?.strip_prefix('_')?));
    SETS.into_iter().find_map(of).unwrap_or((None, column))
}

/// The label as a title: `Log loss` of `log_loss`.
pub(crate) fn title(metric: &str) -> String {
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
