use super::dates::Dates;
use super::marked::is_marked_number;
use super::odd_cell::{MAX_ODD, OddCell, note, note_later};
use super::sketch::Distinct;
use super::thousands::Thousands;
use super::units::Units;
use crate::csv::{Decimal, number64};
use crate::date_format::DateFormat;
use crate::import::is_missing;
use crate::statistics::ColumnStatistics;

/// A text column is nearly all numbers, or nearly all dates, if they are at least this many times as many as the other cells.
const NEARLY_ALL: u64 = 4;

/// A column of numbers with at most this many different words has words for something that is missing or special.
const FEW_WORDS: u64 = 3;

/// The fewest different numbers for which this is assumed.
const MANY_NUMBERS: u64 = 20;

/// The fewest different numbers for which they are dates without separators, as all of them could be by chance.
const MIN_COMPACT_DATES: u64 = 3;

/// What the cells of a column are.
///
/// # Examples
/// ```
/// use brisk_table::{ColumnKind, ColumnSurvey, Decimal};
///
/// let mut ages = ColumnSurvey::new("age", Decimal::Point, &[]);
/// for (line, cell) in (2..).zip(["31", "45", "-", "28", "27", "5o", "66"]) {
///     ages.add(cell, line, 1);
/// }
/// assert_eq!(ages.kind(), ColumnKind::AlmostNumbers { decimal_comma: false });
/// assert_eq!((ages.n_missing, ages.not_numbers[0].line, ages.not_numbers[0].text.as_str()), (1, 7, "5o"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ColumnSurvey {
    /// Its name.
    pub name: String,
    /// Cells that are missing.
    pub n_missing: u64,
    /// Cells that are finite numbers.
    pub n_numbers: u64,
    /// Cells that are dates or times in one of the [formats](DateFormat), and no numbers.
    pub n_dates: u64,
    /// Other cells, without those that are `None`.
    pub n_texts: u64,
    /// Cells that are `None`: a value in a column of text, missing in any other.
    pub n_none: u64,
    /// The first cells that are neither numbers nor missing.
    pub not_numbers: Vec<OddCell>,
    /// The first cells that are neither dates in one of the formats nor missing.
    pub not_dates: Vec<OddCell>,
    /// Whether some of the numbers are whole numbers with leading zeros.
    pub has_leading_zeros: bool,
    /// Whether all numbers are whole.
    pub are_whole: bool,
    /// The smallest number, in `f64`; infinite if there are none.
    pub min: f64,
    /// The largest number.
    pub max: f64,
    n_decimal_commas: u64,
    n_marked: u64,
    dates: Dates,
    thousands: Thousands,
    units: Units,
    texts: Distinct,
    numbers: Distinct,
    decimal: u8,
    missing: Vec<MissingWord>,
}

/// A word that counts as missing, besides the usual ones.
#[derive(Clone, Debug)]
struct MissingWord {
    word: String,
    /// The number that it is, if it is one.
    number: Option<f64>,
    /// Whether a cell has it.
    is_found: bool,
}

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// All cells are missing.
    Empty,
    /// Numbers.
    Numbers,
    /// Whole numbers of which some have leading zeros, which only names have.
    Codes,
    /// Dates in one [format](ColumnSurvey::date_formats), some of them with a time of day.
    Dates,
    /// Dates in a form that is not read, or in several formats.
    OtherDates,
    /// Text.
    Text,
    /// Numbers, but for a few cells.
    AlmostNumbers {
        /// Whether they are if commas are read as decimal marks.
        decimal_comma: bool,
    },
    /// Numbers, most of them with a currency, a percent sign, an apostrophe or separators between thousands: `$1,234`, `12%`,
    /// `1 234`.
    MarkedNumbers,
    /// Dates in one format, but for a few cells.
    AlmostDates,
}

impl ColumnSurvey {
    /// A column without cells. `missing` are words that count as missing, besides those that [`Missing`](crate::Missing) lists.
    pub fn new(name: impl Into<String>, decimal: Decimal, missing: &[String]) -> Self {
        Self {
            name: name.into(),
            n_missing: 0,
            n_numbers: 0,
            n_dates: 0,
            n_texts: 0,
            n_none: 0,
            not_numbers: Vec::new(),
            not_dates: Vec::new(),
            has_leading_zeros: false,
            are_whole: true,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            n_decimal_commas: 0,
            n_marked: 0,
            dates: Dates::default(),
            thousands: Thousands::default(),
            units: Units::default(),
            texts: Distinct::default(),
            numbers: Distinct::default(),
            decimal: decimal.mark(),
            missing: missing
                .iter()
                .map(|word| word.trim())
                .map(|word| MissingWord { word: word.to_owned(), number: word.parse().ok(), is_found: false })
                .collect(),
        }
    }

    /// A column of numbers of which only the statistics are known, in a source of `n_rows`.
    pub fn of_numbers(name: impl Into<String>, statistics: &ColumnStatistics, n_rows: u64) -> Self {
        let mut numbers = Distinct::default();
        if statistics.min == statistics.max {
            numbers.add(&(statistics.min + 0.0).to_bits().to_le_bytes());
        }
        Self {
            numbers,
            n_numbers: statistics.count,
            n_missing: n_rows - statistics.count,
            are_whole: false,
            min: statistics.min,
            max: statistics.max,
            ..Self::new(name, Decimal::Point, &[])
        }
    }

    /// Adds a cell that occurs `n` times, first in that line. Lines must ascend.
    pub fn add(&mut self, cell: &str, line: u64, n: u64) {
        self.add_bytes(cell.as_bytes(), n, || line);
    }

    pub(crate) fn add_bytes(&mut self, cell: &[u8], n: u64, line: impl Fn() -> u64) {
        if let Some(number) = number64(cell, self.decimal).filter(|number| number.is_finite()) {
            if self.is_missing_word(n, |word| word.number == Some(number)) {
                return;
            }
            self.n_numbers += n;
            self.has_leading_zeros |= matches!(cell, [b'0', b'0'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit));
            self.are_whole &= number.fract() == 0.0;
            self.thousands.add(cell, self.decimal);
            (self.min, self.max) = (self.min.min(number), self.max.max(number));
            // Numbers that are written differently are one; 0 and -0 are, too.
            self.numbers.add(&(number + 0.0).to_bits().to_le_bytes());
            if !self.dates.add_number(cell, n, &line) {
                note(&mut self.not_dates, cell, line);
            }
            return;
        }
        if self.is_missing_word(n, |word| cell.eq_ignore_ascii_case(word.word.as_bytes())) {
            return;
        }
        if cell.eq_ignore_ascii_case(b"none") {
            self.n_none += n;
            return;
        }
        if is_missing(cell) {
            self.n_missing += n;
            return;
        }
        self.texts.add(cell);
        note(&mut self.not_numbers, cell, &line);
        let text = str::from_utf8(cell).unwrap_or_default();
        if self.dates.add(text, n, &line) {
            self.n_dates += n;
            return;
        }
        note(&mut self.not_dates, cell, line);
        self.n_texts += n;
        if self.decimal == b'.' && cell.contains(&b',') && number64(cell, b',').is_some() {
            self.n_decimal_commas += n;
            self.thousands.add(cell, b',');
        } else if is_marked_number(text) {
            self.n_marked += n;
        } else {
            self.units.add(text, n);
        }
    }

    /// Whether a cell that occurs `n` times is one of the words for missing values; then it is counted.
    fn is_missing_word(&mut self, n: u64, is_word: impl Fn(&MissingWord) -> bool) -> bool {
        let word = self.missing.iter_mut().find(|word| is_word(word));
        word.map(|word| word.is_found = true).inspect(|()| self.n_missing += n).is_some()
    }

    /// The words for missing values that were passed to [`new`](Self::new) and that a cell has.
    pub fn found_missing_values(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().filter(|word| word.is_found).map(|word| word.word.as_str())
    }

    /// Adds the cells of the rows after those of `self`, whose lines are counted from `line`.
    pub(crate) fn merge(&mut self, later: &Self, line: u64) {
        self.n_missing += later.n_missing;
        self.n_numbers += later.n_numbers;
        self.n_dates += later.n_dates;
        self.n_texts += later.n_texts;
        self.n_none += later.n_none;
        self.n_decimal_commas += later.n_decimal_commas;
        self.n_marked += later.n_marked;
        self.has_leading_zeros |= later.has_leading_zeros;
        self.are_whole &= later.are_whole;
        (self.min, self.max) = (self.min.min(later.min), self.max.max(later.max));
        self.dates.merge(&later.dates, line);
        self.thousands.merge(&later.thousands);
        self.units.merge(&later.units);
        self.missing.iter_mut().zip(&later.missing).for_each(|(word, later)| word.is_found |= later.is_found);
        self.texts.merge(&later.texts);
        self.numbers.merge(&later.numbers);
        note_later(&mut self.not_numbers, &later.not_numbers, line);
        note_later(&mut self.not_dates, &later.not_dates, line);
    }

    /// The kind that all cells together have, whatever their order.
    pub fn kind(&self) -> ColumnKind {
        let (numbers, dates, texts) = (self.n_numbers, self.n_dates, self.n_texts);
        let (n, in_format, like_dates) = (numbers + dates + texts, self.dates.n_most(), dates + self.dates.n_others);
        let nearly = |some: u64| some > 0 && some >= NEARLY_ALL * (n - some);
        match (numbers, dates, texts) {
            (0, 0, 0) => ColumnKind::Empty,
            _ if in_format == n && (numbers == 0 || self.n_distinct() >= MIN_COMPACT_DATES) => ColumnKind::Dates,
            (_, 0, 0) if self.has_leading_zeros && self.are_whole => ColumnKind::Codes,
            (_, 0, 0) => ColumnKind::Numbers,
            _ if 2 * self.n_decimal_commas > texts && nearly(numbers + self.n_decimal_commas) => {
                ColumnKind::AlmostNumbers { decimal_comma: true }
            }
            _ if nearly(numbers) => ColumnKind::AlmostNumbers { decimal_comma: false },
            _ if self.n_marked > 0 && nearly(numbers + self.n_decimal_commas + self.n_marked) => ColumnKind::MarkedNumbers,
            _ if nearly(in_format) => ColumnKind::AlmostDates,
            _ if nearly(like_dates) => ColumnKind::OtherDates,
            _ if numbers >= dates + texts && self.texts.count() <= FEW_WORDS && self.numbers.count() > MANY_NUMBERS => {
                ColumnKind::AlmostNumbers { decimal_comma: false }
            }
            _ => ColumnKind::Text,
        }
    }

    /// The formats that most of the dates have: several, if no cell says which number is the day and which one the month, as in
    /// `03/04/2024`. The first one is the most usual.
    pub fn date_formats(&self) -> impl Iterator<Item = DateFormat> {
        self.dates.most()
    }

    /// The first cells that are neither dates in this format nor missing.
    pub fn not_in_format(&self, format: DateFormat) -> Vec<OddCell> {
        let mut cells = [&self.not_dates, self.dates.others(format)].concat();
        cells.sort_by_key(|cell| cell.line);
        cells.truncate(MAX_ODD);
        cells
    }

    /// How many cells have the format that most of the dates have.
    pub fn n_in_format(&self) -> u64 {
        self.dates.n_most()
    }

    /// The first number whose decimal mark may be a separator between thousands, if those of all numbers may: `7.015` beside
    /// `924`, but not beside `0.5`.
    pub fn thousands(&self) -> Option<&str> {
        self.thousands.example(self.n_decimal_commas > 0)
    }

    /// The first number with a unit, if nearly all cells of a column of text are numbers, most of them with one of few units:
    /// `5 km`.
    pub fn with_units(&self) -> Option<&str> {
        let others = self.n_dates + self.n_texts - self.units.n;
        let are_nearly_all = self.n_numbers + self.units.n >= NEARLY_ALL * others && self.kind() == ColumnKind::Text;
        self.units.example().filter(|_| are_nearly_all)
    }

    /// The number of cells that are not missing, if `None` is a value.
    pub fn n_values(&self) -> u64 {
        self.n_numbers + self.n_dates + self.n_texts + self.n_none
    }

    /// About how many different values there are; exact below 1024.
    pub fn n_distinct(&self) -> u64 {
        self.numbers.count() + self.texts.count() + u64::from(self.n_none > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cells: &[&str], expected: ColumnKind) {
        // In any order.
        for start in [0, cells.len() / 2, cells.len() - 1] {
            let mut column = ColumnSurvey::new("a", Decimal::Point, &["-999".to_owned(), "absent".to_owned()]);
            for i in 0..cells.len() {
                column.add(cells[(start + i) % cells.len()], i as u64, 1);
            }
            assert_eq!(column.kind(), expected, "{cells:?} from {start}");
        }
    }

    #[test]
    fn dates_in_several_forms_are_dates_and_numbers_with_units_are_named() {
        check(&["2024-01-31", "01/02/2024", "2024-03-04", "17/03/2024"], ColumnKind::OtherDates);
        check(&["2024-01-31", "01/02/2024", "2024-03-04", "soon", "late", "x"], ColumnKind::Text);
        let with_units = |cells: &[&str]| {
            let mut columns = [(); 2].map(|()| ColumnSurvey::new("a", Decimal::Point, &[]));
            cells.iter().enumerate().for_each(|(i, cell)| columns[i / 3 % 2].add(cell, i as u64, 2));
            let [mut first, second] = columns;
            first.merge(&second, 0);
            first.with_units().map(str::to_owned)
        };
        assert_eq!(with_units(&["5 km", "7 km", "12 km", "1.5 km", "900 m"]).as_deref(), Some("5 km"));
        assert_eq!(with_units(&["5 km", "7 km", "5 km", "7 km"]), None, "two values");
        assert_eq!(with_units(&["1A", "2B", "3C", "4D", "5E"]), None, "many units");
        assert_eq!(with_units(&["5 km", "7 km", "12 km", "far", "1.5 km", "near", "nearer"]), None, "other words");
    }

    /// The formats of a column of dates, and the lines of the cells that do not have the first of them.
    #[track_caller]
    fn check_dates(cells: &[&str], kind: ColumnKind, formats: &[&str], odd: &[u64]) {
        check(cells, kind);
        let mut columns = [(); 2].map(|()| ColumnSurvey::new("a", Decimal::Point, &[]));
        let half = cells.len() / 2;
        for (i, cell) in cells.iter().enumerate() {
            let is_later = i >= half;
            columns[usize::from(is_later)].add(cell, (if is_later { i - half } else { i }) as u64, 1);
        }
        let [mut column, later] = columns;
        column.merge(&later, half as u64);
        let found: Vec<_> = column.date_formats().map(|format| format.to_string()).collect();
        assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>(), column.kind()), (formats.to_vec(), kind), "{cells:?}");
        let first = column.date_formats().next().map_or_else(Vec::new, |format| column.not_in_format(format));
        assert_eq!(first.iter().map(|cell| cell.line).collect::<Vec<_>>(), odd, "{cells:?}");
    }

    #[test]
    fn the_format_of_dates_is_that_of_all_cells() {
        use ColumnKind::{AlmostDates, Dates, Numbers, OtherDates};
        check_dates(&["2024-01-31", "2024-02", "2024-02-29 10:30"], Dates, &["%Y-%m-%d"], &[]);
        check_dates(&["03/04/2024", "3/17/2024", "NA", "12/31/2023 2:05 PM"], Dates, &["%m/%d/%Y"], &[]);
        check_dates(&["03/04/2024", "17/3/2024"], Dates, &["%d/%m/%Y"], &[]);
        check_dates(&["03/04/2024", "05/06/2024"], Dates, &["%m/%d/%Y", "%d/%m/%Y"], &[]);
        check_dates(&["03.04.2024", "05.06.2024"], Dates, &["%d.%m.%Y", "%m.%d.%Y"], &[]);
        check_dates(&["17-Mar-2024", "3-May-2023 14:05"], Dates, &["%d-%b-%Y"], &[]);
        check_dates(&["Mar 17, 2024", "May 3, 2023"], Dates, &["%b %d, %Y"], &[]);
        check_dates(&["20240317", "20240318", "20231231", ""], Dates, &["%Y%m%d"], &[]);
        check_dates(&["20240317", "20240318", "20231231 10:30"], Dates, &["%Y%m%d"], &[]);
        check_dates(&["20240317", "20240318"], Numbers, &["%Y%m%d"], &[]);
        check_dates(&["20240317", "20240318", "20240399", "20240319"], Numbers, &["%Y%m%d"], &[2]);
        check_dates(
            &["17/03/2024", "03/17/2024", "04/05/2024", "x", "y"],
            ColumnKind::Text,
            &["%m/%d/%Y", "%d/%m/%Y"],
            &[0, 3, 4],
        );
        let mostly = ["03/04/2024", "05/06/2024", "17/03/2024", "01/01/2024", "03/17/2024", "02/02/2024"];
        check_dates(&mostly, AlmostDates, &["%m/%d/%Y", "%d/%m/%Y"], &[2]);
        check_dates(&[&mostly[..4], &["soon"]].concat(), AlmostDates, &["%d/%m/%Y"], &[4]);
        check_dates(&["1/5/24", "3/17/24"], Dates, &["%m/%d/%y"], &[]);
        check_dates(&["1/5/24", "3/17/2024"], OtherDates, &["%m/%d/%Y", "%m/%d/%y", "%d/%m/%y"], &[0]);
    }

    #[test]
    fn kinds_are_those_of_all_cells() {
        let words =
            ["", "NA", "n/a", "NaN", "null", "None", "-", ".", "?", "\\N", "<NA>", "#N/A", "#DIV/0!", "#VALUE!", "\u{a0}"];
        for word in words {
            check(&["1", "2.5", word, "-3e2", "-999", "absent"], ColumnKind::Numbers);
            check(&["2024-01-05", word, "2024-01-06 10:30"], ColumnKind::Dates);
        }
        check(&words, ColumnKind::Empty);
        check(&["\u{2212}3", "4\u{a0}", "5"], ColumnKind::Numbers);
        check(&["None", "BrkFace", "Stone"], ColumnKind::Text);
        check(&["01234", "1234", "999"], ColumnKind::Codes);
        check(&["0", "10", "0.5", "00.5"], ColumnKind::Numbers);
        check(&["1", "2", "3", "4", "12.5x"], ColumnKind::AlmostNumbers { decimal_comma: false });
        check(&["1", "2", "3", "4", "inf"], ColumnKind::AlmostNumbers { decimal_comma: false });
        check(&["1,5", "2", "3,25", "4"], ColumnKind::AlmostNumbers { decimal_comma: true });
        check(&["1", "2", "3", "4", "5", "6", "7", "8", "5' 4\"", "1,5"], ColumnKind::AlmostNumbers { decimal_comma: false });
        check(&["05.01.2024", "06.01.2024"], ColumnKind::Dates);
        check(&["2024-01-05", "2024-01-06", "2024-01-07", "2024-01-08", "soon"], ColumnKind::AlmostDates);
        check(&["A/5 21171", "17463", "PC 17599"], ColumnKind::Text);
        check(&["12%", "3.5 %", "40%"], ColumnKind::MarkedNumbers);
        check(&["$1,234", "$5.50", "($3)", "12"], ColumnKind::MarkedNumbers);
        check(&["1\u{a0}234", "12\u{a0}345", "999"], ColumnKind::MarkedNumbers);
        check(&["'3.5", "'4", "'1.25"], ColumnKind::MarkedNumbers);
        check(&["2024-01", "2024-02", "2024-12"], ColumnKind::Dates);
        check(&["01/2024", "02/2024", "12/2024"], ColumnKind::OtherDates);
        for (decimal, cells, expected) in [
            (Decimal::Point, &["924", "7.015", "-12.500"][..], Some("7.015")),
            (Decimal::Point, &["924", "7.015", "0.125"], None),
            (Decimal::Point, &["924", "7.015", "1200"], None),
            (Decimal::Point, &["924", "7.015", "8.5"], None),
            (Decimal::Point, &["7.015", "12.500"], None),
            (Decimal::Point, &["7", "12"], None),
            (Decimal::Point, &["7,015", "12,500"], Some("7,015")),
            (Decimal::Point, &["7,015", "12,50"], None),
            (Decimal::Comma, &["x", "", "7,015", "0"], Some("7,015")),
        ] {
            let (mut column, mut later) = (ColumnSurvey::new("a", decimal, &[]), ColumnSurvey::new("a", decimal, &[]));
            cells.iter().for_each(|cell| column.add(cell, 1, 1));
            assert_eq!(column.thousands(), expected, "{cells:?}");
            column = ColumnSurvey::new("a", decimal, &[]);
            column.add(cells[0], 1, 1);
            cells[1..].iter().for_each(|cell| later.add(cell, 1, 1));
            column.merge(&later, 1);
            assert_eq!(column.thousands(), expected, "{cells:?} in two parts");
        }
        let numbers: Vec<String> = (0..40).map(|i| i.to_string()).collect();
        let mut many: Vec<&str> = numbers.iter().map(String::as_str).collect();
        many.extend(["unknown"; 30]);
        check(&many, ColumnKind::AlmostNumbers { decimal_comma: false });
    }
}
