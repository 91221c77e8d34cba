use std::str::FromStr;

use brisk_loader::{Encoding, Names, RowSource};
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
    #[serde(with = "as_pair", skip_serializing_if = "is_stored")]
    pub(crate) encoding: Encoding,
}

impl RowNames {
    /// The name of the metadata of checkpoints and models.
    pub(crate) const KEY: &'static str = "input.names";

    pub(crate) fn of<S: RowSource + ?Sized>(source: &S) -> Self {
        let Names { columns, labels, classes, categories, encoding } = source.names();
        let categories = categories.into_iter().map(|(name, values)| (name.to_owned(), values.to_vec())).collect();
        Self { columns: columns.to_vec(), labels: labels.to_vec(), classes: classes.to_vec(), categories, encoding }
    }

    /// Checks that `source` has the same names wherever both have one: of columns and categories, and, if its labels are read, of
    /// labels and classes; and that its values have the same encoding.
    pub(crate) fn check<S: RowSource>(&self, set: &'static str, source: &S, reads_labels: bool) -> Result<(), Error> {
        let found = Self::of(source);
        self.check_encoding(set, found.encoding, reads_labels)?;
        let Some(Difference { kind, at, found, expected }) = self.difference(&found, reads_labels) else { return Ok(()) };
        let expected = format!(
            "`{expected}` as in the training rows; import them like the training table (`ColumnOptions::like`, `--like`), or rename what means the same"
        );
        Err(Error::row_set(set, format!("{kind} {at} is `{found}`"), expected))
    }

    /// The first name that differs from the one expected, where both have one.
    pub(crate) fn difference(&self, found: &Self, reads_labels: bool) -> Option<Difference> {
        let of_labels =
            |kind, found: &[String], expected: &[String]| if reads_labels { differing(kind, found, expected) } else { None };
        let of_categories = || {
            self.categories.iter().zip(&found.categories).find_map(|((name, expected), (_, found))| {
                let difference = differing(&format!("category `{name}`, code"), found, expected)?;
                Some(Difference { at: difference.at + 1, ..difference })
            })
        };
        let names = |of: &Self| of.categories.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        differing("column", &found.columns, &self.columns)
            .or_else(|| differing("categorical column", names(found), names(self)))
            .or_else(|| of_labels("label", &found.labels, &self.labels))
            .or_else(|| of_labels("class", &found.classes, &self.classes))
            .or_else(of_categories)
    }

    /// [`check_encoding`] of rows whose labels may be ignored.
    pub(crate) fn check_encoding(&self, set: &'static str, found: Encoding, reads_labels: bool) -> Result<(), Error> {
        let labels = self.encoding.labels.filter(|_| reads_labels);
        check_encoding(set, found, Encoding { labels, ..self.encoding })
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Checks that the values of rows have this [encoding](brisk_loader::Names::encoding); what is `None` of it is not compared.
///
/// # Errors
/// [`Error::RowSet`] with the name of the `set`.
pub fn check_encoding(set: &'static str, found: Encoding, expected: Encoding) -> Result<(), Error> {
    let parts = [("features", found.inputs, expected.inputs), ("labels", found.labels, expected.labels)];
    let differing = parts.into_iter().find(|(_, found, expected)| expected.is_some() && found != expected);
    let Some((what, found, _)) = differing else { return Ok(()) };
    let how = if found.is_some() { "converted in another way" } else { "not converted" };
    let expected = "values like those of the model or of the other rows; convert them by the same preprocessing and target, as \
                    `TabularModel::rows` does, or say which encoding they have (`Rows::with_encoding`, `Model::set_encoding`)";
    Err(Error::row_set(set, format!("{what} that were {how}"), expected))
}

fn is_stored(encoding: &Encoding) -> bool {
    *encoding == Encoding::default()
}

/// An encoding as the numbers of its inputs and labels.
mod as_pair {
    use brisk_loader::Encoding;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(encoding: &Encoding, serializer: S) -> Result<S::Ok, S::Error> {
        [encoding.inputs, encoding.labels].serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Encoding, D::Error> {
        <[Option<u64>; 2]>::deserialize(deserializer).map(|[inputs, labels]| Encoding { inputs, labels })
    }
}

/// As in the metadata of a model's file.
impl FromStr for RowNames {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

/// A name that differs.
pub(crate) struct Difference {
    pub(crate) kind: String,
    /// Which one of its kind.
    pub(crate) at: usize,
    pub(crate) found: String,
    pub(crate) expected: String,
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
