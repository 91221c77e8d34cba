//! The columns of a schema and their roles.

use arrow_schema::{DataType, Schema};

use super::values::{is_number, is_text};
use crate::error::SourceError;
use crate::import::{ColumnOptions, ColumnRef, Like, Roles};
use crate::remedy::{Expected, Remedy};
use crate::schema::first_twice;

/// Where a column is. A field of lists of a fixed size has one column per element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the field in the schema.
    pub(super) field: usize,
    /// Index of the element in the lists of the field.
    pub(super) element: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Columns {
    pub(super) places: Vec<Place>,
    pub(super) roles: Roles,
}

/// The longest lists whose elements can be columns.
const MAX_LIST: usize = 1 << 19;

impl Columns {
    pub(super) fn find(schema: &Schema, options: &ColumnOptions, like: Option<&Like>) -> Result<Self, SourceError> {
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for (index, field) in schema.fields().iter().enumerate() {
            match field.data_type() {
                DataType::FixedSizeList(_, n) => {
                    let n = usize::try_from(*n).unwrap_or(0);
                    if n > MAX_LIST {
                        let (part, way_out) =
                            (format!("column `{}`", field.name()), format!("lists of up to {MAX_LIST} are read"));
                        return Err(SourceError::unsupported(part, format!("has lists of {n}"), way_out));
                    }
                    names.extend((0..n).map(|element| format!("{}_{element}", field.name())));
                    places.extend((0..n).map(|element| Place { field: index, element: Some(element) }));
                }
                _ => {
                    names.push(field.name().clone());
                    places.push(Place { field: index, element: None });
                }
            }
        }
        if let Some(twice) = first_twice(&names) {
            return Err(SourceError::roles(format!("two columns are named `{twice}`"), &[Remedy::RenameColumn]));
        }
        let options = ColumnOptions { drop: dropped(schema, &names, &places, &options.drop), ..options.clone() };
        let type_of = |col: usize| type_of(schema, places[col]);
        let index = index_columns(schema, &names);
        // Truth values are text in CSV files, too.
        let has_text = |col| is_text(type_of(col)) || *type_of(col) == DataType::Boolean;
        let roles = Roles::find(&names, &options, like, &index, &has_text)?;
        let columns = Self { roles, places: places.clone() };
        columns.check_types(&type_of)?;
        Ok(columns)
    }

    /// The fields to read, in order.
    pub(super) fn fields(&self) -> Vec<usize> {
        let roles = &self.roles;
        let used = roles.features.iter().chain(&roles.categories).chain(&roles.label_columns).chain(&roles.weight);
        let mut fields: Vec<usize> = used.map(|&col| self.places[col].field).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    fn check_types<'a>(&self, type_of: &dyn Fn(usize) -> &'a DataType) -> Result<(), SourceError> {
        let roles = &self.roles;
        let refuse = |col: usize, expected| {
            let (column, found) = (roles.names[col].clone(), type_of(col).to_string());
            Err(SourceError::ColumnType { column, found, expected })
        };
        let no_number = |col: &&usize| !is_number(type_of(**col));
        if let Some(&col) = roles.features.iter().find(no_number) {
            return match is_text(type_of(col)) {
                true => refuse(col, &Expected { what: "numbers", remedies: &[Remedy::MakeCategorical, Remedy::DropColumn] }),
                false => {
                    refuse(col, &Expected { what: "numbers, or lists of a fixed size of them", remedies: &[Remedy::DropColumn] })
                }
            };
        }
        let no_name = |col: &&usize| !is_text(type_of(**col)) && !is_number(type_of(**col));
        if let Some(&col) = roles.categories.iter().find(no_name) {
            return refuse(col, &Expected { what: "text or numbers, to be categorical", remedies: &[Remedy::DropColumn] });
        }
        if roles.labels.are_classes() {
            if let Some(&label) = roles.label_columns.iter().find(no_name) {
                return refuse(label, &Expected { what: "text or numbers, to name classes", remedies: &[Remedy::OtherLabel] });
            }
        } else if let Some(&label) = roles.label_columns.iter().find(no_number) {
            return refuse(
                label,
                match roles.label_columns.len() {
                    1 => &Expected { what: "numbers, to be the label", remedies: &[Remedy::LabelsAsClasses, Remedy::OtherLabel] },
                    _ => &Expected { what: "numbers, as several labels are", remedies: &[Remedy::OtherLabel] },
                },
            );
        }
        if let Some(weight) = roles.weight.filter(|weight| no_number(&weight)) {
            return refuse(weight, &Expected { what: "numbers, to weigh rows", remedies: &[Remedy::OtherWeight] });
        }
        Ok(())
    }
}

/// The columns that pandas' metadata name as the index of a data frame. (A range is described there, and has no column.)
fn index_columns(schema: &Schema, names: &[String]) -> Vec<usize> {
    let pandas = schema.metadata().get("pandas").and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let listed = pandas.as_ref().and_then(|pandas| pandas["index_columns"].as_array());
    let named =
        listed.into_iter().flatten().filter_map(|name| names.iter().position(|other| Some(other.as_str()) == name.as_str()));
    named.collect()
}

/// The columns to drop; the name of a column of lists means all of its elements.
fn dropped(schema: &Schema, names: &[String], places: &[Place], drop: &[ColumnRef]) -> Vec<ColumnRef> {
    let mut all = Vec::with_capacity(drop.len());
    for column in drop {
        let is_meant = |name: &String| matches!(column, ColumnRef::Name(named) | ColumnRef::Word(named) if named == name);
        let is_list = |dtype: &DataType| matches!(dtype, DataType::FixedSizeList(..));
        let list = schema.fields().iter().position(|field| is_list(field.data_type()) && is_meant(field.name()));
        match list {
            Some(list) => {
                let of_list = places.iter().zip(names).filter(|(place, _)| place.field == list);
                all.extend(of_list.map(|(_, name)| ColumnRef::Name(name.clone())));
            }
            None => all.push(column.clone()),
        }
    }
    all
}

fn type_of(schema: &Schema, place: Place) -> &DataType {
    match schema.field(place.field).data_type() {
        DataType::FixedSizeList(item, _) => item.data_type(),
        other => other,
    }
}
