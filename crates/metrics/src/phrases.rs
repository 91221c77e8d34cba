//! Parts of messages.

/// `all 5 labels are 0`; `label 2 is 0 in all 5 rows` if there are several labels.
pub(crate) fn all_labels(n_rows: usize, class: u8, label: Option<usize>) -> String {
    match label {
        Some(label) => format!("label {label} is {class} in {}", all_rows(n_rows)),
        None if n_rows == 1 => format!("its label is {class}"),
        None => format!("all {n_rows} labels are {class}"),
    }
}

/// `all 5 labels are the same`; `label 2 is the same in all 5 rows` if there are several labels.
pub(crate) fn same_labels(n_rows: usize, label: Option<usize>) -> String {
    match label {
        Some(label) => format!("label {label} is the same in {}", all_rows(n_rows)),
        None if n_rows == 1 => "there is one label".to_owned(),
        None => format!("all {n_rows} labels are the same"),
    }
}

/// ` (2 rows of weight 0 do not count)`; empty if there are none.
pub(crate) fn ignored(n_rows: usize) -> String {
    match n_rows {
        0 => String::new(),
        1 => " (1 row of weight 0 does not count)".to_owned(),
        _ => format!(" ({n_rows} rows of weight 0 do not count)"),
    }
}

/// `all 2 rows`, `the only row`.
pub(crate) fn all_rows(n_rows: usize) -> String {
    if n_rows == 1 { "the only row".to_owned() } else { format!("all {n_rows} rows") }
}

/// `1 row`, `2 rows`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
