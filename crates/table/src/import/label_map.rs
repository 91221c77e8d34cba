//! Integer labels of arrays as class numbers.

use std::collections::HashMap;

use super::Like;
use super::numbers::Values;
use crate::error::{Error, SourceError};

/// The most classes that integer labels may stand for.
const MAX_CLASSES: i64 = 1 << 16;

/// How the labels of an array become those of the table.
#[derive(Debug)]
pub(crate) enum LabelMap {
    /// They are stored as they are.
    Plain,
    /// `first` is the first class; `largest` is the largest label so far.
    From { first: i64, largest: i64 },
    /// They are the names of these classes.
    Classes(HashMap<i64, i64>, Vec<String>),
}

impl LabelMap {
    /// Labels from `first` on, or those of the classes of the table to match, if it has any.
    pub(crate) fn of(first: i64, like: Option<&Like>) -> Result<Self, Error> {
        let Some(like) = like.filter(|like| !like.metadata.classes.is_empty()) else {
            return Ok(if first == 0 { Self::Plain } else { Self::From { first, largest: first } });
        };
        let numbered = like.metadata.classes.iter().zip(0..).map(|(name, number)| Some((name.parse().ok()?, number)));
        match numbered.collect::<Option<HashMap<i64, i64>>>() {
            Some(numbers) if numbers.len() == like.metadata.classes.len() => {
                Ok(Self::Classes(numbers, like.metadata.classes.clone()))
            }
            _ => Err(like.wrong("its classes have names, but labels of arrays are numbers")),
        }
    }

    /// Converts the labels of rows from `row` on, in the array called `name`.
    pub(super) fn apply(&mut self, labels: &mut Values, row: u64, name: &str) -> Result<(), SourceError> {
        if matches!(self, Self::Plain) {
            return Ok(());
        }
        let wrong = |at: usize, found: String, expected: String| {
            let part = format!("row {}, `{name}`", row + at as u64);
            SourceError::unexpected(part, found, expected, &[])
        };
        let mut convert = |at: usize, label: i64| match self {
            Self::Plain => Ok(label),
            Self::From { first, largest } => match label.checked_sub(*first) {
                Some(class) if (0..MAX_CLASSES).contains(&class) => {
                    *largest = label.max(*largest);
                    Ok(class)
                }
                _ => {
                    let last = first.saturating_add(MAX_CLASSES - 1);
                    let expected = format!("labels from {first}, which was given as the first, to {last}");
                    Err(wrong(at, format!("the label {label}"), expected))
                }
            },
            Self::Classes(numbers, names) => match numbers.get(&label) {
                Some(&class) => Ok(class),
                None => {
                    let expected = format!("one of the {} classes of the table to match", names.len());
                    Err(wrong(at, format!("the label {label}"), expected))
                }
            },
        };
        match labels {
            Values::U8(labels) => labels.iter_mut().enumerate().try_for_each(|(at, label)| {
                // A class number is less than the label, or than the number of classes of the table to match.
                let class = convert(at, i64::from(*label))?;
                let too_many = || wrong(at, format!("class {class}"), "at most 256 classes for labels of 8 bits".to_owned());
                *label = u8::try_from(class).map_err(|_| too_many())?;
                Ok(())
            }),
            Values::I64(labels) => labels.iter_mut().enumerate().try_for_each(|(at, label)| {
                *label = convert(at, *label)?;
                Ok(())
            }),
            Values::F32(_) => Err(wrong(0, "labels that are floats".to_owned(), "integers, to be numbers of classes".to_owned())),
        }
    }

    /// The names of the classes: none for labels that are stored as they are.
    pub(super) fn into_names(self) -> Vec<String> {
        match self {
            Self::Plain => Vec::new(),
            Self::From { first, largest } => (first..=largest).map(|label| label.to_string()).collect(),
            Self::Classes(_, names) => names,
        }
    }
}
