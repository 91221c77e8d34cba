use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use brisk_loader::RowSource;
use brisk_table::{Dictionary, printable};
use brisk_train::FeedElement;
use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::error::Error;
use crate::mean::{n_effective, weighted_mean};
use crate::model::TabularModel;
use crate::normal::normal_quantile;
use crate::predictions::Predictions;
use crate::preprocessing::{Cells, NumberColumn};
use crate::reading::shortest;
use crate::target::Target;
use crate::validated::Validated;

/// Where predictions of rows are better and worse: the scores of segments, which are the rows with a value of a category, with
/// numbers of a range, or without a value in a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentErrors {
    /// What is measured: `log_loss` of classes, `rmse` of numbers, in the unit of the target.
    pub score: String,
    /// The score of all rows.
    pub all: SegmentScore,
    /// The segments of all columns, the one with the highest score first. Of those that consist of the same rows, only that of
    /// the first column is among them.
    pub segments: Vec<Segment>,
}

/// Rows with certain values in a column, of [`SegmentErrors`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// The column of the table, or of a date one of its parts, such as `COLUMN_month`.
    pub column: String,
    /// What the rows have in it.
    pub values: SegmentValues,
    /// How well they are predicted.
    pub score: SegmentScore,
    /// By how many standard errors the mean loss of the rows is above that of all other rows (Welch 1947, *The Generalization of
    /// "Student's" Problem*); negative if it is below it.
    pub excess: f64,
}

/// The values of a column in a [`Segment`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum SegmentValues {
    /// Numbers of a range: the smallest and the largest one.
    Numbers { min: f64, max: f64 },
    /// A value of a category.
    Category { value: String },
    /// All `n_values` values of a category with too few rows for segments of their own.
    Others { n_values: usize },
    /// All values of a category that did not occur in training, or were too [rare](crate::Preprocessing::rare_values).
    Unseen,
    /// No value.
    Missing,
}

/// How well rows are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentScore {
    /// How many rows there are, without those of weight 0.
    pub n_rows: usize,
    /// The log loss or the root mean squared error.
    pub value: f64,
    /// That of the best constant prediction for these rows. A model whose score is not lower has learned nothing that is true of
    /// them.
    pub constant: f64,
    /// The share of the rows that are predicted to be of a wrong class; `None` for numbers.
    pub error_rate: Option<f64>,
    /// The mean of predicted minus observed numbers; `None` for classes.
    pub bias: Option<f64>,
}

/// How [`TabularModel::segment_errors`] divides rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentOptions {
    /// The fewest rows of a segment.
    pub min_rows: usize,
    /// The most ranges of a column of numbers, which have about equally many rows. There are fewer where many rows have the same
    /// number.
    pub n_bins: usize,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { min_rows: 30, n_bins: 5 }
    }
}

impl TabularModel {
    /// The scores of segments of `rows`, whose columns are `columns`: they are divided by each column that the model uses, and
    /// rows count by their weights, if they have any. The rows should be neither those of training nor, since a model is
    /// calibrated to them, those of validation. `None` if a prediction is not finite.
    ///
    /// # Errors
    /// As [`rows`](Self::rows) and [`evaluate`](Self::evaluate).
    /// # Examples
    /// ```no_run
    /// use brisk_tabular::{DetectOptions, SegmentErrors, SegmentOptions, TabularModel};
    ///
    /// let model = TabularModel::load("prices")?;
    /// let options = DetectOptions { target: Some("price".into()), ..DetectOptions::default() };
    /// let sold = TabularModel::detect("sold_since.csv", &options)?;
    /// let found = model.segment_errors(&sold.columns, &sold.table, &SegmentOptions::default())?;
    /// for segment in found.iter().flat_map(SegmentErrors::worse) {
    ///     println!("{segment}: {} of {} rows", segment.score.value, segment.score.n_rows);
    /// }
    /// # Ok::<(), brisk_tabular::Error>(())
    /// ```
    pub fn segment_errors<S: RowSource<Feature: FeedElement>>(
        &self,
        columns: &Columns,
        rows: &S,
        options: &SegmentOptions,
    ) -> Result<Option<SegmentErrors>, Error> {
        let rows = self.rows(columns, rows)?;
        let mut validated = self.validated("test", &rows)?;
        let (calibration, outputs) = (self.calibration(), validated.outputs.clone());
        let predicted = Predictions::new(self.target(), calibration, self.threshold(), None, outputs);
        self.finish(&mut validated);
        let scored = ScoredRows::new(self.target(), validated, &predicted);
        Ok(if scored.are_finite() { scored.errors(&rows.cells()?, options) } else { None })
    }
}

impl SegmentErrors {
    /// The segments that are worse than all other rows beyond noise, worst first: by so many standard errors that in 19 of 20
    /// tables none would be, if predictions were equally good in all segments (Bonferroni's correction for the number of
    /// segments).
    pub fn worse(&self) -> impl Iterator<Item = &Segment> {
        const CHANCE: f64 = 0.05;
        let least = normal_quantile(1.0 - CHANCE / self.segments.len().max(1) as f64);
        self.segments.iter().filter(move |segment| segment.excess > least)
    }
}

impl fmt::Display for Segment {
    /// The column and its values, as in "`age` from 17 to 26".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", printable(&self.column))?;
        match &self.values {
            SegmentValues::Numbers { min, max } if min == max => write!(f, "is {}", shortest(*min)),
            SegmentValues::Numbers { min, max } => write!(f, "from {} to {}", shortest(*min), shortest(*max)),
            SegmentValues::Category { value } => write!(f, "is {:?}", printable(value)),
            SegmentValues::Others { n_values } => write!(f, "has one of {n_values} rare values"),
            SegmentValues::Unseen => write!(f, "has a value that did not occur in training, or rarely"),
            SegmentValues::Missing => write!(f, "is missing"),
        }
    }
}

/// Predictions of rows, with what each of them is worth.
struct ScoredRows<'a> {
    target: &'a Target,
    rows: Validated,
    losses: Vec<f64>,
    /// 1 for each row of which a wrong class is predicted, or the difference of the predicted to the observed number.
    errors: Vec<f64>,
}

/// The values of a segment, and its rows in ascending order.
type Cut = (SegmentValues, Vec<usize>);

impl<'a> ScoredRows<'a> {
    /// Rows with calibrated predictions, in the units of the labels.
    fn new(target: &'a Target, rows: Validated, predicted: &Predictions) -> Self {
        let losses = target.losses(&rows.outputs, &rows.labels);
        let errors = if target.classes().is_empty() {
            rows.outputs.iter().zip(&rows.labels).map(|(&output, &label)| f64::from(output) - f64::from(label)).collect()
        } else {
            let is_wrong = |(&class, &label): (&f64, &f32)| f64::from(u8::from(class != f64::from(label)));
            predicted.numbers().iter().zip(&rows.labels).map(is_wrong).collect()
        };
        Self { target, rows, losses, errors }
    }

    fn are_finite(&self) -> bool {
        self.losses.iter().all(|loss| loss.is_finite())
    }

    /// The scores of segments by all columns; `None` without rows.
    fn errors(&self, columns: &[Cells<'_>], options: &SegmentOptions) -> Option<SegmentErrors> {
        let counts = |row: &usize| self.rows.weights.as_ref().is_none_or(|weights| weights[*row] > 0.0);
        let all: Vec<usize> = (0..self.losses.len()).filter(counts).collect();
        let (mut segments, mut seen) = (Vec::new(), HashSet::new());
        for cells in columns {
            let (column, cuts) = match cells {
                Cells::Numbers { column, cells } => (&*column.name, cuts_of_numbers(column, cells, &all, options)),
                Cells::Category { column, codes } => (column.name(), cuts_of_category(column, codes, &all, options)),
            };
            for (values, rows) in cuts {
                let mut hasher = DefaultHasher::new();
                rows.hash(&mut hasher);
                if rows.len() < options.min_rows.max(1) || rows.len() == all.len() || !seen.insert(hasher.finish()) {
                    continue;
                }
                let (column, score, excess) = (column.to_owned(), self.score(&rows), self.excess(&rows, &all));
                segments.push(Segment { column, values, score, excess });
            }
        }
        segments.sort_by(|a, b| b.score.value.total_cmp(&a.score.value));
        let score = self.target.loss_name().to_owned();
        (!all.is_empty()).then(|| SegmentErrors { score, all: self.score(&all), segments })
    }

    /// The weights of these rows, if rows have any.
    fn weights(&self, rows: &[usize]) -> Option<Vec<f32>> {
        let weights = self.rows.weights.as_ref()?;
        Some(rows.iter().map(|&row| weights[row]).collect())
    }

    fn score(&self, rows: &[usize]) -> SegmentScore {
        let weights = self.weights(rows);
        let mean = |of: &[f64]| weighted_mean(rows.iter().map(|&row| of[row]), weights.as_deref());
        let labels: Vec<f32> = rows.iter().map(|&row| self.rows.labels[row]).collect();
        let (loss, error) = (mean(&self.losses), mean(&self.errors));
        let is_number = self.target.classes().is_empty();
        SegmentScore {
            n_rows: rows.len(),
            value: if is_number { loss.sqrt() } else { loss },
            constant: self.target.constant_loss(&labels, weights.as_deref()),
            error_rate: (!is_number).then_some(error),
            bias: is_number.then_some(error),
        }
    }

    /// How many standard errors the mean loss of `rows` is above that of the others of `all`.
    fn excess(&self, rows: &[usize], all: &[usize]) -> f64 {
        let mut is_other = vec![true; self.losses.len()];
        rows.iter().for_each(|&row| is_other[row] = false);
        let others: Vec<usize> = all.iter().copied().filter(|&row| is_other[row]).collect();
        let [(mean, variance), (of_others, variance_of_others)] = [rows, &others].map(|rows| {
            let weights = self.weights(rows);
            let mean = weighted_mean(rows.iter().map(|&row| self.losses[row]), weights.as_deref());
            let squares = rows.iter().map(|&row| (self.losses[row] - mean).powi(2));
            (mean, weighted_mean(squares, weights.as_deref()) / n_effective(rows.len(), weights.as_deref()))
        });
        let difference = mean - of_others;
        if difference == 0.0 { 0.0 } else { difference / (variance + variance_of_others).sqrt() }
    }
}

/// Segments of about equally many numbers, and one of the rows without any.
fn cuts_of_numbers(column: &NumberColumn, cells: &[f32], all: &[usize], options: &SegmentOptions) -> Vec<Cut> {
    let (missing, mut present): (Vec<usize>, Vec<usize>) = all.iter().partition(|&&row| cells[row].is_nan());
    present.sort_by(|&a, &b| cells[a].total_cmp(&cells[b]));
    // The last number of each range but the last one. The same number is in one range only.
    let mut ends: Vec<f32> = (1..options.n_bins)
        .filter_map(|bin| present.get((bin * present.len() / options.n_bins).checked_sub(1)?))
        .map(|&row| cells[row])
        .collect();
    ends.dedup();
    let range_of = |row: usize| ends.partition_point(|&end| end < cells[row]);
    let cut = |rows: &[usize]| {
        let [min, max] = [rows.first(), rows.last()].map(|row| row.map_or(f64::NAN, |&row| column.reading.in_units(cells[row])));
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        (SegmentValues::Numbers { min, max }, rows)
    };
    let cuts = present.chunk_by(|&a, &b| range_of(a) == range_of(b)).map(cut);
    cuts.chain([(SegmentValues::Missing, missing)]).collect()
}

/// A segment of each frequent value, and those of other, of unseen and of missing ones.
fn cuts_of_category(column: &Dictionary, codes: &[Option<u32>], all: &[usize], options: &SegmentOptions) -> Vec<Cut> {
    let mut of_code = vec![Vec::new(); column.n_codes()];
    let mut missing = Vec::new();
    for &row in all {
        match codes[row] {
            Some(code) => of_code[code as usize].push(row),
            None => missing.push(row),
        }
    }
    let unseen = std::mem::take(&mut of_code[0]);
    let (mut cuts, mut others, mut n_others) = (Vec::new(), Vec::new(), 0);
    for (rows, value) in of_code.into_iter().skip(1).zip(column.values()) {
        if rows.len() >= options.min_rows {
            cuts.push((SegmentValues::Category { value: value.clone() }, rows));
        } else if !rows.is_empty() {
            others.extend(rows);
            n_others += 1;
        }
    }
    others.sort_unstable();
    let others = (SegmentValues::Others { n_values: n_others }, others);
    cuts.extend([others, (SegmentValues::Unseen, unseen), (SegmentValues::Missing, missing)]);
    cuts
}

#[cfg(test)]
mod tests {
    use brisk_table::Dictionary;

    use super::*;
    use crate::reading::Reading;
    use crate::scale::ColumnScale;

    fn number(name: &str) -> NumberColumn {
        let (name, column) = (name.to_owned(), name.to_owned());
        let scale = ColumnScale::standard(0.0, 1.0);
        NumberColumn { name, column, reading: Reading::Number, mean: 0.0, range: [0.0, 1.0], has_indicator: true, scale }
    }

    fn numbers_target() -> Target {
        Target::numbers("y", "train", &brisk_loader::Rows::new(vec![0.0; 2], vec![0.0, 1.0], 1).expect("rows"))
            .expect("two labels")
    }

    fn scored<'a>(target: &'a Target, outputs: &[f32], labels: &[f32], weights: Option<Vec<f32>>) -> ScoredRows<'a> {
        let predicted = Predictions::new(target, None, None, None, outputs.to_vec());
        ScoredRows::new(target, Validated { outputs: outputs.to_vec(), labels: labels.to_vec(), weights }, &predicted)
    }

    #[test]
    fn numbers_are_cut_by_quantiles_that_keep_the_same_number_together() {
        let cells = [0.0, 5.0, 0.0, f32::NAN, 0.0, 7.0, 9.0, 0.0, 0.0, 0.0, 3.0, f32::NAN];
        let all: Vec<usize> = (0..cells.len()).collect();
        let options = SegmentOptions { min_rows: 1, n_bins: 5 };
        let cuts = cuts_of_numbers(&number("x"), &cells, &all, &options);
        let numbers = |min: f64, max: f64| SegmentValues::Numbers { min, max };
        let expected = [
            (numbers(0.0, 0.0), vec![0, 2, 4, 7, 8, 9]),
            (numbers(3.0, 5.0), vec![1, 10]),
            (numbers(7.0, 9.0), vec![5, 6]),
            (SegmentValues::Missing, vec![3, 11]),
        ];
        assert_eq!(cuts, expected);
        let whole = cuts_of_numbers(&number("x"), &cells, &all[..3], &SegmentOptions { min_rows: 1, n_bins: 0 });
        assert_eq!(whole, [(numbers(0.0, 5.0), vec![0, 1, 2]), (SegmentValues::Missing, Vec::new())]);
    }

    #[test]
    fn categories_are_cut_by_frequent_values() {
        let column = Dictionary::new("c", ["a", "b", "d", "e"].map(str::to_owned).to_vec()).expect("different values");
        let codes = [1, 1, 1, 2, 3, 2, 0].map(Some).into_iter().chain([None]).collect::<Vec<_>>();
        let all: Vec<usize> = (0..codes.len()).collect();
        let cuts = cuts_of_category(&column, &codes, &all, &SegmentOptions { min_rows: 3, n_bins: 5 });
        let expected = [
            (SegmentValues::Category { value: "a".to_owned() }, vec![0, 1, 2]),
            (SegmentValues::Others { n_values: 2 }, vec![3, 4, 5]),
            (SegmentValues::Unseen, vec![6]),
            (SegmentValues::Missing, vec![7]),
        ];
        assert_eq!(cuts, expected);
    }

    #[test]
    fn scores_are_those_computed_by_hand() {
        let target = numbers_target();
        let (outputs, labels) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 3.0, 3.0, 4.0, 8.0, 8.0]);
        let codes = [1, 1, 1, 1, 2, 2].map(Some).to_vec();
        let column = Dictionary::new("c", ["near", "far"].map(str::to_owned).to_vec()).expect("different values");
        let twin = Cells::Numbers { column: &number("twin"), cells: vec![0.0, 0.0, 0.0, 0.0, 1.0, 1.0] };
        let columns = [Cells::Category { column: &column, codes }, twin];
        let options = SegmentOptions { min_rows: 2, n_bins: 3 };
        let found = scored(&target, &outputs, &labels, None).errors(&columns, &options).expect("rows");
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
        // Squared errors: 0, 1, 0, 0, 9, 4.
        close(found.all.value, (14.0_f64 / 6.0).sqrt());
        assert_eq!((found.score.as_str(), found.segments.len()), ("rmse", 2), "the same rows twice: {found:?}");
        let [far, near] = &found.segments[..] else { panic!("two segments") };
        assert_eq!((far.values.clone(), far.column.as_str()), (SegmentValues::Category { value: "far".to_owned() }, "c"));
        close(far.score.value, 6.5_f64.sqrt());
        assert_eq!((far.score.bias, far.score.error_rate, far.score.constant), (Some(-2.5), None, 0.0));
        // Means 6.5 and 0.25, variances 6.25 and 3/16 of two and four rows.
        close(far.excess, 6.25 / (6.25_f64 / 2.0 + 3.0 / 64.0).sqrt());
        close(near.excess, -far.excess);

        // A row that does not count, and one that counts twice.
        let weights = Some(vec![1.0, 0.0, 1.0, 1.0, 2.0, 1.0]);
        let found = scored(&target, &outputs, &labels, weights).errors(&columns, &options).expect("rows");
        let far = &found.segments[0].score;
        close(far.value, (22.0_f64 / 3.0).sqrt());
        assert_eq!((found.all.n_rows, far.n_rows, far.bias), (5, 2, Some(-8.0 / 3.0)));
    }

    #[test]
    fn what_is_worse_beyond_noise_is_named() {
        let classes = Target::Classes { name: "y".to_owned(), classes: vec!["no".into(), "yes".into()], labels: vec![0.0, 1.0] };
        // Labels are known by the logit, except in the first tenth of the rows, where they are random.
        let n = 1000;
        let random = |row: usize| (row as u32).wrapping_mul(2_654_435_761) >> 31;
        let outputs: Vec<f32> = (0..n).map(|row| if row % 2 == 0 { 3.0 } else { -3.0 }).collect();
        let label = |row: usize| if row < 100 { random(row) as f32 } else { f32::from(u8::from(outputs[row] > 0.0)) };
        let labels: Vec<f32> = (0..n).map(label).collect();
        let column = Dictionary::new("kind", ["odd", "plain"].map(str::to_owned).to_vec()).expect("different values");
        let codes = (0..n).map(|row| Some(if row < 100 { 1 } else { 2 })).collect();
        let other = number("other");
        let cells = (0..n).map(|row| (row * 7 % 10) as f32).collect();
        let columns = [Cells::Numbers { column: &other, cells }, Cells::Category { column: &column, codes }];
        let found = scored(&classes, &outputs, &labels, None).errors(&columns, &SegmentOptions::default()).expect("rows");
        let worse: Vec<String> = found.worse().map(ToString::to_string).collect();
        assert_eq!(worse, ["`kind` is \"odd\""], "{found:?}");
        let odd = found.segments[0].score;
        let wrong = (0..100).filter(|&row| (outputs[row] > 0.0) != (labels[row] > 0.5)).count();
        assert_eq!((odd.n_rows, odd.error_rate, odd.bias), (100, Some(wrong as f64 / 100.0), None));
        assert!(odd.value > odd.constant && found.all.value < found.all.constant, "nothing is learned of them: {found:?}");
        assert_eq!(found.segments.len(), 7, "five ranges and two kinds");
    }
}
