//! Columns of categories in a file: the name and the values of each.

use brisk_table::Dictionary;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Category {
    name: String,
    values: Vec<String>,
}

pub(crate) fn serialize<S: Serializer>(categories: &[Dictionary], serializer: S) -> Result<S::Ok, S::Error> {
    let category = |column: &Dictionary| Category { name: column.name().to_owned(), values: column.values().to_vec() };
    serializer.collect_seq(categories.iter().map(category))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Dictionary>, D::Error> {
    let categories = Vec::<Category>::deserialize(deserializer)?;
    let dictionary = |Category { name, values }| Dictionary::new(name, values).map_err(D::Error::custom);
    categories.into_iter().map(dictionary).collect()
}
