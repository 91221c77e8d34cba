/// Whether the numbers of a column may be whole numbers with separators between thousands that were read as decimal marks:
/// `7.015` beside `924`.
#[derive(Clone, Debug)]
pub(super) struct Thousands {
    /// Whether all numbers so far have either at most three digits, or a mark before the last three.
    fit: bool,
    has_small: bool,
    /// The first number with a mark.
    example: Option<String>,
}

impl Default for Thousands {
    fn default() -> Self {
        Self { fit: true, has_small: false, example: None }
    }
}

impl Thousands {
    /// Adds the text of a number with this decimal mark.
    pub(super) fn add(&mut self, number: &[u8], mark: u8) {
        if !self.fit {
            return;
        }
        let digits = number.strip_prefix(b"-").unwrap_or(number);
        let are_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        match digits {
            [b'1'..=b'9', ..] | b"0" if digits.len() <= 3 && are_digits(digits) => self.has_small = true,
            [b'1'..=b'9', rest @ ..] if (4..7).contains(&rest.len()) => {
                let (before, after) = rest.split_at(rest.len() - 3);
                self.fit =
                    are_digits(after) && before.split_last().is_some_and(|(&last, before)| last == mark && are_digits(before));
                if self.fit && self.example.is_none() {
                    self.example = Some(String::from_utf8_lossy(number).into_owned());
                }
            }
            _ => self.fit = false,
        }
    }

    pub(super) fn merge(&mut self, later: &Self) {
        self.fit &= later.fit;
        self.has_small |= later.has_small;
        self.example = self.example.take().or_else(|| later.example.clone());
    }

    /// The first number with a mark, if all numbers fit. Unless `is_text`, there must be numbers without a mark as well:
    /// fractions that are rounded to three digits all have one.
    pub(super) fn example(&self, is_text: bool) -> Option<&str> {
        self.example.as_deref().filter(|_| self.fit && (is_text || self.has_small))
    }
}
