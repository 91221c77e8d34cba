/// A date of ISO 8601, with or without a time of day: `2024-02-29`, `2024-02-29T13:45`, `2024-02-29 13:45:10.5Z`; or a month,
/// `2024-02`, which is its first day. Dates in other forms are read by a [`DateFormat`](crate::DateFormat).
///
/// The date and the time of day are those of the clock where it was written down, whatever its [offset](Self::utc_offset) from
/// UTC.
///
/// # Examples
/// ```
/// use brisk_table::IsoTime;
///
/// let time = IsoTime::parse("2024-02-29 13:45").unwrap();
/// assert_eq!((time.year, time.month, time.day, time.seconds), (2024, 2, 29, Some(13.75 * 3600.0)));
/// assert_eq!((time.days(), time.weekday()), (19_782, 3));
/// let noon = ["2024-02-29T14:00+02:00", "2024-02-29 12:00Z"].map(|text| IsoTime::parse(text).unwrap());
/// assert_eq!(noon[0].unix_seconds(), noon[1].unix_seconds());
/// assert_eq!(IsoTime::parse("2023-02-29"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IsoTime {
    /// The year, 0 to 9999.
    pub year: u16,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
    /// Seconds since midnight, if there is a time.
    pub seconds: Option<f64>,
    /// How many seconds its clock is ahead of UTC, if it says so.
    pub utc_offset: Option<i32>,
}

impl IsoTime {
    /// The date or time that `text` is; `None` if it is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let ([y, m, d], rest) = match fields(text, '-', [4, 2]) {
            Some([y, m]) => ([y, m, 1], ""),
            None => {
                let (date, rest) = text.split_at_checked(10)?;
                (fields(date, '-', [4, 2, 2])?, rest)
            }
        };
        let time = match rest.strip_prefix(['T', 't', ' ']) {
            Some(time) => Some(time_of_day(time)?),
            None if rest.is_empty() => None,
            None => return None,
        };
        Self::of_parts(y, m, d, time)
    }

    /// The date with this time of day and its offset from UTC, if there is one; `None` if there is no such day.
    pub(crate) fn of_parts(year: u32, month: u32, day: u32, time: Option<(f64, Option<i32>)>) -> Option<Self> {
        let (year, month, day) = (u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        if !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
            return None;
        }
        Some(Self {
            year,
            month,
            day,
            seconds: time.map(|(seconds, _)| seconds),
            utc_offset: time.and_then(|(_, offset)| offset),
        })
    }

    /// Days from 1970-01-01 to this date.
    ///
    /// # Reference
    /// Howard Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`.
    pub fn days(&self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let (era, month_from_march) = (year.div_euclid(400), (month + 9) % 12);
        let (year_of_era, day_of_year) = (year.rem_euclid(400), (153 * month_from_march + 2) / 5 + day - 1);
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }

    /// Seconds from the beginning of 1970 in UTC to this time, or to the beginning of this date. Without an offset, the clock is
    /// that of UTC.
    pub fn unix_seconds(&self) -> f64 {
        86_400.0 * self.days() as f64 + self.seconds.unwrap_or(0.0) - f64::from(self.utc_offset.unwrap_or(0))
    }

    /// The day of the week, from 0 for Monday to 6.
    pub fn weekday(&self) -> u8 {
        u8::try_from((self.days() + 3).rem_euclid(7)).unwrap_or(0)
    }
}

/// Seconds since midnight of `13:45`, `13:45:10` or `13:45:10.5`, and its offset from UTC in seconds, if it has one.
pub(crate) fn time_of_day(time: &str) -> Option<(f64, Option<i32>)> {
    let utc = [" UTC", " GMT"].iter().find_map(|zone| time.strip_suffix(zone));
    let (time, offset) = match utc.unwrap_or(time).find(['Z', 'z', '+', '-']) {
        Some(_) if utc.is_some() => return None,
        None if utc.is_some() => (utc?, Some(0)),
        Some(at) if matches!(&time[at..], "Z" | "z") => (&time[..at], Some(0)),
        Some(at) => {
            let (time, offset) = time.split_at(at);
            let (sign, offset) = (if offset.starts_with('-') { -1 } else { 1 }, &offset[1..]);
            let [hours, minutes] = match (fields(offset, ':', [2, 2]), offset.len()) {
                (Some(fields), _) => fields,
                (None, 2) => [digits(offset)?, 0],
                (None, 4) => digits(offset).map(|digits| [digits / 100, digits % 100])?,
                _ => return None,
            };
            (time.trim_end(), Some(sign * i32::try_from(hours * 3600 + minutes * 60).ok()?))
        }
        None => (time, None),
    };
    let (whole, fraction) = time.split_once(['.', ',']).map_or((time, None), |(whole, fraction)| (whole, Some(fraction)));
    let [hour, minute, second] = match (fields(whole, ':', [2, 2, 2]), fields(whole, ':', [2, 2]), fraction) {
        (Some(fields), _, _) => fields,
        (None, Some([hour, minute]), None) => [hour, minute, 0],
        _ => return None,
    };
    let fraction: f64 = match fraction {
        Some(fraction) if !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("0.{fraction}").parse().ok()?
        }
        Some(_) => return None,
        None => 0.0,
    };
    let seconds = f64::from(hour * 3600 + minute * 60 + second) + fraction;
    (hour < 24 && minute < 60 && second <= 60).then_some((seconds, offset))
}

/// The numbers between separators, each with this many digits.
fn fields<const N: usize>(text: &str, separator: char, n_digits: [usize; N]) -> Option<[u32; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, n_digits) in numbers.iter_mut().zip(n_digits) {
        *number = digits(parts.next().filter(|part| part.len() == n_digits)?)?;
    }
    parts.next().is_none().then_some(numbers)
}

fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn days_in(year: u16, month: u8) -> u8 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The names of the months.
pub(crate) const MONTHS: [&str; 12] =
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];

/// Whether text looks like a date or a time of day in a form other than that of [`IsoTime`]: `05.01.2024`, `1/5/24 10:30 PM`,
/// `5 Jan 2024`, `10:30`.
#[cfg(feature = "csv")]
pub(crate) fn looks_like_date(text: &str) -> bool {
    if text.len() > 40 || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    let is_time = |text: &str| {
        let mut parts = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ').split(':');
        let is_part = |part: Option<&str>| part.is_some_and(|part| !part.is_empty() && part.len() <= 2 && digits(part).is_some());
        is_part(parts.next())
            && is_part(parts.next())
            && parts.next().is_none_or(|second| second.parse::<f32>().is_ok_and(|s| s < 61.0))
    };
    if is_time(text) {
        return true;
    }
    for separator in ['/', '.', '-'] {
        let parts: Vec<&str> = date.split(separator).collect();
        if parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.len() <= 4 && digits(part).is_some()) {
            let n_years = parts.iter().filter(|part| part.len() == 4).count();
            let are_days = parts.iter().filter(|part| part.len() <= 2).all(|part| digits(part).is_some_and(|day| day <= 99));
            let has_year = n_years == 1 || (n_years == 0 && separator == '/');
            return has_year && are_days && (time.is_empty() || is_time(time));
        }
        // A month and a year.
        if let [a, b] = parts[..]
            && separator != '.'
            && time.is_empty()
        {
            let (year, month) = if a.len() == 4 { (a, b) } else { (b, a) };
            let is_month = month.len() <= 2 && digits(month).is_some_and(|month| (1..=12).contains(&month));
            if is_month && year.len() == 4 && digits(year).is_some_and(|year| (1000..3000).contains(&year)) {
                return true;
            }
        }
    }
    // Words, of which one is a month, and numbers.
    let words = text.split([' ', '-', ',', '/', '.']).filter(|word| !word.is_empty());
    let mut has_month = false;
    let all_known = words.into_iter().all(|word| {
        let lower = word.to_ascii_lowercase();
        let is_month =
            MONTHS.iter().any(|month| lower.starts_with(&month[..3])) && lower.bytes().all(|byte| byte.is_ascii_alphabetic());
        has_month |= is_month;
        is_month || digits(word).is_some() || is_time(word)
    });
    all_known && has_month
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_iso_8601_are_read() {
        let seconds = |text: &str| IsoTime::parse(text).and_then(|time| time.seconds);
        for (text, expected) in [
            ("2024-01-05T10:30", Some(37_800.0)),
            ("2024-01-05 10:30:01.5", Some(37_801.5)),
            ("2024-01-05T10:30:00Z", Some(37_800.0)),
            ("2024-01-05T10:30:00+02:00", Some(37_800.0)),
            ("2024-01-05 10:30:00 -0500", Some(37_800.0)),
            ("2024-01-05", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
            assert!(IsoTime::parse(text).is_some(), "{text}");
        }
        let offset = |text: &str| IsoTime::parse(text).and_then(|time| time.utc_offset);
        for (text, expected) in [
            ("2024-01-05T10:30", None),
            ("2024-01-05T10:30Z", Some(0)),
            ("2024-01-05T10:30+02", Some(7200)),
            ("2024-01-05T10:30:00-05:30", Some(-19_800)),
            ("2024-01-05 10:30 +0530", Some(19_800)),
            ("2024-01-05 10:30:00 UTC", Some(0)),
        ] {
            assert_eq!(offset(text), expected, "{text}");
        }
        for text in [
            "2024-13-01",
            "2024-13",
            "2024-1",
            "24-01",
            "2024-02-30",
            "05-01-2024",
            "2024-1-5",
            "2024-01-05x",
            "2024-01-05 25:00",
            "2024-01-05T",
            "2024-01-05T10:30+",
            "2024-01-05T10:30+5",
            "2024-01-05 10:30+01 UTC",
            "2024-01-05 10:30 CET",
            "20240105",
        ] {
            assert_eq!(IsoTime::parse(text), None, "{text}");
        }
        let days = |text: &str| IsoTime::parse(text).map(|time| (time.days(), time.weekday()));
        assert_eq!(days("1970-01-01"), Some((0, 3)));
        assert_eq!(days("2000-03-01"), Some((11_017, 2)));
        assert_eq!(days("2000-03"), Some((11_017, 2)));
        assert_eq!(days("1969-12-28"), Some((-4, 6)));
    }

    #[cfg(feature = "csv")]
    #[test]
    fn other_dates_are_recognised() {
        for text in [
            "05.01.2024",
            "01/2024",
            "2024/1",
            "1/5/24",
            "1/5/2024 10:30 PM",
            "2024/01/05",
            "5 Jan 2024",
            "Jan-24",
            "January 5, 2024",
            "10:30:15",
        ] {
            assert!(looks_like_date(text), "{text}");
        }
        for text in [
            "1.2.3",
            "Private",
            "10-15",
            "12.5x",
            "May",
            "A/5 21171",
            "13-inch",
            "192.168.0.1",
            "1-2-3",
            "13/2024",
            "1/2",
            "10-115",
        ] {
            assert!(!looks_like_date(text), "{text}");
        }
    }
}
