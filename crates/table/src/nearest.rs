//! Finds the name that was probably meant.

/// The name with the smallest edit distance from `asked`, if the distance is small.
pub(crate) fn nearest<'a>(asked: &str, names: &'a [String]) -> Option<&'a str> {
    let most = (asked.chars().count() / 3).clamp(1, 5);
    let distances = names.iter().map(|name| (distance(&asked.to_lowercase(), &name.to_lowercase()), name.as_str()));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// How many characters must be inserted, removed or replaced to turn `a` into `b` (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (a, b, expected) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("same", "same", 0)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a}, {b}");
        }
    }

    #[test]
    fn a_name_is_meant_if_it_is_near() {
        let names = ["price", "rooms", "age"].map(str::to_owned);
        for (asked, expected) in
            [("pric", Some("price")), ("PRICE", Some("price")), ("room", Some("rooms")), ("label", None), ("x", None)]
        {
            assert_eq!(nearest(asked, &names), expected, "{asked}");
        }
    }
}
