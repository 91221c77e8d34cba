//! What rounding to `f32` takes from the numbers of a column.

use crate::statistics::ColumnStatistics;

/// From here on, `f32` does not hold every whole number.
pub(crate) const EXACT_LIMIT: f64 = 16_777_216.0;

/// From here on, `f64` does not hold every whole number.
pub(crate) const EXACT_LIMIT_F64: f64 = 9_007_199_254_740_992.0;

/// What the numbers of a column lose when they are stored as `f32`. Text keeps its digits only as a category, or after an offset
/// is subtracted.
///
/// Only numbers of 16,777,216 (2²⁴) and more in absolute value are examined; smaller whole numbers are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Digits {
    /// How many of these numbers differ from the `f32` nearest to them.
    pub n_rounded: u64,
    /// The first of those, rounded only to `f64`.
    pub first_rounded: Option<f64>,
    /// The same number with all its digits, if it is a whole number of at least [`EXACT_LIMIT_F64`] in text.
    pub(crate) first_whole: Option<i128>,
    /// How many cells are whole numbers written with leading zeros, as codes are: `01234`. Only text can have them.
    pub n_leading_zeros: u64,
    /// How many of the whole numbers differ from the `f16` nearest to them, if they are stored as `f16`.
    pub(crate) n_half: u64,
    pub(crate) first_half: Option<f32>,
    /// How many of the numbers are too small for the full precision of `f32`, but not 0.
    pub(crate) n_tiny: u64,
    pub(crate) first_tiny: Option<f64>,
    /// The sum of the squared rounding errors, where they may matter: see [`may_lose`].
    pub(crate) squared_errors: f64,
    /// The first number with such an error, and what is stored in its place.
    pub(crate) first_error: Option<(f64, f64)>,
    /// The smallest and the largest of the numbers that were looked at for such errors.
    pub(crate) looked_at: [f64; 2],
    /// The smallest value of the column, in `f64`; NaN if there is none.
    pub min: f64,
    /// The largest value of the column, in `f64`; NaN if there is none.
    pub max: f64,
}

impl Digits {
    pub(crate) const NONE: Self = Self {
        n_rounded: 0,
        first_rounded: None,
        first_whole: None,
        n_leading_zeros: 0,
        n_half: 0,
        first_half: None,
        n_tiny: 0,
        first_tiny: None,
        squared_errors: 0.0,
        first_error: None,
        looked_at: [f64::INFINITY, f64::NEG_INFINITY],
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
    };

    /// Notes a number of at least [`EXACT_LIMIT`]; `is_exact` if `f32` holds it.
    #[cold]
    pub(crate) fn note_large(&mut self, value: f64, is_exact: bool) {
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        if !is_exact {
            self.n_rounded += 1;
            self.first_rounded.get_or_insert(value);
        }
    }

    /// The first of the numbers that differ from the `f32` nearest to them, with its digits, and the value stored in its place.
    pub(crate) fn first_rounding(&self) -> Option<(String, f64)> {
        let first = self.first_rounded?;
        Some((self.first_whole.map_or_else(|| first.to_string(), |whole| whole.to_string()), f64::from(first as f32)))
    }

    /// Notes a number of any size that was `f64` in the source.
    #[cfg(feature = "arrow")]
    #[inline]
    pub(crate) fn note(&mut self, value: f64) {
        if value.abs() >= EXACT_LIMIT && value.is_finite() {
            self.note_large(value, f64::from(value as f32) == value);
        }
        self.note_error(value, f64::from(value as f32));
        self.note_tiny(value);
    }

    /// Notes a whole number that `f64` rounds.
    #[cfg(feature = "arrow")]
    pub(crate) fn note_whole(&mut self, whole: i128) {
        let is_exact = whole as f32 as i128 == whole;
        if !is_exact && self.first_rounded.is_none() {
            self.first_whole = Some(whole);
        }
        self.note_large(whole as f64, is_exact);
        self.note_error(whole as f64, f64::from(whole as f32));
    }

    /// Notes a number, if it is too small for `f32`.
    #[inline]
    pub(crate) fn note_tiny(&mut self, value: f64) {
        if value != 0.0 && value.abs() < f64::from(f32::MIN_POSITIVE) {
            self.n_tiny += 1;
            self.first_tiny.get_or_insert(value);
        }
    }

    /// Notes what a number loses if it is stored as another one.
    #[inline]
    pub(crate) fn note_error(&mut self, value: f64, stored: f64) {
        let [min, max] = self.looked_at;
        self.looked_at = [min.min(value), max.max(value)];
        let error = value - stored;
        if error != 0.0 && error.is_finite() {
            self.squared_errors += error * error;
            self.first_error.get_or_insert((value, stored));
        }
    }

    /// Notes a whole number that `f16` rounds.
    #[cfg(feature = "half")]
    pub(crate) fn note_half(&mut self, value: f32) {
        self.n_half += 1;
        self.first_half.get_or_insert(value);
    }

    pub(crate) fn merge(&mut self, later: &Self) {
        self.n_rounded += later.n_rounded;
        if self.first_rounded.is_none() {
            (self.first_rounded, self.first_whole) = (later.first_rounded, later.first_whole);
        }
        self.n_leading_zeros += later.n_leading_zeros;
        self.n_half += later.n_half;
        self.first_half = self.first_half.or(later.first_half);
        self.n_tiny += later.n_tiny;
        self.first_tiny = self.first_tiny.or(later.first_tiny);
        self.squared_errors += later.squared_errors;
        self.first_error = self.first_error.or(later.first_error);
        let ([min, max], [later_min, later_max]) = (self.looked_at, later.looked_at);
        self.looked_at = [min.min(later_min), max.max(later_max)];
        (self.min, self.max) = (self.min.min(later.min), self.max.max(later.max));
    }

    /// Completes the extremes, of which only those of large numbers were noted. `stored` is rounded, and `offset` was subtracted
    /// from it.
    pub(crate) fn complete(&mut self, stored: &ColumnStatistics, offset: f64) {
        let (min, max) = (stored.min + offset, stored.max + offset);
        if !(min.abs() >= EXACT_LIMIT && self.min.is_finite()) {
            self.min = min;
        }
        if !(max.abs() >= EXACT_LIMIT && self.max.is_finite()) {
            self.max = max;
        }
    }
}

/// Whether rounding to `f32` may take a thousandth of the deviation from numbers up to `largest`.
pub(crate) fn may_lose(largest: f64, std: f64) -> bool {
    largest * f64::from(f32::EPSILON) / 2.0 > MAX_SHARE * std
}

/// The share of the standard deviation that rounding errors may have, on average, before an import warns about them.
pub(crate) const MAX_SHARE: f64 = 1e-3;

/// The same for numbers that are stored as `f16`, where fewer digits are wanted.
#[cfg(feature = "half")]
pub(crate) const MAX_SHARE_OF_HALF: f64 = 1e-2;

/// Numbers that are too small for `f32` matter if all are below this.
pub(crate) const TINY: f64 = 1e3 * f32::MIN_POSITIVE as f64;

/// The exact value of a cell that is a number, and whether `f32` holds it. `text` has no surrounding blanks, and a decimal point.
pub(crate) fn exact(text: &str) -> Option<(f64, bool)> {
    if let Ok(whole) = text.parse::<i128>() {
        return Some((whole as f64, whole as f32 as i128 == whole));
    }
    let value: f64 = text.parse().ok()?;
    Some((value, f64::from(value as f32) == value))
}

/// A whole number without an offset, which is subtracted before the number is rounded to `f64`; `None` if it is too large.
pub(crate) fn minus_offset(whole: i128, offset: f64) -> Option<f64> {
    Some(whole.checked_sub(offset.trunc() as i128)? as f64 - offset.fract())
}

/// Whether a cell is a whole number with leading zeros: `01234`, but neither `0` nor `0.5`.
pub(crate) fn has_leading_zero(content: &[u8]) -> bool {
    content.len() > 1 && content[0] == b'0' && content.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::{exact, has_leading_zero, minus_offset};

    #[track_caller]
    fn check(text: &str, expected: Option<(f64, bool)>) {
        assert_eq!(exact(text), expected, "{text}");
    }

    #[test]
    fn whole_numbers_are_exact_up_to_24_bits() {
        check("16777216", Some((16_777_216.0, true)));
        check("16777217", Some((16_777_217.0, false)));
        check("-16777219", Some((-16_777_219.0, false)));
        // `f64` rounds this to a number that `f32` holds.
        check("9007199254740993", Some((9_007_199_254_740_992.0, false)));
        check("1e8", Some((1e8, true)));
        check("16777216.5", Some((16_777_216.5, false)));
        check("x", None);
    }

    #[test]
    fn offsets_are_subtracted_from_all_digits() {
        assert_eq!(minus_offset((1 << 60) + 3, (1_u64 << 60) as f64), Some(3.0));
        assert_eq!(minus_offset(-5, 0.25), Some(-5.25));
        assert_eq!(minus_offset(i128::MIN, 1.0), None);
    }

    #[test]
    fn codes_begin_with_a_zero_and_are_whole() {
        assert!(["01", "00", "01234"].into_iter().all(|code| has_leading_zero(code.as_bytes())));
        assert!(["0", "10", "0.5", "00.5", "-01", ""].into_iter().all(|number| !has_leading_zero(number.as_bytes())));
    }
}
