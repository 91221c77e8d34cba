//! The format of dates in a file: its pattern of `strftime`.

use brisk_table::DateFormat;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(format: &DateFormat, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(format)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateFormat, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    DateFormat::named(&pattern).ok_or_else(|| D::Error::custom(format!("{pattern:?} is not a format of dates that is read")))
}
