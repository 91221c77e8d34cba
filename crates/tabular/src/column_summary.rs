use brisk_table::{ColumnSurvey, DateFormat, Dictionary};

use crate::reading::{Decoding, decimal, shortest};

/// What a column of a table has, besides its name: [`Detected::summaries`](crate::Detected::summaries).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ColumnSummary {
    /// The column.
    pub column: String,
    /// How many rows there are; rows without a value of the target are left out of those of features.
    pub n_rows: u64,
    /// In how many of them its value is missing.
    pub n_missing: u64,
    /// What it has.
    pub content: ColumnContent,
}

/// What a column is used as, and its values.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum ColumnContent {
    /// Numbers, `range` from the smallest to the largest; NaN if there are none.
    Numbers { range: [f64; 2] },
    /// Dates in a format, `range` from the first to the last.
    Dates { format: DateFormat, range: [String; 2] },
    /// Categories.
    Categories { n_distinct: u64 },
    /// It is no feature. About how many different values it has, if that was counted.
    LeftOut { n_distinct: Option<u64> },
}

impl ColumnSummary {
    /// That of a feature of numbers; those that are not finite are missing.
    pub(super) fn of_numbers(column: &str, values: &[f32]) -> Self {
        let present = || values.iter().copied().filter(|value| value.is_finite());
        let n_missing = (values.len() - present().count()) as u64;
        let [min, max] = present().fold([f32::NAN; 2], |[min, max], x| [x.min(min), x.max(max)]);
        // In the digits that they have as f32.
        let range = [min, max].map(|x| shortest(x.into()).parse().unwrap_or(f64::from(x)));
        let content = ColumnContent::Numbers { range };
        Self { column: column.to_owned(), n_rows: values.len() as u64, n_missing, content }
    }

    /// That of a column of text, which has each code in so many rows, of which the first is that of missing values.
    pub(super) fn of_codes(dictionary: &Dictionary, decoding: Option<Decoding>, n_rows: &[u64]) -> Self {
        let present = || dictionary.values().iter().zip(&n_rows[1..]).filter(|(_, n_rows)| **n_rows > 0).map(|(value, _)| value);
        let content = match decoding {
            None => ColumnContent::Categories { n_distinct: present().count() as u64 },
            Some(Decoding::Number) => {
                let numbers = present().filter_map(|value| decimal(value));
                ColumnContent::Numbers { range: numbers.fold([f64::NAN; 2], |[min, max], x| [x.min(min), x.max(max)]) }
            }
            Some(Decoding::Date(format)) => {
                let time = |value: &&String| format.parse(value).map_or(f64::NAN, |time| time.unix_seconds());
                let by_time = |a: &&String, b: &&String| time(a).total_cmp(&time(b));
                let range = [present().min_by(by_time), present().max_by(by_time)];
                ColumnContent::Dates { format, range: range.map(|value| value.cloned().unwrap_or_default()) }
            }
        };
        Self { column: dictionary.name().to_owned(), n_rows: n_rows.iter().sum(), n_missing: n_rows[0], content }
    }

    /// That of a column that is no feature.
    pub(super) fn left_out(survey: &ColumnSurvey) -> Self {
        let n_distinct = survey.n_distinct();
        // Of some formats, only statistics of numbers are known.
        let is_counted = n_distinct > 1 || survey.min >= survey.max || survey.n_numbers == 0;
        let content = ColumnContent::LeftOut { n_distinct: is_counted.then_some(n_distinct) };
        let n_missing = survey.n_missing;
        Self { column: survey.name.clone(), n_rows: survey.n_values() + n_missing, n_missing, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_summarised_by_their_values() {
        let numbers = ColumnSummary::of_numbers("a", &[0.1, f32::NAN, -3.5]);
        assert_eq!((numbers.n_rows, numbers.n_missing), (3, 1));
        assert_eq!(numbers.content, ColumnContent::Numbers { range: [-3.5, 0.1] });
        let dictionary = Dictionary::new("b", ["05.01.2024", "17.12.2023", "01.02.2024"]).expect("different values");
        let of = |decoding, n_rows: &[u64]| ColumnSummary::of_codes(&dictionary, decoding, n_rows);
        assert_eq!(of(None, &[2, 1, 0, 4]).content, ColumnContent::Categories { n_distinct: 2 });
        let format = DateFormat::named("%d.%m.%Y").expect("a format");
        let dates = of(Some(Decoding::Date(format)), &[2, 1, 1, 4]);
        let range = ["17.12.2023", "01.02.2024"].map(str::to_owned);
        assert_eq!((dates.n_rows, dates.n_missing, dates.content), (8, 2, ColumnContent::Dates { format, range }));
    }
}
