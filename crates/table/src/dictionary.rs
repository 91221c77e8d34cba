use std::borrow::Cow;
use std::fmt;

use crate::error::{Error, FormatError};

/// The values of a categorical column, and the codes that stand for them in a table.
///
/// The *k*-th value has code *k*, counted from 1. Code 0 stands for a missing or unknown value, so an embedding of the column has
/// [`n_codes`](Self::n_codes) rows, the first of which is for those.
///
/// # Examples
/// ```
/// use brisk_table::Dictionary;
///
/// let workclass = Dictionary::new("workclass", ["State-gov", "Private"])?;
/// assert_eq!((workclass.code("Private"), workclass.code("Astronaut")), (2, 0));
/// assert_eq!((workclass.value(2), workclass.value(0)), (Some("Private"), None));
/// assert_eq!(workclass.n_codes(), 3);
/// let rooms = Dictionary::new("rooms", ["3", "04"])?;
/// assert_eq!((rooms.code("3.0"), rooms.code("4")), (1, 0));
/// # Ok::<(), brisk_table::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Dictionary {
    name: String,
    values: Vec<String>,
    /// The codes, sorted by their values, for binary search.
    by_value: Vec<u32>,
}

/// The name and the number of values, which may be many.
impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("name", &self.name).field("n_values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// The dictionary of the column `name` with these values, in the order of their codes.
    ///
    /// # Errors
    /// [`Error::Schema`] if a value is given twice.
    pub fn new<V: Into<String>>(name: impl Into<String>, values: impl IntoIterator<Item = V>) -> Result<Self, Error> {
        let values = values.into_iter().map(Into::into).collect();
        Self::build(name.into(), values).map_err(|problem| Error::Schema { problem })
    }

    /// Like [`new`](Self::new), for values read from a file.
    pub(crate) fn parse(name: String, values: Vec<String>) -> Result<Self, FormatError> {
        Self::build(name, values).map_err(|problem| FormatError::Metadata { key: "dictionaries", problem })
    }

    fn build(name: String, values: Vec<String>) -> Result<Self, String> {
        let Ok(n_values) = u32::try_from(values.len()) else {
            return Err(format!("the dictionary of `{name}` has {} values, a code is a u32", values.len()));
        };
        let value = |code: u32| &values[code as usize - 1];
        let mut by_value: Vec<u32> = (1..=n_values).collect();
        by_value.sort_unstable_by(|&a, &b| value(a).cmp(value(b)));
        if let Some(twice) = by_value.windows(2).find(|pair| value(pair[0]) == value(pair[1])) {
            return Err(format!("the dictionary of `{name}` has {:?} twice; each value must be unique", value(twice[0])));
        }
        Ok(Self { name, values, by_value })
    }

    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values; the first has code 1.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// The number of codes: one more than the number of values, because 0 is also a code.
    pub fn n_codes(&self) -> usize {
        self.values.len() + 1
    }

    /// The code of a value; 0 if it is not in the dictionary. A value that differs only in how a whole number or a truth value is
    /// written counts as the same, if exactly that text is not in the dictionary: `3.0` is `3`, and `TRUE` is `True`.
    ///
    /// # Cost
    /// A binary search; up to five for a value that is not in the dictionary.
    pub fn code(&self, value: &str) -> u32 {
        let code = |value: &str| {
            let found = self.by_value.binary_search_by(|&code| self.values[code as usize - 1].as_str().cmp(value));
            found.ok().map(|at| self.by_value[at])
        };
        code(value).or_else(|| other_spellings(value).find_map(|other| code(&other))).unwrap_or(0)
    }

    /// The value of a code; `None` for 0, and for a code that is not in the dictionary.
    pub fn value(&self, code: u32) -> Option<&str> {
        let at = usize::try_from(code).ok()?.checked_sub(1)?;
        self.values.get(at).map(String::as_str)
    }
}

/// How other programs write the same whole number, as pandas writes `3.0` as soon as another value of the column is missing, or
/// the same truth value.
pub(crate) fn other_spellings(value: &str) -> impl Iterator<Item = Cow<'_, str>> {
    const TRUTHS: [[&str; 3]; 2] = [["True", "true", "TRUE"], ["False", "false", "FALSE"]];
    let digits = value.strip_prefix('-').unwrap_or(value);
    let whole = match digits.split_once('.') {
        Some((_, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => {
            &value[..value.len() - zeros.len() - 1]
        }
        _ => value,
    };
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = is_whole(whole.strip_prefix('-').unwrap_or(whole)).then(|| [whole.into(), format!("{whole}.0").into()]);
    let truths = TRUTHS.into_iter().filter(move |truths| truths.contains(&value));
    numbers.into_iter().flatten().chain(truths.flatten().map(Cow::from))
}
