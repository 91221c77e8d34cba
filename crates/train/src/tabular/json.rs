//! The parts of a model as JSON.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use brisk_table::{Decimal, Dictionary};
use serde_json::{Value, json};

use super::preprocessing::dictionary;
use super::{ColumnScale, Network, NumberColumn, Preprocessing, Reading, Scaling, TabularError, Target, TextOptions};
use crate::error::Error;

pub(super) fn network_json(network: &Network) -> Value {
    match network {
        Network::Mlp { hidden } => json!({ "kind": "mlp", "hidden": hidden }),
        Network::ResidualMlp { width, hidden, n_blocks } => {
            json!({ "kind": "resnet", "width": width, "hidden": hidden, "blocks": n_blocks })
        }
    }
}

pub(super) fn target_json(target: &Target) -> Value {
    match target {
        Target::Classes { name, classes, labels } => {
            json!({ "kind": "classes", "name": name, "classes": classes, "labels": labels })
        }
        Target::Number { name, offset, mean, std } => {
            json!({ "kind": "number", "name": name, "offset": offset, "mean": mean, "std": std })
        }
    }
}

pub(super) fn preprocessing_json(preprocessing: &Preprocessing) -> Value {
    let number = |column: &NumberColumn| {
        let scale = match &column.scale {
            ColumnScale::Standard { mean, std } => json!({ "mean": mean, "std": std }),
            ColumnScale::Quantile { quantiles } => json!({ "quantiles": quantiles }),
        };
        let mut reading = json!({ "kind": column.reading.name() });
        match column.reading {
            Reading::Offset(offset) => reading["offset"] = json!(offset),
            Reading::Days { first } => reading["first"] = json!(first),
            _ => {}
        }
        json!({
            "name": column.name, "column": column.column, "reading": reading, "mean": column.mean, "range": column.range,
            "has_indicator": column.has_indicator, "scale": scale,
        })
    };
    let category = |column: &Dictionary| json!({ "name": column.name(), "values": column.values() });
    json!({
        "scaling": preprocessing.scaling.name(),
        "numbers": preprocessing.numbers.iter().map(number).collect::<Vec<_>>(),
        "categories": preprocessing.categories.iter().map(category).collect::<Vec<_>>(),
    })
}

pub(super) fn text_json(text: &TextOptions) -> Value {
    let decimal = match text.decimal {
        Decimal::Point => "point",
        Decimal::Comma => "comma",
    };
    json!({ "decimal": decimal, "missing_values": text.missing_values })
}

/// A value within a file, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    path: &'a Path,
    place: String,
    value: &'a Value,
}

impl<'a> Part<'a> {
    /// The whole file.
    pub(super) fn new(path: &'a Path, value: &'a Value) -> Self {
        Self { path, place: String::new(), value }
    }

    pub(super) fn get(&self, key: &str) -> Result<Self, Error> {
        let place = if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) };
        match self.value.get(key) {
            Some(value) => Ok(Self { path: self.path, place, value }),
            None => Err(TabularError::ModelFile { path: self.path.to_owned(), problem: format!("`{place}` is missing") }.into()),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<Self>, Error> {
        let list = self.value.as_array().ok_or_else(|| self.refused("an array"))?;
        let part = |(i, value)| Self { path: self.path, place: format!("{}[{i}]", self.place), value };
        Ok(list.iter().enumerate().map(part).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.refused("a string"))
    }

    pub(super) fn number(&self) -> Result<f64, Error> {
        self.value.as_f64().ok_or_else(|| self.refused("a number"))
    }

    pub(super) fn count(&self) -> Result<usize, Error> {
        self.value.as_u64().and_then(|count| usize::try_from(count).ok()).ok_or_else(|| self.refused("a whole number"))
    }

    pub(super) fn text_options(&self) -> Result<TextOptions, Error> {
        let decimal = match self.get("decimal")?.text()? {
            "point" => Decimal::Point,
            "comma" => Decimal::Comma,
            _ => return Err(self.get("decimal")?.refused("`point` or `comma`")),
        };
        Ok(TextOptions { decimal, missing_values: self.get("missing_values")?.strings()?, ..TextOptions::default() })
    }

    pub(super) fn network(&self) -> Result<Network, Error> {
        let size = |key: &str| match self.get(key)?.count()? {
            size @ 1..=MAX_SIZE => Ok(size),
            _ => Err(self.get(key)?.refused("a size from 1 to 2^20")),
        };
        match self.get("kind")?.text()? {
            "mlp" => {
                let hidden = self.get("hidden")?.list()?.iter().map(Part::count).collect::<Result<Vec<_>, _>>()?;
                if hidden.iter().any(|size| !(1..=MAX_SIZE).contains(size)) {
                    return Err(self.get("hidden")?.refused("sizes from 1 to 2^20"));
                }
                Ok(Network::Mlp { hidden })
            }
            "resnet" => Ok(Network::ResidualMlp {
                width: size("width")?,
                hidden: size("hidden")?,
                n_blocks: self.get("blocks")?.count()?,
            }),
            _ => Err(self.get("kind")?.refused("`mlp` or `resnet`")),
        }
    }

    pub(super) fn target(&self) -> Result<Target, Error> {
        let name = self.get("name")?.text()?.to_owned();
        match self.get("kind")?.text()? {
            "classes" => {
                let (classes, labels) = (self.get("classes")?.different_strings()?, self.get("labels")?.floats()?);
                if !labels.is_sorted_by(|a, b| a < b) {
                    return Err(self.get("labels")?.refused("different numbers in ascending order"));
                }
                if classes.len() != labels.len() || classes.len() < 2 {
                    return Err(self.get("classes")?.refused("two or more classes, and a label for each"));
                }
                Ok(Target::Classes { name, classes, labels })
            }
            "number" => {
                let [offset, mean] = [self.get("offset")?.number()?, self.get("mean")?.number()?];
                Ok(Target::Number { name, offset, mean, std: self.get("std")?.std()? })
            }
            _ => Err(self.get("kind")?.refused("`classes` or `number`")),
        }
    }

    pub(super) fn preprocessing(&self) -> Result<Preprocessing, Error> {
        let scaling = match self.get("scaling")?.text()? {
            "standard" => Scaling::Standard,
            "quantile" => Scaling::Quantile,
            _ => return Err(self.get("scaling")?.refused("`standard` or `quantile`")),
        };
        let numbers: Vec<NumberColumn> =
            self.get("numbers")?.list()?.iter().map(Part::number_column).collect::<Result<_, _>>()?;
        let category = |column: Part<'_>| dictionary(column.get("name")?.text()?, column.get("values")?.different_strings()?);
        let categories: Vec<Dictionary> =
            self.get("categories")?.list()?.into_iter().map(category).collect::<Result<_, Error>>()?;
        // A column has one use; only the parts of a date are several.
        let mut columns = HashMap::new();
        let uses = numbers.iter().map(|column| (column.column.as_str(), column.reading.name()));
        for (name, reading) in uses.chain(categories.iter().map(|column| (column.name(), "category"))) {
            let earlier: &mut Vec<&str> = columns.entry(name).or_default();
            let is_part = |reading: &str| !matches!(reading, "number" | "offset" | "category");
            if earlier.iter().any(|&other| other == reading || !is_part(other) || !is_part(reading)) {
                return Err(self.wrong(format!("has column `{name}` twice")));
            }
            earlier.push(reading);
        }
        Ok(Preprocessing { scaling, numbers, categories })
    }

    fn number_column(&self) -> Result<NumberColumn, Error> {
        let scale = self.get("scale")?;
        let scale = if scale.value.get("quantiles").is_some() {
            let quantiles = scale.get("quantiles")?;
            let values = quantiles.floats()?;
            if values.len() < 2 || !values.is_sorted() {
                return Err(quantiles.refused("two or more numbers in ascending order"));
            }
            ColumnScale::Quantile { quantiles: values }
        } else {
            ColumnScale::Standard { mean: scale.get("mean")?.number()?, std: scale.get("std")?.std()? }
        };
        let has_indicator = self.get("has_indicator")?;
        let has_indicator = has_indicator.value.as_bool().ok_or_else(|| has_indicator.refused("`true` or `false`"))?;
        let name = self.get("name")?.text()?.to_owned();
        let (column, reading) = (self.get("column")?.text()?.to_owned(), self.get("reading")?.reading()?);
        let range = self.get("range")?;
        let [min, max] = range.floats()?[..] else { return Err(range.refused("two numbers")) };
        if min > max {
            return Err(range.refused("two numbers in ascending order"));
        }
        Ok(NumberColumn { name, column, reading, mean: self.get("mean")?.number()?, range: [min, max], has_indicator, scale })
    }

    fn reading(&self) -> Result<Reading, Error> {
        Ok(match self.get("kind")?.text()? {
            "number" => Reading::Number,
            "offset" => Reading::Offset(self.get("offset")?.number()?),
            "year" => Reading::Year,
            "month" => Reading::Month,
            "weekday" => Reading::Weekday,
            "hour" => Reading::Hour,
            "days" => {
                let first = self.get("first")?;
                Reading::Days { first: first.value.as_i64().ok_or_else(|| first.refused("a whole number"))? }
            }
            _ => return Err(self.get("kind")?.refused("a way to read a column")),
        })
    }

    /// Every f32 is written exactly.
    fn float(&self) -> Result<f32, Error> {
        Some(self.number()? as f32)
            .filter(|number| number.is_finite())
            .ok_or_else(|| self.refused("a number in the range of f32"))
    }

    /// A standard deviation, by which numbers are divided.
    fn std(&self) -> Result<f64, Error> {
        let std = self.number()?;
        if std > 0.0 && (1.0 / std).is_finite() && std <= f64::from(f32::MAX) {
            Ok(std)
        } else {
            Err(self.refused("a positive number, as deviations are"))
        }
    }

    fn floats(&self) -> Result<Vec<f32>, Error> {
        self.list()?.iter().map(Part::float).collect()
    }

    fn strings(&self) -> Result<Vec<String>, Error> {
        self.list()?.iter().map(|part| part.text().map(str::to_owned)).collect()
    }

    fn different_strings(&self) -> Result<Vec<String>, Error> {
        let strings = self.strings()?;
        let mut seen = HashSet::new();
        match strings.iter().find(|&string| !seen.insert(string)) {
            Some(twice) => Err(self.wrong(format!("has {twice:?} twice"))),
            None => Ok(strings),
        }
    }

    fn refused(&self, expected: &str) -> Error {
        self.wrong(format!("is not {expected}"))
    }

    fn wrong(&self, problem: String) -> Error {
        let problem = format!("`{}` {problem}", self.place);
        TabularError::ModelFile { path: self.path.to_owned(), problem }.into()
    }
}

/// The largest size of a layer in a file.
const MAX_SIZE: usize = 1 << 20;
