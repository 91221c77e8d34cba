use std::collections::HashMap;

/// The first two texts that differ only in case, blanks around them or a final full stop: `<=50K` and `<=50K.`, `true` and
/// `TRUE`.
pub(crate) fn similar(texts: &[String]) -> Option<[String; 2]> {
    let mut seen: HashMap<String, &String> = HashMap::with_capacity(texts.len());
    texts.iter().find_map(|text| {
        let trimmed = text.trim();
        let key = trimmed.strip_suffix('.').unwrap_or(trimmed).trim_end().to_lowercase();
        seen.insert(key, text).map(|earlier| [earlier.clone(), text.clone()])
    })
}

/// The number of lines of the first text that has whole rows of `n_columns` cells in it, as the text between two stray quotes
/// has.
pub(crate) fn lines_of_rows(texts: &[String], n_columns: usize) -> Option<usize> {
    // With fewer columns, lines of ordinary text look like rows.
    const MIN_COLUMNS: usize = 3;
    if n_columns < MIN_COLUMNS {
        return None;
    }
    let has_rows = |text: &&String| {
        let n_breaks = text.lines().count() - 1;
        let inner = text.lines().skip(1).take(n_breaks.saturating_sub(1));
        [',', ';', '\t', '|'].iter().any(|&delimiter| {
            let count = |text: &str| text.chars().filter(|&c| c == delimiter).count();
            count(text) == n_breaks * (n_columns - 1) || inner.clone().any(|line| count(line) == n_columns - 1)
        })
    };
    texts.iter().filter(|text| text.contains('\n')).find(has_rows).map(|text| text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::{lines_of_rows, similar};

    #[track_caller]
    fn check(texts: &[&str], expected: Option<[&str; 2]>) {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(similar(&texts), expected.map(|pair| pair.map(str::to_owned)));
    }

    #[test]
    fn spellings_of_one_word_are_found() {
        check(&["no", "yes"], None);
        check(&["<=50K", ">50K", "<=50K."], Some(["<=50K", "<=50K."]));
        check(&["true", "false", "FALSE"], Some(["false", "FALSE"]));
        check(&["a", " a"], Some(["a", " a"]));
        check(&["1.0", "1", "10"], None);
    }

    #[test]
    fn rows_between_stray_quotes_are_found() {
        let check = |text: &str, n_columns, expected| {
            assert_eq!(lines_of_rows(&["a".to_owned(), text.to_owned()], n_columns), expected, "{text:?}");
        };
        check("b,1.5\n2.5,", 3, Some(2));
        check("b;1.5\n2.5;c;3.5\n4", 3, Some(3));
        check("12 High Street, Flat 2\nLondon", 4, None);
        check("12 High Street\nLondon", 3, None);
        check("a,b", 2, None);
    }
}
