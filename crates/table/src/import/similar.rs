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

#[cfg(test)]
mod tests {
    use super::similar;

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
}
