use std::path::Path;

use brisk_table::{Categorical, ColumnKind, ColumnOptions, ColumnSurvey, DateFormat, Missing};

use crate::error::Error;
use crate::reading::{decimal, middle, nfc};
use crate::scratch::import_to_memory;
use crate::splitting::Splitting;
use crate::text_options::TextOptions;

/// A column of a file that says how its rows are split.
pub(super) struct RowColumn<'a> {
    pub(super) path: &'a Path,
    pub(super) survey: &'a ColumnSurvey,
    /// How the target is read, whose rows without a value are left out.
    pub(super) target: &'a ColumnOptions,
    pub(super) text: &'a TextOptions,
    /// How its dates are written.
    pub(super) dates: DateFormat,
}

/// A column of numbers with more different values is read as `f32`, in which some of them become equal: its text would not fit
/// into the header of a table.
const MAX_TEXTS: u64 = 1_000_000;

impl RowColumn<'_> {
    /// The group of each row.
    ///
    /// # Errors
    /// [`Error::NoRowValue`]; [`Error::Table`].
    pub(super) fn groups(&self, progress: &mut dyn FnMut()) -> Result<Splitting, Error> {
        // Different bits are different groups.
        let groups = self.read("group", |code, _| Some(code.into()), progress)?.into_iter().map(f64::to_bits).collect();
        Ok(Splitting::Groups { column: self.survey.name.clone(), groups })
    }

    /// The time of each row.
    ///
    /// # Errors
    /// [`Error::NotTimes`] for cells that are neither numbers nor dates in one format; [`Error::NoRowValue`]; [`Error::Table`].
    pub(super) fn times(&self, progress: &mut dyn FnMut()) -> Result<Splitting, Error> {
        let kind = self.survey.kind();
        let odd = match kind {
            ColumnKind::Numbers | ColumnKind::Dates | ColumnKind::Empty => None,
            ColumnKind::AlmostNumbers { .. } | ColumnKind::MarkedNumbers => Some(self.survey.not_numbers.clone()),
            _ => Some(self.survey.not_in_format(self.dates)),
        };
        if let Some(cells) = odd {
            let example = cells.first().map_or_else(String::new, |cell| cell.text.clone());
            return Err(Error::NotTimes { path: self.path.to_owned(), column: self.survey.name.clone(), example });
        }
        let of_text = |_: u32, text: &str| match kind {
            ColumnKind::Dates => self.dates.parse(text).map(|time| time.unix_seconds()),
            _ => decimal(text),
        };
        Ok(Splitting::Times { column: self.survey.name.clone(), times: self.read("time", of_text, progress)? })
    }

    /// What each row has in the column: `number` of the code and the text of the cell.
    fn read(
        &self,
        role: &'static str,
        number: impl Fn(u32, &str) -> Option<f64>,
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<f64>, Error> {
        let &Self { path, survey, target, text, .. } = self;
        let column = survey.name.as_str();
        let are_many = survey.kind() == ColumnKind::Numbers && survey.n_distinct() > MAX_TEXTS;
        let mut columns = ColumnOptions {
            labels: target.labels.clone(),
            label_kind: target.label_kind.clone(),
            features: Some(Vec::new()),
            missing: Missing::Keep,
            bad_rows: target.bad_rows,
            ..ColumnOptions::default()
        };
        if are_many {
            columns.features = Some(vec![column.into()]);
            columns.offsets = vec![(column.into(), middle(survey.min, survey.max))];
        } else {
            columns.categorical = Categorical::Columns(vec![column.into()]);
        }
        let (table, _) = import_to_memory(path, &text.import(columns), progress)?;
        let rows = 0..table.n_rows();
        let values: Vec<f64> = if are_many {
            table.rows::<f32>(rows)?.iter().map(|&number| number.into()).collect()
        } else {
            let texts = table.dictionaries().iter().flat_map(|dictionary| dictionary.values());
            let of_value = |(code, text): (u32, &String)| number(code, &nfc(text)).unwrap_or(f64::NAN);
            let of_code: Vec<f64> = std::iter::once(f64::NAN).chain((1..).zip(texts).map(of_value)).collect();
            table.categories(rows)?.iter().map(|&code| of_code[code as usize]).collect()
        };
        let n_missing = values.iter().filter(|value| value.is_nan()).count();
        match values.iter().position(|value| value.is_nan()) {
            None => Ok(values),
            Some(row) => {
                let (path, column) = (path.to_owned(), column.to_owned());
                Err(Error::NoRowValue { path, column, role, n_missing, row })
            }
        }
    }
}
