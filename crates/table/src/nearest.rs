//! Finds the name that was probably meant.

/// The name with the smallest edit distance from `asked`, if the distance is small.
pub(crate) fn nearest<'a>(asked: &str, names: &'a [String]) -> Option<&'a str> {
    let most = (asked.chars().count() / 3).clamp(1, 5);
    let distances = names.iter().map(|name| (strsim::levenshtein(&asked.to_lowercase(), &name.to_lowercase()), name.as_str()));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

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
