//! Numbers and dates of a column that are far from the others, and targets that are nearly classes.

use brisk_table::{DateFormat, IsoTime};

use crate::mean::Moments;

/// A number of a column that is far from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outlier {
    pub(super) value: f32,
    pub(super) n_rows: usize,
    pub(super) first_row: usize,
    /// The smallest and the largest of the others.
    pub(super) others: [f32; 2],
}

/// The fewest rows for which there is a warning.
const MIN_ROWS: usize = 20;

/// The largest number of rows that are sorted for quartiles.
const MAX_SORTED_ROWS: usize = 100_000;

/// A number is far from the others at this many times the distance between the quartiles.
const FAR: f64 = 1e6;

/// It is, too, if the standard deviation is this many times that of the others.
const MAX_DEVIATIONS: f64 = 1e3;

/// The smallest and the largest number of a column, if they are far from the others, or look like words for a missing value.
/// `offset` was subtracted from the numbers; those that are not finite are missing.
pub(super) fn outliers(values: &[f32], offset: f64) -> Vec<Outlier> {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let [min, max] = finite().fold([f32::INFINITY, f32::NEG_INFINITY], |[min, max], x| [min.min(x), max.max(x)]);
    if min >= max || finite().count() < MIN_ROWS {
        return Vec::new();
    }
    let stride = values.len().div_ceil(MAX_SORTED_ROWS);
    let mut sorted: Vec<f32> = values.iter().copied().step_by(stride).filter(|value| value.is_finite()).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    let quantile = |share: f64| sorted.get((share * (sorted.len().max(1) - 1) as f64) as usize).map_or(0.0, |&x| f64::from(x));
    let (median, between) = (quantile(0.5), quantile(0.75) - quantile(0.25));
    let is_marker = |value: f32| is_marker(f64::from(value) + offset);
    let middle = Moments::of(finite().filter(|&x| x != min && x != max));
    let of_extreme = |(value, other): (f32, f32)| {
        let distance = (f64::from(value) - middle.mean).abs();
        let is_far = between > 0.0 && (f64::from(value) - median).abs() > FAR * between;
        if !(is_far || is_marker(value) || distance > MAX_DEVIATIONS * middle.std()) {
            return None;
        }
        let rest = Moments::of(finite().filter(|&x| x != value && (x != other || !is_marker(other))));
        let with = Moments::of(finite().filter(|&x| x != other));
        let n_rows = finite().filter(|&x| x == value).count();
        let [least, most] = [rest.min, rest.max].map(f64::from);
        let gap = (least - f64::from(value)).max(f64::from(value) - most);
        let hides_others = middle.std() > 0.0 && with.std() > MAX_DEVIATIONS * middle.std();
        let marks_missing = n_rows > 1 && is_marker(value) && least < most && gap > most - least;
        let first_row = values.iter().position(|&x| x == value)?;
        let others = [rest.min, rest.max];
        (is_far || hides_others || marks_missing).then_some(Outlier { value, n_rows, first_row, others })
    };
    [(min, max), (max, min)].into_iter().filter_map(of_extreme).collect()
}

/// Whether a number is one that files often have in place of missing values.
fn is_marker(value: f64) -> bool {
    const LIMITS: [f64; 6] = [32_767.0, 32_768.0, 65_535.0, 2_147_483_647.0, 2_147_483_648.0, 4_294_967_295.0];
    let is = |number: f64| (value.abs() - number).abs() <= number * f64::from(f32::EPSILON);
    (1..=10).any(|n_digits| is(10_f64.powi(n_digits) - 1.0)) || LIMITS.into_iter().any(is)
}

/// The columns of numbers whose last row has the sum of all others.
#[derive(Debug, Default)]
pub(super) struct Totals {
    columns: Vec<String>,
    n_others: usize,
}

impl Totals {
    /// Adds a column, from whose numbers `offset` was subtracted.
    pub(super) fn add(&mut self, column: &str, values: &[f32], offset: f64) {
        // Totals are rounded, and so are the numbers that they are of.
        const ROUNDING: f64 = 1e-5;
        let Some((&last, others)) = values.split_last().filter(|(last, _)| last.is_finite()) else { return };
        let others = || others.iter().filter(|other| other.is_finite()).map(|&other| f64::from(other) + offset);
        let (last, sum, largest) =
            (f64::from(last) + offset, others().sum::<f64>(), others().fold(0.0, |largest, other| other.abs().max(largest)));
        match last.abs() > largest && (last - sum).abs() <= ROUNDING * last.abs() {
            true => self.columns.push(column.to_owned()),
            false => self.n_others += 1,
        }
    }

    /// The columns, if they are several and at least half of all: by chance, one may be so.
    pub(super) fn columns(self) -> Option<Vec<String>> {
        Some(self.columns).filter(|columns| columns.len() >= self.n_others.max(2))
    }
}

/// A date that is probably a word for a missing value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlaceholderDate<'a> {
    pub(super) value: &'a str,
    pub(super) n_rows: u64,
    /// The first and the last of the other dates.
    pub(super) others: [&'a str; 2],
}

/// The dates that files often have in place of missing values, if they are beyond all others: by more than those span, or in more
/// rows than any other. `dates` are the different ones, with the number of rows of each.
pub(super) fn placeholder_dates<'a>(format: DateFormat, dates: impl Iterator<Item = (&'a str, u64)>) -> Vec<PlaceholderDate<'a>> {
    const PLACEHOLDERS: [(u16, u8, u8); 10] = [
        (1, 1, 1),
        (1753, 1, 1),
        (1899, 12, 30),
        (1899, 12, 31),
        (1900, 1, 1),
        (1970, 1, 1),
        (2099, 12, 31),
        (2999, 12, 31),
        (9999, 1, 1),
        (9999, 12, 31),
    ];
    let parsed = dates.filter_map(|(text, n_rows)| Some((format.parse(text)?, text, n_rows)));
    let (found, others): (Vec<_>, Vec<_>) =
        parsed.partition(|(time, ..)| PLACEHOLDERS.contains(&(time.year, time.month, time.day)));
    let days = |&&(time, ..): &&(IsoTime, &str, u64)| time.days();
    let (Some(first), Some(last)) = (others.iter().min_by_key(days), others.iter().max_by_key(days)) else { return Vec::new() };
    let most_rows = others.iter().map(|(.., n_rows)| *n_rows).max().unwrap_or(0);
    let is_meant = |(time, _, n_rows): &(IsoTime, &str, u64)| {
        let gap = (first.0.days() - time.days()).max(time.days() - last.0.days());
        gap > last.0.days() - first.0.days() || (gap > 0 && *n_rows > most_rows)
    };
    let found = found.into_iter().filter(is_meant);
    found.map(|(_, value, n_rows)| PlaceholderDate { value, n_rows, others: [first.1, last.1] }).collect()
}

/// Labels of which nearly all are classes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NearlyClasses {
    /// The labels that nearly all rows have.
    pub(super) common: Vec<f32>,
    /// How many rows have them.
    pub(super) n_rows: usize,
}

/// The labels of classes, if all but a hundredth of the labels are at most `max_classes` whole numbers, and the others would be
/// neither: fractions, or one of many numbers among two classes.
pub(super) fn nearly_classes(labels: &[f32], max_classes: usize) -> Option<NearlyClasses> {
    const MIN_SHARE: usize = 200;
    const MAX_OTHERS: usize = 100;
    let n = labels.len();
    let counts = counts(labels);
    let is_common = |&&(label, count): &&(f32, usize)| label.fract() == 0.0 && count * MIN_SHARE >= n;
    let common: Vec<(f32, usize)> = counts.iter().filter(is_common).copied().collect();
    let n_rows: usize = common.iter().map(|(_, count)| count).sum();
    let has_fractions = counts.iter().any(|(label, _)| label.fract() != 0.0);
    let is_nearly = n_rows < n && (n - n_rows) * MAX_OTHERS <= n && (2..=max_classes).contains(&common.len());
    (is_nearly && (has_fractions || common.len() == 2))
        .then(|| NearlyClasses { common: common.into_iter().map(|(label, _)| label).collect(), n_rows })
}

/// Each label and how many rows have it, in ascending order.
pub(super) fn counts(labels: &[f32]) -> Vec<(f32, usize)> {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect()
}

#[cfg(test)]
mod tests {
    use brisk_table::DateFormat;

    use super::{Totals, nearly_classes, outliers, placeholder_dates};

    /// Different numbers from 0 to 9, and some others.
    #[track_caller]
    fn check(others: &[f32], expected: &[(f32, usize)]) {
        let numbers = (0..600).map(|i| (i * 7919 % 1000) as f32 * 0.009);
        let values: Vec<f32> = numbers.chain(others.iter().copied()).collect();
        let found: Vec<_> = outliers(&values, 0.0).iter().map(|found| (found.value, found.n_rows)).collect();
        assert_eq!(found, expected, "{others:?}");
    }

    #[test]
    fn numbers_that_hide_the_others_are_found() {
        check(&[], &[]);
        check(&[100.0, 99.0, -40.0, f32::NAN], &[]);
        check(&[1e30], &[(1e30, 1)]);
        check(&[1e29, 1e30], &[(1e30, 1)]);
        check(&[999_999.0; 60], &[(999_999.0, 60)]);
        check(&[-9999.0; 2], &[(-9999.0, 2)]);
        check(&[-99.0, -99.0, 99.0, 99.0], &[(-99.0, 2), (99.0, 2)]);
        assert!(outliers(&[0.0, 1.0, 0.0, 1.0].repeat(10), 0.0).is_empty(), "two numbers");
        let answers: Vec<f32> = (0..300).map(|i| if i % 60 == 7 { 9.0 } else { (i % 3) as f32 }).collect();
        assert_eq!(outliers(&answers, 0.0).iter().map(|found| found.value).collect::<Vec<_>>(), [9.0], "an answer of 9");
        let rare: Vec<f32> = (0..5000).map(|i| if i % 100 == 0 { i as f32 } else { 0.0 }).collect();
        assert!(outliers(&rare, 0.0).is_empty(), "numbers that are mostly 0");
    }

    #[test]
    fn dates_that_stand_for_missing_ones_are_beyond_the_others() {
        let check = |dates: &[(&'static str, u64)], expected: &[&str]| {
            let found: Vec<_> =
                placeholder_dates(DateFormat::ISO, dates.iter().copied()).iter().map(|found| found.value).collect();
            assert_eq!(found, expected, "{dates:?}");
        };
        let recent = [("2015-03-01", 2), ("2024-12-30", 3)];
        check(&[&recent[..], &[("9999-12-31", 1), ("0001-01-01T00:00:00", 1)]].concat(), &["9999-12-31", "0001-01-01T00:00:00"]);
        check(&[&recent[..], &[("1900-01-01", 1), ("2099-12-31", 1)]].concat(), &["1900-01-01", "2099-12-31"]);
        check(&[&recent[..], &[("1900-01-02", 9)]].concat(), &[]);
        // Births: a day among others, or one that is more frequent than any other.
        check(&[("1931-01-05", 1), ("1970-01-01", 9), ("2004-12-30", 2)], &[]);
        check(&[("1931-01-05", 1), ("1900-01-01", 2), ("2004-12-30", 2)], &[]);
        check(&[("1931-01-05", 1), ("1900-01-01", 9), ("2004-12-30", 2)], &["1900-01-01"]);
        check(&[("1900-01-01", 9)], &[]);
    }

    #[test]
    fn a_row_of_totals_has_the_sums_of_the_others() {
        let check = |columns: &[&[f32]], expected: Option<usize>| {
            let mut totals = Totals::default();
            columns.iter().for_each(|column| totals.add("a", column, 0.0));
            assert_eq!(totals.columns().map(|columns| columns.len()), expected, "{columns:?}");
        };
        let (one, other): (&[f32], &[f32]) = (&[1.5, 2.5, f32::NAN, -1.0, 3.0], &[1e6, 2e6, 4e6, 7.00001e6]);
        let (noise, unknown): (&[f32], &[f32]) = (&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, f32::NAN]);
        check(&[one, other], Some(2));
        check(&[one, other, noise, noise, unknown], Some(2));
        check(&[one, other, noise, noise, noise], None);
        check(&[one], None);
        check(&[&[0.0, 1.0, 0.0, 1.0], &[0.0, 0.0, 0.0]], None);
    }

    #[test]
    fn labels_are_nearly_classes_but_for_a_few() {
        let labels = |others: &[f32]| -> Vec<f32> { (0..1000).map(|i| (i % 2) as f32).chain(others.iter().copied()).collect() };
        assert_eq!(nearly_classes(&labels(&[0.5]), 20).map(|found| (found.common, found.n_rows)), Some((vec![0.0, 1.0], 1000)));
        assert_eq!(nearly_classes(&labels(&[0.5; 20]), 20), None);
        assert_eq!(nearly_classes(&labels(&[]), 20), None);
        let numbers: Vec<f32> = (0..1000).map(|i| i as f32 / 7.0).collect();
        assert_eq!(nearly_classes(&numbers, 20), None);
    }
}
