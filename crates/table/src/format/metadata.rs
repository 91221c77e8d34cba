use serde_json::{Value, json};

use super::json_entry::{parse_json, strings, wrong};
use super::recorded_settings::{RecordedSettings, SETTINGS};
use crate::dictionary::Dictionary;
use crate::error::FormatError;
use crate::source_identity::SourceIdentity;
use crate::statistics::{ColumnStatistics, n_statistics};

const VERSION: &str = "1";
const DICTIONARIES: &str = "dictionaries";
const CLASSES: &str = "classes";
const IMPUTED: &str = "imputed";
const INDICATORS: &str = "indicators";
const LABEL: &str = "label";
const LABEL_NAMES: &str = "label_names";

/// The contents of a table's `__metadata__`.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableMetadata {
    /// Whether this crate wrote the file.
    pub(crate) is_ours: bool,
    /// Empty if the file has no names of columns.
    pub(crate) column_names: Vec<String>,
    /// One for each label, or empty.
    pub(crate) label_names: Vec<String>,
    /// One for each column of categories; empty in a file written by another program.
    pub(crate) dictionaries: Vec<Dictionary>,
    /// The names of the classes, if labels are class numbers.
    pub(crate) classes: Vec<String>,
    pub(crate) statistics: Option<Vec<ColumnStatistics>>,
    /// The values that replaced missing values, one for each feature except the indicators.
    pub(crate) imputed: Option<Vec<f32>>,
    /// The features that have an indicator. The indicators are the last features.
    pub(crate) indicators: Vec<String>,
    pub(crate) settings: RecordedSettings,
    pub(crate) source: Option<SourceIdentity>,
    /// How the importer was told to read the source; only ever compared.
    pub(crate) import: Option<String>,
}

impl TableMetadata {
    pub(crate) fn encode(&self) -> Vec<(&'static str, String)> {
        let mut entries = vec![("brisk_table", VERSION.to_owned())];
        if !self.column_names.is_empty() {
            entries.push(("columns", json!(self.column_names).to_string()));
        }
        match &self.label_names[..] {
            [] => {}
            [name] => entries.push((LABEL, name.clone())),
            names => entries.push((LABEL_NAMES, json!(names).to_string())),
        }
        if !self.dictionaries.is_empty() {
            entries.push((DICTIONARIES, encode_dictionaries(&self.dictionaries).to_string()));
        }
        if !self.classes.is_empty() {
            entries.push((CLASSES, json!(self.classes).to_string()));
        }
        if !self.indicators.is_empty() {
            entries.push((INDICATORS, json!(self.indicators).to_string()));
        }
        if let Some(values) = &self.imputed {
            entries.push((IMPUTED, json!(values).to_string()));
        }
        if let Some(settings) = self.settings.encode() {
            entries.push((SETTINGS, settings));
        }
        if let Some(statistics) = &self.statistics {
            entries.push(("statistics", encode_statistics(statistics).to_string()));
        }
        if let Some(SourceIdentity { file_name, n_bytes, modified_ns }) = &self.source {
            let source = json!({ "file_name": file_name, "n_bytes": n_bytes, "modified_ns": modified_ns });
            entries.push(("source", source.to_string()));
        }
        if let Some(import) = &self.import {
            entries.push(("import", import.clone()));
        }
        entries
    }

    /// Reads the entries that are present; a file written by another program has none.
    pub(crate) fn parse(entries: &[(String, String)], row_shape: &[usize], n_categories: usize) -> Result<Self, FormatError> {
        let entry = |key: &str| entries.iter().find(|entry| entry.0 == key).map(|entry| entry.1.as_str());
        match entry("brisk_table") {
            Some(VERSION) => {}
            Some(found) => return Err(FormatError::Version { found: found.to_owned(), expected: VERSION }),
            None => return Ok(Self::default()),
        }
        let n_cols: usize = row_shape.iter().product();
        let names = |key| entry(key).map_or(Ok(Vec::new()), |text| parse_names(key, text));
        let column_names = names("columns")?;
        if entry("columns").is_some() && column_names.len() != n_cols {
            return Err(wrong("columns", format!("names {} columns, `features` has {n_cols}", column_names.len())));
        }
        let indicators = names(INDICATORS)?;
        let Some(n_features) = n_cols.checked_sub(indicators.len()) else {
            return Err(wrong(INDICATORS, format!("names {} columns, `features` has {n_cols} in all", indicators.len())));
        };
        Ok(Self {
            is_ours: true,
            column_names,
            classes: names(CLASSES)?,
            imputed: entry(IMPUTED).map(|text| parse_imputed(text, n_features)).transpose()?,
            indicators,
            settings: entry(SETTINGS).map_or(Ok(RecordedSettings::default()), RecordedSettings::parse)?,
            label_names: match entry(LABEL) {
                Some(name) => vec![name.to_owned()],
                None => names(LABEL_NAMES)?,
            },
            dictionaries: parse_dictionaries(entry(DICTIONARIES).unwrap_or("[]"), n_categories)?,
            statistics: entry("statistics").map(|text| parse_statistics(text, n_statistics(row_shape))).transpose()?,
            source: entry("source").map(parse_source).transpose()?,
            import: entry("import").map(str::to_owned),
        })
    }
}

/// One array per statistic, so that Python can use `numpy.array(statistics["mean"])`; values that are not numbers in JSON are
/// null.
fn encode_statistics(statistics: &[ColumnStatistics]) -> Value {
    let column = |of: fn(&ColumnStatistics) -> f64| statistics.iter().map(|s| json!(of(s))).collect::<Vec<_>>();
    json!({
        "count": statistics.iter().map(|s| s.count).collect::<Vec<_>>(),
        "mean": column(|s| s.mean),
        "std": column(|s| s.std),
        "min": column(|s| s.min),
        "max": column(|s| s.max),
    })
}

fn parse_statistics(text: &str, n: usize) -> Result<Vec<ColumnStatistics>, FormatError> {
    const KEY: &str = "statistics";
    let value = parse_json(KEY, text)?;
    let counts = items(KEY, &value["count"], n, "`count` is", "column or channel")?;
    let numbers = |name: &str| numbers(KEY, &value[name], n, &format!("`{name}` is"), "column or channel");
    let (mean, std, min, max) = (numbers("mean")?, numbers("std")?, numbers("min")?, numbers("max")?);
    let column = |(col, count): (usize, &Value)| {
        let count = count.as_u64().ok_or_else(|| wrong(KEY, format!("{count} is not a count")))?;
        Ok(ColumnStatistics { count, mean: mean[col], std: std[col], min: min[col], max: max[col] })
    };
    counts.iter().enumerate().map(column).collect()
}

/// The items of an array of `n`, one for each `of`.
fn items<'a>(key: &'static str, array: &'a Value, n: usize, what: &str, of: &str) -> Result<&'a [Value], FormatError> {
    let items = array.as_array().filter(|array| array.len() == n);
    items.map(Vec::as_slice).ok_or_else(|| wrong(key, format!("{what} not an array of {n}, one for each {of}")))
}

/// Such items as numbers; NaN is null in JSON.
fn numbers(key: &'static str, array: &Value, n: usize, what: &str, of: &str) -> Result<Vec<f64>, FormatError> {
    let number = |value: &Value| match value {
        Value::Null => Ok(f64::NAN),
        value => value.as_f64().ok_or_else(|| wrong(key, format!("{value} is not a number"))),
    };
    items(key, array, n, what, of)?.iter().map(number).collect()
}

fn encode_dictionaries(dictionaries: &[Dictionary]) -> Value {
    dictionaries.iter().map(|dictionary| json!({ "name": dictionary.name(), "values": dictionary.values() })).collect()
}

fn parse_dictionaries(text: &str, n_categories: usize) -> Result<Vec<Dictionary>, FormatError> {
    let value = parse_json(DICTIONARIES, text)?;
    let dictionaries = items(DICTIONARIES, &value, n_categories, "is", "column of `categories`")?;
    let parse = |dictionary: &Value| {
        let name = dictionary["name"].as_str().ok_or_else(|| wrong(DICTIONARIES, "a `name` is not a string".to_owned()))?;
        let values = strings(&dictionary["values"])
            .ok_or_else(|| wrong(DICTIONARIES, format!("the `values` of `{name}` are not an array of strings")))?;
        Dictionary::parse(name.to_owned(), values)
    };
    dictionaries.iter().map(parse).collect()
}

fn parse_names(key: &'static str, text: &str) -> Result<Vec<String>, FormatError> {
    strings(&parse_json(key, text)?).ok_or_else(|| wrong(key, "is not an array of strings".to_owned()))
}

fn parse_imputed(text: &str, n_features: usize) -> Result<Vec<f32>, FormatError> {
    let values = numbers(IMPUTED, &parse_json(IMPUTED, text)?, n_features, "is", "feature but the indicators")?;
    // The nearest `f32` is the one that was written, since `f64` represents every `f32` exactly.
    Ok(values.into_iter().map(|x| x as f32).collect())
}

fn parse_source(text: &str) -> Result<SourceIdentity, FormatError> {
    const KEY: &str = "source";
    let value = parse_json(KEY, text)?;
    let number = |name: &str| value[name].as_u64().ok_or_else(|| wrong(KEY, format!("`{name}` is not a count")));
    let file_name = value["file_name"].as_str().ok_or_else(|| wrong(KEY, "`file_name` is not a string".to_owned()))?;
    Ok(SourceIdentity { file_name: file_name.to_owned(), n_bytes: number("n_bytes")?, modified_ns: number("modified_ns")? })
}
