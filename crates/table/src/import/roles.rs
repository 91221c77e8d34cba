use std::path::Path;

use super::{ColumnOptions, ColumnRef};
use crate::Error;

/// What each column of a source is for. Columns are counted from 0, and a column that is nothing of these is left out.
#[derive(Debug)]
pub(crate) struct Roles {
    /// Every column of the source.
    pub(crate) names: Vec<String>,
    /// The columns that are features.
    pub(crate) features: Vec<usize>,
    pub(crate) label: usize,
    pub(crate) weight: Option<usize>,
}

impl Roles {
    /// The roles that `options` give to the columns of the source at `path`, which have those names.
    pub(crate) fn find(path: &Path, names: Vec<String>, options: &ColumnOptions) -> Result<Self, Error> {
        let find = |asked: &ColumnRef, role: &'static str| {
            let found = match asked {
                ColumnRef::Index(index) => (*index < names.len()).then_some(*index),
                ColumnRef::Name(name) => names.iter().position(|other| other == name),
            };
            let none = || Error::NoColumn { path: path.to_owned(), role, asked: asked.to_string(), found: names.clone() };
            found.ok_or_else(none)
        };
        let label = find(&options.label, "label")?;
        let weight = options.weight.as_ref().map(|weight| find(weight, "weight")).transpose()?;
        let dropped = options.drop.iter().map(|dropped| find(dropped, "columns to drop")).collect::<Result<Vec<_>, _>>()?;

        let wrong = |problem: String| Err(Error::ColumnRoles { path: path.to_owned(), problem });
        if weight == Some(label) {
            return wrong(format!("column `{}` is asked to be both label and weight; choose another weight", names[label]));
        }
        if let Some(&both) = dropped.iter().find(|&&col| col == label || Some(col) == weight) {
            return wrong(format!("column `{}` is asked to be dropped and to be label or weight; choose one", names[both]));
        }
        let is_feature = |col: &usize| *col != label && Some(*col) != weight && !dropped.contains(col);
        let features: Vec<usize> = (0..names.len()).filter(is_feature).collect();
        if features.is_empty() {
            return wrong(format!("no column is left for features, the file has {names:?}; is the delimiter right?"));
        }
        Ok(Self { names, features, label, weight })
    }
}
