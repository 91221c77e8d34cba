//! Rows of text to rows of numbers.

use super::CsvOptions;
use super::chunks::Chunk;
use super::decimal::{LOOK_AHEAD, Marks, Place, exact_number, long_cell, number, simple_cell, whole_number};
use super::head::{Head, SHIFTED, SKIPPED, TEXT, shown};
use super::quotes::{cell_content, cell_end, row_end};
use super::text::{Parsed, Position, n_lines};
use crate::import::{
    BadRows, ChunkLabels, Digits, EXACT_LIMIT, EXACT_LIMIT_F64, Labels, OnMissing, Roles, RowChunk, expected, has_leading_zero,
    minus_offset,
};
use crate::remedy::Expected;

/// Why a row is bad.
#[derive(Debug)]
pub(super) enum What {
    /// A cell that is not valid in its column.
    Cell {
        col: usize,
        found: String,
        expected: &'static Expected,
    },
    Ragged {
        found: usize,
    },
    QuoteLeftOpen,
}

/// The position of a cell in the text.
type Span = std::ops::Range<usize>;

/// How rows are converted to numbers.
#[derive(Debug)]
pub(super) struct RowParser<'a> {
    marks: Marks,
    slots: &'a [usize],
    /// The number of features, including indicators.
    n_features: usize,
    /// The number of slots for labels after those of the features: one if no column is a label.
    n_labels: usize,
    roles: &'a Roles,
    bad_rows: BadRows,
    /// Whether a row is complete once its cells are parsed.
    is_plain: bool,
}

impl<'a> RowParser<'a> {
    pub(super) fn new(head: &'a Head, options: &CsvOptions) -> Self {
        let roles = &head.roles;
        Self {
            marks: head.marks,
            slots: &head.slots,
            n_features: roles.rules.n_features(),
            n_labels: roles.n_labels(),
            roles,
            is_plain: roles.rules.is_plain() && roles.categories.is_empty() && !roles.labels.are_classes(),
            bad_rows: options.columns.bad_rows,
        }
    }

    /// Parses the rows of `chunk` into `parsed`. Unless bad rows are skipped, the result ends before the first of them.
    pub(super) fn parse(&self, chunk: &Chunk, parsed: &mut Parsed<RowChunk, What>) {
        let (text, len) = (chunk.with_look_ahead(), chunk.rows().len());
        parsed.rows.clear();
        let mut row = vec![0.0; self.n_features + self.n_labels + 1];
        let mut spans = vec![0..0; self.roles.categories.len() + 1];
        let mut at = 0;
        while at < len {
            if text[at] == b'\n' || text[at..].starts_with(b"\r\n") {
                at += if text[at] == b'\n' { 1 } else { 2 };
                parsed.rejected.n_blank_after += 1;
                continue;
            }
            parsed.rejected.row();
            let mut result = self.parse_row(text, at, &mut row, &mut spans, &mut parsed.rows.digits);
            if !self.is_plain
                && result.is_ok()
                && let Err(problem) = self.complete(text, at, &mut row, &spans, &mut parsed.rows)
            {
                result = Err(problem);
            }
            match result {
                Ok(next) => {
                    parsed.rows.features.extend_from_slice(&row[..self.n_features]);
                    if let ChunkLabels::Numbers(labels) = &mut parsed.rows.labels {
                        labels.extend_from_slice(&row[self.n_features..self.n_features + self.n_labels]);
                    }
                    if self.roles.weight.is_some() {
                        parsed.rows.weights.push(row[self.n_features + self.n_labels]);
                    }
                    at = next;
                }
                Err((place, what)) => {
                    let what = self.raggedness(text, at).unwrap_or(what);
                    let is_skipped = self.bad_rows.skips(self.is_unlabelled(&what));
                    let position = || Position { line: n_lines(&text[..place]), byte: place as u64 };
                    if parsed.rejected.add(is_skipped, || (position(), what)) {
                        break;
                    }
                    at = row_end(&text[..len], at, self.marks.delimiter).unwrap_or(len);
                }
            }
        }
        parsed.rows.seal();
        self.measure(&text[..len], &mut parsed.rows);
    }

    /// Whether a row is bad because its label is missing.
    fn is_unlabelled(&self, what: &What) -> bool {
        let What::Cell { col, found, .. } = what else { return false };
        let is_number = |number: f64| self.roles.rules.is_missing_number(number);
        let is_missing = |text: &str| {
            self.roles.rules.is_missing_text(text.as_bytes())
                || number(text.as_bytes(), self.marks.decimal).is_some_and(|x| is_number(x.into()))
        };
        self.roles.label_columns.contains(col) && is_missing(found)
    }

    /// Reads the cells of columns with numbers close to each other again, and notes what rounding has taken from them. Few
    /// columns are like that.
    fn measure(&self, text: &[u8], rows: &mut RowChunk) {
        let column = |place: usize| match place.checked_sub(self.n_features) {
            None => self.roles.features.get(place),
            Some(label) => self.roles.label_columns.get(label),
        };
        let is_shifted = |place: &usize| self.roles.rules.offset(*place) != 0.0;
        let narrow = rows.narrow().into_iter().filter(|place| !is_shifted(place));
        let mut narrow: Vec<(usize, usize)> = narrow.filter_map(|place| Some((*column(place)?, place))).collect();
        narrow.sort_unstable();
        let Some(&(last, _)) = narrow.last() else { return };
        let mut at = 0;
        while at < text.len() {
            let (row, mut wanted) = (at, narrow.iter().peekable());
            for col in 0..=last {
                let Some(end) = cell_end(text, at, self.marks.delimiter) else { return };
                if let Some(&(_, place)) = wanted.next_if(|(wanted, _)| *wanted == col) {
                    let content = cell_content(text, at, end);
                    if let (Some(stored), Some((exact, _))) =
                        (number(&content, self.marks.decimal), exact_number(&content, self.marks.decimal))
                    {
                        rows.digits[place].note_error(exact, stored.into());
                    }
                }
                if text[end] == b'\n' {
                    break;
                }
                at = end + 1;
            }
            let Some(end) = row_end(text, row, self.marks.delimiter) else { return };
            at = end;
        }
    }

    /// Parses the row at `start` into `row`, and stores the positions of its text cells in `spans`. Returns the byte after the
    /// row, or the position and kind of the problem.
    #[inline]
    fn parse_row(
        &self,
        text: &[u8],
        start: usize,
        row: &mut [f32],
        spans: &mut [Span],
        digits: &mut [Digits],
    ) -> Result<usize, (usize, What)> {
        let (&last, inner) = self.slots.split_last().expect("a file has a label and a feature at least");
        let mut at = start;
        for (col, &slot) in inner.iter().enumerate() {
            at += self.parse_cell(text, at, (col, slot), Place::Inner, row, spans, digits)?;
            if text[at] != self.marks.delimiter {
                return Err((at, What::Ragged { found: col + 1 }));
            }
            at += 1;
        }
        at += self.parse_cell(text, at, (inner.len(), last), Place::Last, row, spans, digits)?;
        if text[at] != b'\n' {
            return Err((start, What::Ragged { found: self.count_cells(text, start) }));
        }
        if self.roles.labels == Labels::Binary {
            let mut labels = row[self.n_features..].iter().zip(&self.roles.label_columns);
            if let Some((_, &col)) = labels.find(|&(&label, _)| label != 0.0 && label != 1.0) {
                return Err(self.wrong_cell(text, start, col, &expected::BINARY_LABEL));
            }
        }
        if let Some(col) = self.roles.weight
            && row[self.n_features + self.n_labels] < 0.0
        {
            return Err(self.wrong_cell(text, start, col, &expected::WEIGHT));
        }
        Ok(at + 1)
    }

    /// Completes a row whose cells are parsed: fills in, marks and checks features, and encodes text. On an error, nothing has
    /// been added to `rows`.
    #[inline(never)]
    fn complete(
        &self,
        text: &[u8],
        start: usize,
        row: &mut [f32],
        spans: &[Span],
        rows: &mut RowChunk,
    ) -> Result<(), (usize, What)> {
        if let Err((feature, expected)) = self.roles.rules.finish(&mut row[..self.n_features]) {
            return Err(self.wrong_cell(text, start, self.roles.features[feature], expected));
        }
        if !self.roles.labels.are_classes() {
            let mut labels = row[self.n_features..].iter().zip(&self.roles.label_columns).zip(self.n_features..);
            if let Some(((_, &col), _)) = labels.find(|&((&label, _), place)| self.roles.rules.is_missing_label(label, place)) {
                return Err(self.wrong_cell(text, start, col, &expected::LABEL_NOT_MISSING));
            }
        }
        let content = |span: &Span| cell_content(text, span.start, span.end);
        let (categories, label) = spans.split_at(self.roles.categories.len());
        for (span, &col) in categories.iter().zip(&self.roles.categories) {
            if str::from_utf8(&content(span)).is_err() {
                return Err((span.start, What::Cell { col, found: shown(&content(span)), expected: &expected::TEXT }));
            }
        }
        if self.roles.labels.are_classes() {
            let span = &label[0];
            let class = content(span);
            let col = self.roles.label_columns.first().copied().unwrap_or(0);
            let wrong = |expected| (span.start, What::Cell { col, found: shown(&class), expected });
            let Ok(name) = str::from_utf8(&class) else {
                return Err(wrong(&expected::CLASS_IN_UTF8));
            };
            if self.roles.rules.is_missing_text(&class) {
                return Err(wrong(&expected::CLASS));
            }
            match (&mut rows.labels, &self.roles.labels) {
                (ChunkLabels::Found(labels, values), _) => labels.push(values.code(name)),
                (ChunkLabels::Known(labels), Labels::Known(known)) => {
                    labels.push(known.number(name).ok_or_else(|| wrong(&expected::GIVEN_CLASS))?);
                }
                _ => unreachable!("a chunk has labels of the kind that the roles ask for"),
            }
        }
        for (span, values) in categories.iter().zip(&mut rows.values) {
            let value = content(span);
            let value = if self.roles.rules.is_missing_text(&value) { None } else { str::from_utf8(&value).ok() };
            rows.categories.push(value.map_or(0, |value| values.code(value)));
        }
        Ok(())
    }

    /// Parses the cell at `at` and returns its length.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a cell, and everything that it may be stored in")]
    fn parse_cell(
        &self,
        text: &[u8],
        at: usize,
        (col, slot): (usize, usize),
        place: Place,
        row: &mut [f32],
        spans: &mut [Span],
        digits: &mut [Digits],
    ) -> Result<usize, (usize, What)> {
        if slot < SHIFTED
            && let Some(window) = text[at..].first_chunk::<LOOK_AHEAD>()
        {
            if let Some((value, len)) = simple_cell(window, self.marks, place) {
                row[slot] = value;
                return Ok(len);
            }
            if let Some((value, len)) = long_cell(window, self.marks, place) {
                row[slot] = value;
                return Ok(len);
            }
        }
        self.parse_any_cell(text, at, (col, slot), row, spans, digits)
    }

    /// Like [`parse_cell`](Self::parse_cell), for cells of every kind: text, quoted, long, blank, missing, invalid.
    #[inline(never)]
    fn parse_any_cell(
        &self,
        text: &[u8],
        at: usize,
        (col, slot): (usize, usize),
        row: &mut [f32],
        spans: &mut [Span],
        digits: &mut [Digits],
    ) -> Result<usize, (usize, What)> {
        let Some(end) = cell_end(text, at, self.marks.delimiter) else {
            return Err((at, What::QuoteLeftOpen));
        };
        if slot >= TEXT {
            if slot != SKIPPED {
                spans[slot - TEXT] = at..end;
            }
            return Ok(end - at);
        }
        let slot = if slot >= SHIFTED { slot - SHIFTED } else { slot };
        let content = cell_content(text, at, end);
        let value = number(&content, self.marks.decimal);
        let expected = match value {
            Some(value) if value.is_finite() => {
                row[slot] = self.shifted(&content, value, slot);
                self.note(&content, value, digits.get_mut(slot));
                return Ok(end - at);
            }
            Some(value) if value.is_infinite() && content.iter().any(u8::is_ascii_digit) => &expected::IN_RANGE,
            _ if slot == self.n_features + self.n_labels => &expected::WEIGHT,
            _ if slot >= self.n_features => &expected::LABEL,
            Some(value) if value.is_infinite() => {
                if self.roles.rules.on_missing == OnMissing::Keep {
                    row[slot] = value;
                    return Ok(end - at);
                }
                &expected::FINITE
            }
            None if !self.roles.rules.is_missing(&content) => &expected::NUMBER,
            _ => {
                if self.roles.rules.on_missing != OnMissing::Error {
                    row[slot] = f32::NAN;
                    return Ok(end - at);
                }
                &expected::NOT_MISSING
            }
        };
        Err((at, What::Cell { col, found: shown(&content), expected }))
    }

    /// The number in a cell without the offset of its feature; NaN if the number stands for a missing value.
    fn shifted(&self, content: &[u8], value: f32, slot: usize) -> f32 {
        let offset = self.roles.rules.offset(slot);
        match if offset == 0.0 { None } else { exact_number(content, self.marks.decimal) } {
            None => value,
            Some((exact, _)) if self.roles.rules.is_missing_number(exact) => f32::NAN,
            Some((exact, _)) => {
                let whole = self.beyond_f64(content, exact).and_then(|whole| minus_offset(whole, offset));
                whole.unwrap_or(exact - offset) as f32
            }
        }
    }

    /// A whole number so large that `value`, its `f64`, may not have all its digits.
    fn beyond_f64(&self, content: &[u8], value: f64) -> Option<i128> {
        if value.abs() < EXACT_LIMIT_F64 { None } else { whole_number(content, self.marks.decimal) }
    }

    /// Notes what is lost of a number that is stored as `value`.
    fn note(&self, content: &[u8], value: f32, digits: Option<&mut Digits>) {
        let Some(digits) = digits else { return };
        digits.n_leading_zeros += u64::from(has_leading_zero(content));
        if f64::from(value.abs()) >= EXACT_LIMIT
            && let Some((exact, is_exact)) = exact_number(content, self.marks.decimal)
        {
            if !is_exact && digits.first_rounded.is_none() {
                digits.first_whole = self.beyond_f64(content, exact);
            }
            digits.note_large(exact, is_exact);
        }
        if value.abs() < f32::MIN_POSITIVE
            && let Some((exact, _)) = exact_number(content, self.marks.decimal)
        {
            digits.note_tiny(exact);
        }
    }

    /// The error for a cell of the row at `start`, all cells of which were parsed.
    #[cold]
    fn wrong_cell(&self, text: &[u8], start: usize, col: usize, expected: &'static Expected) -> (usize, What) {
        let mut at = start;
        for _ in 0..col {
            at = self.end_of_parsed(text, at) + 1;
        }
        let found = shown(&cell_content(text, at, self.end_of_parsed(text, at)));
        (at, What::Cell { col, found, expected })
    }

    /// The number of cells in the row at `start`, if it is wrong: then a cell may be invalid because it is in another place.
    #[cold]
    fn raggedness(&self, text: &[u8], start: usize) -> Option<What> {
        row_end(text, start, self.marks.delimiter)?;
        let found = self.count_cells(text, start);
        (found != self.slots.len()).then_some(What::Ragged { found })
    }

    /// The number of cells in the row, up to the end of the text.
    #[cold]
    fn count_cells(&self, text: &[u8], start: usize) -> usize {
        let (mut at, mut n) = (start, 1);
        while let Some(end) = cell_end(text, at, self.marks.delimiter) {
            if text[end] == b'\n' {
                break;
            }
            (at, n) = (end + 1, n + 1);
        }
        n
    }

    fn end_of_parsed(&self, text: &[u8], at: usize) -> usize {
        cell_end(text, at, self.marks.delimiter).expect("the row was parsed to its end")
    }
}
