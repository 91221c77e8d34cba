//! Entries of the metadata that are JSON.

use serde_json::Value;

use crate::error::FormatError;

/// The entries of an object of strings.
pub(super) fn strings_of(object: Value) -> Option<Vec<(String, String)>> {
    let Value::Object(object) = object else { return None };
    let entry = |(key, value)| if let Value::String(value) = value { Some((key, value)) } else { None };
    object.into_iter().map(entry).collect()
}

pub(super) fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

pub(super) fn parse_json(key: &'static str, text: &str) -> Result<Value, FormatError> {
    serde_json::from_str(text).map_err(|error| wrong(key, format!("is not JSON: {error}")))
}

pub(super) fn wrong(key: &'static str, problem: String) -> FormatError {
    FormatError::Metadata { key, problem }
}
