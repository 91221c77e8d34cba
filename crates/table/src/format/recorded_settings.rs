use serde_json::{Map, Value, json};

use super::json_entry::{parse_json, strings, wrong};
use crate::error::FormatError;

pub(super) const SETTINGS: &str = "settings";

/// The settings of an import that determine what its values mean, so that an import that matches the table uses them too.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordedSettings {
    /// Words and numbers that count as missing, without surrounding blanks.
    pub(crate) missing_values: Vec<String>,
    /// The numbers that were subtracted from features and labels, by the names of their columns.
    pub(crate) offsets: Vec<(String, f64)>,
    /// The column with the weights of rows.
    pub(crate) weight: Option<String>,
    /// Whether photos are as they are stored, and not turned upright.
    pub(crate) photos_as_stored: bool,
}

impl RecordedSettings {
    /// Without the settings that have their default; `None` if all have.
    pub(super) fn encode(&self) -> Option<String> {
        let mut entry = Map::new();
        if !self.missing_values.is_empty() {
            entry.insert("missing_values".to_owned(), json!(self.missing_values));
        }
        if !self.offsets.is_empty() {
            let offsets = self.offsets.iter().map(|(column, offset)| (column.clone(), json!(offset)));
            entry.insert("offsets".to_owned(), Value::Object(offsets.collect()));
        }
        if let Some(column) = &self.weight {
            entry.insert("weight".to_owned(), json!(column));
        }
        if self.photos_as_stored {
            entry.insert("orientation".to_owned(), json!("stored"));
        }
        (!entry.is_empty()).then(|| Value::Object(entry).to_string())
    }

    pub(super) fn parse(text: &str) -> Result<Self, FormatError> {
        let value = parse_json(SETTINGS, text)?;
        let bad = |problem: &str| wrong(SETTINGS, problem.to_owned());
        let entry = value.as_object().ok_or_else(|| bad("is not an object"))?;
        let offset = |(column, offset): (&String, &Value)| Some((column.clone(), offset.as_f64()?));
        let offsets = |offsets: &Value| offsets.as_object()?.iter().map(offset).collect::<Option<_>>();
        Ok(Self {
            missing_values: match entry.get("missing_values") {
                None => Vec::new(),
                Some(words) => strings(words).ok_or_else(|| bad("`missing_values` is not an array of strings"))?,
            },
            offsets: match entry.get("offsets") {
                None => Vec::new(),
                Some(given) => offsets(given).ok_or_else(|| bad("`offsets` is not an object of numbers"))?,
            },
            weight: match entry.get("weight") {
                None => None,
                Some(column) => Some(column.as_str().ok_or_else(|| bad("`weight` is not a string"))?.to_owned()),
            },
            photos_as_stored: match entry.get("orientation") {
                None => false,
                Some(Value::String(stored)) if stored == "stored" => true,
                Some(_) => return Err(bad("`orientation` is not \"stored\"")),
            },
        })
    }
}
