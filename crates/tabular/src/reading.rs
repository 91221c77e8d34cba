use std::borrow::Cow;

use brisk_table::{DateFormat, IsoTime};
use serde::{Deserialize, Serialize};

use crate::date_pattern;

/// How a number is read from the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Reading {
    /// As it is.
    Number,
    /// Its difference to this number, computed in `f64`: so a number that is large but close to others, such as a time stamp,
    /// keeps its digits.
    Offset {
        /// The number that is subtracted.
        offset: f64,
    },
    /// A part of a date.
    Date {
        /// Which part.
        part: DatePart,
        /// How the dates are written.
        #[serde(with = "date_pattern")]
        format: DateFormat,
    },
}

/// A number that is read from a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DatePart {
    /// The year.
    Year,
    /// The month, from 1 to 12.
    Month,
    /// The day of the week, from 0 for Monday to 6.
    Weekday,
    /// The hour of its time, with a fraction; 0 for a date without a time.
    Hour,
    /// Days since this day, the first one of the training table, which is counted from 1970-01-01, with a fraction for the time.
    Days(i64),
}

impl Reading {
    /// The number of a feature; NaN if it is missing. Dates are not features.
    pub(super) fn of_number(self, value: f32) -> f32 {
        match self {
            Self::Offset { offset } => (f64::from(value) - offset) as f32,
            _ => value,
        }
    }

    /// The number of a cell with text; `None` if the text is something else.
    pub(super) fn of_text(self, text: &str) -> Option<f32> {
        Some(match self {
            Self::Number => decimal(text)? as f32,
            Self::Offset { offset } => (decimal(text)? - offset) as f32,
            Self::Date { part, format } => part.of(format.parse(text)?),
        })
    }

    /// A number that was read from a column, in the units of the column.
    pub(super) fn in_units(self, value: f32) -> f64 {
        match self {
            Self::Offset { offset } => f64::from(value) + offset,
            _ => value.into(),
        }
    }

    /// The name of a feature that is read from a column in this way.
    pub(super) fn feature_name(self, column: &str) -> String {
        match self {
            Self::Number | Self::Offset { .. } => column.to_owned(),
            other => format!("{column}_{}", other.name()),
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Offset { .. } => "offset",
            Self::Date { part, .. } => part.name(),
        }
    }

    /// Whether other parts of the same date may be read from the column.
    pub(super) fn is_part_of_date(self) -> bool {
        matches!(self, Self::Date { .. })
    }

    /// What cells are expected to be.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Date { format: DateFormat::ISO, .. } => "a date of ISO 8601".to_owned(),
            Self::Date { format, .. } => format!("a date such as {}", format.example()),
            _ => "a number".to_owned(),
        }
    }
}

impl DatePart {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Weekday => "weekday",
            Self::Hour => "hour",
            Self::Days(_) => "days",
        }
    }

    fn of(self, time: IsoTime) -> f32 {
        let seconds = time.seconds.unwrap_or(0.0);
        match self {
            Self::Year => f32::from(time.year),
            Self::Month => f32::from(time.month),
            Self::Weekday => f32::from(time.weekday()),
            Self::Hour => (seconds / 3600.0) as f32,
            Self::Days(first) => ((time.days() - first) as f64 + seconds / 86_400.0) as f32,
        }
    }
}

/// The whole number in the midst of others.
pub(super) fn middle(min: f64, max: f64) -> f64 {
    let middle = (min / 2.0 + max / 2.0).round();
    if middle.is_finite() { middle } else { 0.0 }
}

/// A number in few digits: those of `f32`, if it is one.
pub(super) fn shortest(number: f64) -> String {
    let rounded = number as f32;
    let is_f32 = f64::from(rounded) == number;
    // Others would have many zeros, or digits that say nothing.
    let is_plain = number == 0.0 || !number.is_finite() || (1e-5..1e16).contains(&number.abs());
    match (is_f32, is_plain) {
        (true, true) => rounded.to_string(),
        (true, false) => format!("{rounded:e}"),
        (false, true) => number.to_string(),
        (false, false) => format!("{number:e}"),
    }
}

/// A number with either decimal mark.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let plain = text.trim().replace('\u{2212}', "-").replace(',', ".");
    plain.parse().ok().filter(|number: &f64| number.is_finite())
}

/// How a column of text is converted to numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decoding {
    /// Numbers of which `f32` has too few digits; they become differences to a number in their midst.
    Number,
    /// Dates in this format: year, month, day of the week, hour if there are times, and days since the first one.
    Date(DateFormat),
}

impl Decoding {
    /// The readings for a column with these values.
    pub(super) fn readings(self, values: &[String]) -> Vec<Reading> {
        match self {
            Self::Number => {
                let numbers = values.iter().filter_map(|value| decimal(value));
                let (min, max) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), x| (min.min(x), max.max(x)));
                vec![Reading::Offset { offset: middle(min, max) }]
            }
            Self::Date(format) => {
                let times: Vec<IsoTime> = values.iter().filter_map(|value| format.parse(value)).collect();
                let first = times.iter().map(IsoTime::days).min().unwrap_or(0);
                let has_times = times.iter().any(|time| time.seconds.is_some_and(|seconds| seconds != 0.0));
                let mut parts = vec![DatePart::Year, DatePart::Month, DatePart::Weekday];
                parts.extend(has_times.then_some(DatePart::Hour));
                parts.push(DatePart::Days(first));
                parts.into_iter().map(|part| Reading::Date { part, format }).collect()
            }
        }
    }
}

/// Text as it is compared: after the Unicode normalization form C.
pub(super) fn nfc(text: &str) -> Cow<'_, str> {
    use unicode_normalization::UnicodeNormalization;
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}
