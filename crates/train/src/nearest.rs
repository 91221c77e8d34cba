//! The known name that was probably meant.

/// The one of `names` with the smallest edit distance to `found`.
pub(crate) fn nearest<'n>(found: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    names.into_iter().min_by_key(|name| strsim::levenshtein(name, found))
}

/// The metric that was probably meant: `found` lacks `valid_`, or less than a third of its characters differ.
pub(crate) fn likely_metric<'n>(found: &str, names: &'n [String]) -> Option<&'n str> {
    let names = || names.iter().map(String::as_str);
    let is_close = |name: &&str| 3 * strsim::levenshtein(name, found) < found.len();
    names().find(|name| name.strip_prefix("valid_") == Some(found)).or_else(|| nearest(found, names()).filter(is_close))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_likely_names_are_suggested() {
        let names = ["train_loss", "valid_loss", "valid_accuracy", "valid_log_loss"].map(str::to_owned);
        for (found, expected) in [
            ("valid_acuracy", Some("valid_accuracy")),
            ("accuracy", Some("valid_accuracy")),
            ("loss", Some("valid_loss")),
            ("log_loss", Some("valid_log_loss")),
            ("val_loss", Some("valid_loss")),
            ("valid_auc", None),
            ("f1", None),
        ] {
            assert_eq!(likely_metric(found, &names), expected, "{found}");
        }
        assert_eq!(nearest("f1", names.iter().map(String::as_str)), Some("train_loss"), "the nearest, however far");
    }
}
