//! How the features of a row are processed once its cells are numbers; the same for every format.

use super::{FeatureDType, Missing, expected};
use crate::remedy::Expected;

/// How missing features are treated, which ones have indicators, and the type that features must fit into.
#[derive(Clone, Debug)]
pub(crate) struct FeatureRules {
    /// The number of features that are columns; the indicators come after them.
    n_columns: usize,
    pub(crate) on_missing: OnMissing,
    /// The words that mark a missing value, without surrounding blanks, and the numbers among them.
    pub(crate) words: Vec<String>,
    numbers: Vec<f32>,
    indicators: Vec<usize>,
    pub(crate) dtype: FeatureDType,
    /// What is subtracted from each feature and then each label, or empty.
    offsets: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OnMissing {
    Error,
    /// It stays NaN; so do infinities.
    Keep,
    /// It is NaN until the end, when the means are known.
    Mean,
    /// It becomes the value of its column.
    Fill(Vec<f32>),
}

impl OnMissing {
    pub(crate) fn of(missing: Missing, n_columns: usize) -> Self {
        match missing {
            Missing::Error => Self::Error,
            Missing::Keep => Self::Keep,
            Missing::Value(value) => Self::Fill(vec![value; n_columns]),
            Missing::Mean => Self::Mean,
        }
    }
}

impl FeatureRules {
    pub(crate) fn new(
        n_columns: usize,
        on_missing: OnMissing,
        words: &[String],
        indicators: Vec<usize>,
        dtype: FeatureDType,
    ) -> Self {
        let numbers = words.iter().filter_map(|word| word.trim().parse().ok()).filter(|number: &f32| !number.is_nan()).collect();
        Self {
            n_columns,
            on_missing,
            words: words.iter().map(|word| word.trim().to_owned()).collect(),
            numbers,
            indicators,
            dtype,
            offsets: Vec::new(),
        }
    }

    /// Subtracts these offsets, one for each feature and then each label, before numbers are rounded. Values to fill in are
    /// shifted too, unless they are `shifted` already.
    pub(crate) fn with_offsets(mut self, offsets: Vec<f64>, shifted: bool) -> Self {
        if let OnMissing::Fill(values) = &mut self.on_missing
            && !shifted
        {
            for (value, offset) in values.iter_mut().zip(&offsets) {
                *value = (f64::from(*value) - offset) as f32;
            }
        }
        self.offsets = offsets;
        self
    }

    /// What is subtracted from a number before it is rounded: that of a feature, including indicators, or a label after them.
    pub(crate) fn offset(&self, place: usize) -> f64 {
        self.offsets.get(place).copied().unwrap_or(0.0)
    }

    /// Whether a number means that the value is missing. [`finish`](Self::finish) compares numbers from which no offset was
    /// subtracted.
    pub(crate) fn is_missing_number(&self, value: f64) -> bool {
        self.numbers.contains(&(value as f32))
    }

    /// Whether a label means that it is missing; `place` is that of [`offset`](Self::offset).
    pub(crate) fn is_missing_label(&self, value: f32, place: usize) -> bool {
        value.is_nan() || (self.offset(place) == 0.0 && self.numbers.contains(&value))
    }

    /// The number of features per row, including indicators.
    pub(crate) fn n_features(&self) -> usize {
        self.n_columns + self.indicators.len()
    }

    /// Whether the text of a number's cell, without surrounding blanks, means that the value is missing.
    pub(crate) fn is_missing(&self, content: &[u8]) -> bool {
        is_missing(content) || self.is_missing_word(content)
    }

    /// The same for the cell of a category or a class.
    pub(crate) fn is_missing_text(&self, content: &[u8]) -> bool {
        is_missing_text(content) || self.is_missing_word(content)
    }

    fn is_missing_word(&self, content: &[u8]) -> bool {
        self.words.iter().any(|word| content.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Whether [`finish`](Self::finish) leaves rows of finite numbers unchanged.
    pub(crate) fn is_plain(&self) -> bool {
        self.numbers.is_empty()
            && self.indicators.is_empty()
            && self.dtype == FeatureDType::F32
            && !matches!(self.on_missing, OnMissing::Fill(_))
    }

    /// Completes the features of a row, `[n_features]`, in which NaN stands for a missing value.
    ///
    /// # Errors
    /// The index of the first feature that cannot be stored, and what was expected instead.
    pub(crate) fn finish(&self, features: &mut [f32]) -> Result<(), (usize, &'static Expected)> {
        let (columns, indicators) = features.split_at_mut(self.n_columns);
        for (i, value) in columns.iter_mut().enumerate() {
            if self.numbers.contains(value) && self.offset(i) == 0.0 {
                if self.on_missing == OnMissing::Error {
                    return Err((i, &expected::NOT_MISSING));
                }
                *value = f32::NAN;
            }
            // A number of that meaning from which an offset was subtracted.
            if value.is_nan() && self.on_missing == OnMissing::Error {
                return Err((i, &expected::NOT_MISSING));
            }
        }
        for (indicator, &column) in indicators.iter_mut().zip(&self.indicators) {
            *indicator = if columns[column].is_nan() { 1.0 } else { 0.0 };
        }
        if let OnMissing::Fill(values) = &self.on_missing {
            for (value, &fill) in columns.iter_mut().zip(values) {
                if value.is_nan() {
                    *value = fill;
                }
            }
        }
        match features.iter().position(|&value| !self.fits(value)) {
            Some(i) => Err((i, self.wanted())),
            None => Ok(()),
        }
    }

    fn fits(&self, value: f32) -> bool {
        match self.dtype {
            FeatureDType::F32 => true,
            #[cfg(feature = "half")]
            FeatureDType::F16 => !value.is_finite() || half::f16::from_f32(value).is_finite(),
            FeatureDType::U8 => value.fract() == 0.0 && (0.0..=255.0).contains(&value),
        }
    }

    fn wanted(&self) -> &'static Expected {
        match self.dtype {
            FeatureDType::F32 => &expected::IN_RANGE,
            #[cfg(feature = "half")]
            FeatureDType::F16 => &expected::IN_RANGE_OF_F16,
            FeatureDType::U8 => &expected::BYTE,
        }
    }
}

/// Words for missing values, in lower case: those of Python, R, SQL, SAS, spreadsheets and pandas.
const MISSING: [&str; 26] = [
    "nan", "na", "n/a", "null", "none", "nat", "<na>", "?", "-", "--", ".", "\\n", "#n/a", "#na", "#n/a n/a", "#div/0!",
    "#value!", "#ref!", "#num!", "#name?", "#null!", "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
];

/// Whether the text of a cell means that the value is missing.
pub(crate) fn is_missing(content: &[u8]) -> bool {
    match content.first() {
        None => true,
        Some(b'n' | b'N' | b'<' | b'?' | b'-' | b'.' | b'\\' | b'#' | b'1') => {
            MISSING.iter().any(|word| content.eq_ignore_ascii_case(word.as_bytes()))
        }
        // Other blanks, such as a no-break space.
        Some(128..) => str::from_utf8(content).is_ok_and(|text| text.trim().is_empty()),
        Some(_) => false,
    }
}

/// The same for text: there, `None` is a value like any other.
pub(crate) fn is_missing_text(content: &[u8]) -> bool {
    !content.eq_ignore_ascii_case(b"none") && is_missing(content)
}
