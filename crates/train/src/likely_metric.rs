use brisk_atomic_file::nearest;

/// The metric that was probably meant: `found` lacks `valid_`, or is close to a name.
pub(crate) fn likely_metric<'n>(found: &str, names: &'n [String]) -> Option<&'n str> {
    let names = || names.iter().map(String::as_str);
    names().find(|name| name.strip_prefix("valid_") == Some(found)).or_else(|| nearest(found, names()))
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
    }
}
