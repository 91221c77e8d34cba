/// The one of `names` that was probably meant by `asked`, for error messages: the one with the smallest edit distance, if at most
/// a third of the characters differ, or one. Upper and lower case are the same.
///
/// # Examples
/// ```
/// use brisk_atomic_file::nearest;
///
/// assert_eq!(nearest("pric", ["price", "rooms"]), Some("price"));
/// assert_eq!(nearest("label", ["price", "rooms"]), None);
/// ```
pub fn nearest<'n>(asked: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let most = (asked.chars().count() / 3).clamp(1, 5);
    let distance = |name: &str| strsim::levenshtein(&asked.to_lowercase(), &name.to_lowercase());
    let distances = names.into_iter().map(|name| (distance(name), name));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_name_is_meant_if_it_is_near() {
        for (asked, expected) in
            [("pric", Some("price")), ("PRICE", Some("price")), ("room", Some("rooms")), ("label", None), ("x", None)]
        {
            assert_eq!(nearest(asked, ["price", "rooms", "age"]), expected, "{asked}");
        }
    }
}
