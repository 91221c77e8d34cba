use std::fmt;

use crate::iso_time::{IsoTime, MONTHS, time_of_day};

/// How the dates of a column are written, with or without a time of day: `14:05`, `14:05:09`, `2:05 PM`.
///
/// # Examples
/// ```
/// use brisk_table::DateFormat;
///
/// let us = DateFormat::named("%m/%d/%Y").unwrap();
/// let time = us.parse("3/17/2024 2:05 PM").unwrap();
/// assert_eq!((time.year, time.month, time.day, time.seconds), (2024, 3, 17, Some(50_700.0)));
/// assert_eq!(us.parse("17/03/2024"), None);
/// assert_eq!((us.to_string().as_str(), us.example().as_str()), ("%m/%d/%Y", "03/17/2024"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateFormat(pub(crate) usize);

/// In the order in which they are chosen where the dates of a column leave it open: a point has the day before it.
const PATTERNS: [&str; DateFormat::N] = [
    "%Y-%m-%d",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d.%m.%Y",
    "%m.%d.%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%Y%m%d",
    "%d-%b-%Y",
    "%d %b %Y",
    "%d/%b/%Y",
    "%b %d, %Y",
    "%b-%d-%Y",
    "%Y-%b-%d",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
    "%m.%d.%y",
    "%d-%b-%y",
    "%d %b %y",
    "%b %Y",
    "%Y %b",
];

impl DateFormat {
    pub(crate) const N: usize = 24;

    /// Dates of ISO 8601, and months: all that [`IsoTime::parse`] reads, and years, months and days in its order with fewer
    /// digits, or with a time in another form.
    pub const ISO: Self = Self(0);

    /// Dates without separators.
    pub(crate) const COMPACT: Self = Self(9);

    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::N).map(Self)
    }

    /// The format with this pattern of `strftime`, of which there are `%Y`, `%y`, `%m`, `%d` and `%b`; `None` for one that is
    /// not read.
    pub fn named(pattern: &str) -> Option<Self> {
        PATTERNS.iter().position(|other| *other == pattern).map(Self)
    }

    /// The date or time that `text` is; `None` if it is anything else. Days and months may have one digit, names of months may be
    /// whole words in English. Years of two digits are 1969 to 2068, as POSIX reads them. A month is its first day, and the name
    /// of a weekday before a date is not checked.
    pub fn parse(self, text: &str) -> Option<IsoTime> {
        let text = without_weekday(text);
        if let Some(time) = IsoTime::parse(text).filter(|_| self == Self::ISO) {
            return Some(time);
        }
        let is_compact = self == Self::COMPACT;
        // Numbers with missing ones among them are written as fractions by some programs.
        let mut rest = if is_compact { text.strip_suffix(".0").unwrap_or(text) } else { text };
        // With points and two digits of the year, fewer digits are those of a version or a section.
        let has_points = self.has_short_years() && PATTERNS[self.0].contains('.');
        let min_digits = if is_compact || has_points { 2 } else { 1 };
        let (mut year, mut month, mut day) = (0, 0, 1);
        for field in PATTERNS[self.0].split('%').skip(1) {
            let (field, separator) = field.split_at(1);
            match field {
                "Y" => year = number(&mut rest, 4, 4)?,
                "y" => year = number(&mut rest, 2, 2).map(|short| short + if short < 69 { 2000 } else { 1900 })?,
                "b" => month = named_month(&mut rest)?,
                "m" => month = number(&mut rest, min_digits, 2)?,
                _ => day = number(&mut rest, min_digits, 2)?,
            }
            for mark in separator.chars() {
                rest = match (rest.strip_prefix(mark), mark) {
                    (None, ',') => rest,
                    (Some(after), ' ') => after.trim_start_matches(' '),
                    (after, _) => after?,
                };
            }
        }
        if is_compact && !matches!(year, 1800..2200 | 9999) {
            return None;
        }
        let time = match rest.strip_prefix([',', 'T', 't', ' ']) {
            Some(time) => Some(time_in_any_form(time.trim_start_matches(' '))?),
            None if rest.is_empty() => None,
            None => return None,
        };
        IsoTime::of_parts(year, month, day, time)
    }

    /// The same with day and month in the other order, if both are numbers of which either may be first.
    pub fn swapped(self) -> Option<Self> {
        let swapped = Self::named(&PATTERNS[self.0].replace("%d", "%?").replace("%m", "%d").replace("%?", "%m"));
        swapped.filter(|other| *other != self)
    }

    /// Whether the day is before the month.
    pub fn is_day_first(self) -> bool {
        PATTERNS[self.0].find("%d") < PATTERNS[self.0].find(['m', 'b'])
    }

    /// Whether years have two digits.
    pub fn has_short_years(self) -> bool {
        PATTERNS[self.0].contains("%y")
    }

    /// A date in this format, 17 March 2024, or this month.
    pub fn example(self) -> String {
        [("%Y", "2024"), ("%y", "24"), ("%m", "03"), ("%b", "Mar"), ("%d", "17")]
            .into_iter()
            .fold(PATTERNS[self.0].to_owned(), |text, (field, value)| text.replace(field, value))
    }
}

/// Its pattern of `strftime`: `%d.%m.%Y`.
impl fmt::Display for DateFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PATTERNS[self.0])
    }
}

/// Takes a number with this many digits.
fn number(text: &mut &str, min_digits: usize, max_digits: usize) -> Option<u32> {
    let n_digits = text.bytes().take(max_digits).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(n_digits);
    *text = rest;
    if n_digits >= min_digits { number.parse().ok() } else { None }
}

/// The text after the name of a weekday, or its first letters, in English.
fn without_weekday(text: &str) -> &str {
    const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let (name, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_alphabetic).count());
    let is_name = |day: &&str| day.get(..name.len()).is_some_and(|start| name.len() >= 3 && start.eq_ignore_ascii_case(name));
    if WEEKDAYS.iter().any(is_name) { rest.trim_start_matches(['.', ',', ' ']) } else { text }
}

/// Takes the name of a month, or the first letters of it, with or without a point.
fn named_month(text: &mut &str) -> Option<u32> {
    let (name, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_alphabetic).count());
    *text = rest.strip_prefix('.').unwrap_or(rest);
    let is_name = |month: &&str| month.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    if name.len() >= 3 { (1..).zip(MONTHS.iter()).find(|(_, month)| is_name(month)).map(|(month, _)| month) } else { None }
}

/// Seconds since midnight, and the offset from UTC, of a time of ISO 8601, or of one with a half of the day, or with one digit of
/// the hour.
fn time_in_any_form(time: &str) -> Option<(f64, Option<i32>)> {
    const HALF_DAY: f64 = 12.0 * 3600.0;
    let half = time.get(time.len().saturating_sub(2)..).map(str::to_ascii_lowercase).filter(|half| half == "am" || half == "pm");
    let clock = half.as_ref().map_or(time, |_| time[..time.len() - 2].trim_end());
    let (seconds, offset) = if clock.find(':') == Some(1) { time_of_day(&format!("0{clock}"))? } else { time_of_day(clock)? };
    match half.as_deref() {
        None => Some((seconds, offset)),
        Some(_) if !(3600.0..HALF_DAY + 3600.0).contains(&seconds) => None,
        Some(half) => Some((seconds % HALF_DAY + if half == "pm" { HALF_DAY } else { 0.0 }, offset)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: Option<(u16, u8, u8, Option<f64>)>) {
        let format = DateFormat::named(pattern).expect("a format");
        let found = format.parse(text).map(|time| (time.year, time.month, time.day, time.seconds));
        assert_eq!(found, expected, "{text} as {pattern}");
    }

    #[test]
    fn dates_are_read_in_their_format_only() {
        let day = Some((2024, 3, 17, None));
        for (pattern, text) in [
            ("%Y-%m-%d", "2024-03-17"),
            ("%Y-%m-%d", "2024-3-17"),
            ("%m/%d/%Y", "03/17/2024"),
            ("%m/%d/%Y", "3/17/2024"),
            ("%d/%m/%Y", "17/3/2024"),
            ("%d.%m.%Y", "17.03.2024"),
            ("%d-%m-%Y", "17-03-2024"),
            ("%Y/%m/%d", "2024/03/17"),
            ("%Y%m%d", "20240317"),
            ("%Y%m%d", "20240317.0"),
            ("%d-%b-%Y", "17-Mar-2024"),
            ("%d-%b-%Y", "17-MAR-2024"),
            ("%d %b %Y", "17 March 2024"),
            ("%b %d, %Y", "Mar 17, 2024"),
            ("%b %d, %Y", "March 17 2024"),
            ("%b %d, %Y", "Mar.  17, 2024"),
            ("%m/%d/%y", "3/17/24"),
            ("%d/%m/%y", "17/03/24"),
            ("%d.%m.%y", "17.03.24"),
            ("%d-%b-%y", "17-Mar-24"),
            ("%d %b %Y", "Sun, 17 Mar 2024"),
            ("%b %d, %Y", "Sunday March 17, 2024"),
        ] {
            check(pattern, text, day);
        }
        for (pattern, text) in [
            ("%m/%d/%Y", "17/03/2024"),
            ("%m/%d/%Y", "03.17.2024"),
            ("%m/%d/%Y", "03/17/24"),
            ("%m/%d/%Y", "03/17/20245"),
            ("%m/%d/%Y", "02/30/2024"),
            ("%d/%m/%Y", "0/3/2024"),
            ("%d.%m.%Y", "17.03.2024x"),
            ("%d.%m.%Y", "017.03.2024"),
            ("%Y%m%d", "2024317"),
            ("%Y%m%d", "20241317"),
            ("%Y%m%d", "12340317"),
            ("%d-%b-%Y", "17-Ma-2024"),
            ("%d-%b-%Y", "17-Marz-2024"),
            ("%b %d, %Y", "Mar17, 2024"),
            ("%d.%m.%Y", ""),
            ("%d.%m.%Y", "17.03.2024 "),
            ("%d %b %Y", "17 M\u{e4}rz 2024"),
            ("%m/%d/%y", "03/17/2024"),
            ("%m/%d/%y", "03/17/4"),
            ("%d.%m.%y", "1.2.03"),
            ("%d %b %Y", "Son, 17 Mar 2024"),
            ("%b %Y", "Mar 24"),
        ] {
            check(pattern, text, None);
        }
        check("%b %Y", "Mar 2024", Some((2024, 3, 1, None)));
        check("%Y %b", "2024 March", Some((2024, 3, 1, None)));
        check("%m/%d/%y", "12/31/68", Some((2068, 12, 31, None)));
        check("%m/%d/%y", "01/01/69 14:05", Some((1969, 1, 1, Some(50_700.0))));
    }

    #[test]
    fn dates_may_have_times() {
        let at = |seconds: f64| Some((2024, 3, 17, Some(seconds)));
        for (text, expected) in [
            ("03/17/2024 14:05", at(50_700.0)),
            ("03/17/2024 14:05:09", at(50_709.0)),
            ("3/17/2024 2:05 PM", at(50_700.0)),
            ("3/17/2024, 2:05:09pm", at(50_709.0)),
            ("3/17/2024 12:05 AM", at(300.0)),
            ("3/17/2024 12:05 PM", at(43_500.0)),
            ("03/17/2024T14:05:09.5Z", at(50_709.5)),
            ("3/17/2024 9:05", at(32_700.0)),
            ("3/17/2024 14:05 PM", None),
            ("3/17/2024 0:05 PM", None),
            ("3/17/2024 25:05", None),
            ("3/17/2024 PM", None),
            ("3/17/2024 \u{e9}m", None),
        ] {
            check("%m/%d/%Y", text, expected);
        }
        check("%Y-%m-%d", "2024-03-17 2:05 PM", at(50_700.0));
    }

    #[test]
    fn formats_have_names_examples_and_orders() {
        for format in DateFormat::all() {
            assert_eq!(DateFormat::named(&format.to_string()), Some(format));
            let first = if format.to_string().contains("%d") { 19_799 } else { 19_783 };
            assert_eq!(format.parse(&format.example()).map(|time| time.days()), Some(first), "{format}");
        }
        let swapped = |pattern: &str| DateFormat::named(pattern).and_then(DateFormat::swapped).map(|format| format.to_string());
        assert_eq!(swapped("%d.%m.%Y").as_deref(), Some("%m.%d.%Y"));
        assert_eq!(swapped("%m/%d/%Y").as_deref(), Some("%d/%m/%Y"));
        assert_eq!(["%Y-%m-%d", "%d-%b-%Y", "%Y%m%d", "%b %Y"].map(swapped), [const { None }; 4]);
        assert_eq!((DateFormat::ISO.to_string().as_str(), DateFormat::COMPACT.to_string().as_str()), ("%Y-%m-%d", "%Y%m%d"));
        let is_day_first = |pattern: &str| DateFormat::named(pattern).is_some_and(DateFormat::is_day_first);
        assert!(is_day_first("%d.%m.%Y") && is_day_first("%d-%b-%Y") && !is_day_first("%m/%d/%Y") && !is_day_first("%Y-%m-%d"));
    }
}
