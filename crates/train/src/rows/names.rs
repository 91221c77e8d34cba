use std::str::FromStr;

use brisk_loader::{Names, RowSource};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The names in some rows: in those that a model was trained on, they say what its columns, classes and codes mean.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RowNames {
    columns: Vec<String>,
    labels: Vec<String>,
    classes: Vec<String>,
    categories: Vec<(String, Vec<String>)>,
}

impl RowNames {
    pub(crate) fn of<S: RowSource + ?Sized>(source: &S) -> Self {
        let Names { columns, labels, classes, categories } = source.names();
        let categories = categories.into_iter().map(|(name, values)| (name.to_owned(), values.to_vec())).collect();
        Self { columns: columns.to_vec(), labels: labels.to_vec(), classes: classes.to_vec(), categories }
    }

    /// Checks that `source` has the same names wherever both have one: of columns and categories, and, if its labels are read, of
    /// labels and classes.
    ///
    /// # Errors
    /// [`Error::RowSet`] with the first name that differs.
    pub(crate) fn check<S: RowSource>(&self, set: &'static str, source: &S, reads_labels: bool) -> Result<(), Error> {
        let Names { columns, labels, classes, categories } = source.names();
        let of_labels = |kind, found, expected| if reads_labels { differing(kind, found, expected) } else { None };
        let names = categories.iter().map(|(name, _)| *name);
        let of_categories = || {
            self.categories.iter().zip(&categories).find_map(|((name, expected), (_, found))| {
                differing(&format!("category `{name}`, code"), found.iter(), expected.iter()).map(counted_from_1)
            })
        };
        let difference = differing("column", columns.iter(), self.columns.iter())
            .or_else(|| differing("categorical column", names, self.categories.iter().map(|(name, _)| name)))
            .or_else(|| of_labels("label", labels.iter(), self.labels.iter()))
            .or_else(|| of_labels("class", classes.iter(), self.classes.iter()))
            .or_else(of_categories);
        let Some(Difference { kind, at, found, expected }) = difference else { return Ok(()) };
        let expected = format!(
            "`{expected}` as in the training rows; import them like the training table (`ColumnOptions::like`, `--like`), or rename what means the same"
        );
        Err(Error::RowSet { set, found: format!("{kind} {at} is `{found}`"), expected: expected.into() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// As in the metadata of a model's file.
impl FromStr for RowNames {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

struct Difference {
    kind: String,
    at: usize,
    found: String,
    expected: String,
}

fn counted_from_1(difference: Difference) -> Difference {
    Difference { at: difference.at + 1, ..difference }
}

/// The first name that both lists have and that differs.
fn differing<A: AsRef<str>, B: AsRef<str>>(
    kind: &str,
    found: impl IntoIterator<Item = A>,
    expected: impl IntoIterator<Item = B>,
) -> Option<Difference> {
    let mut pairs = found.into_iter().zip(expected).enumerate();
    let (at, (found, expected)) = pairs.find(|(_, (found, expected))| found.as_ref() != expected.as_ref())?;
    Some(Difference { kind: kind.to_owned(), at, found: found.as_ref().to_owned(), expected: expected.as_ref().to_owned() })
}
