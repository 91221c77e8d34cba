use super::odd_cell::{OddCell, note, note_later};
use crate::date_format::DateFormat;
use crate::iso_time::looks_like_date;

/// The cells of a column that are dates, by the formats that they have.
#[derive(Clone, Debug, Default)]
pub(super) struct Dates {
    formats: [OfFormat; DateFormat::N],
    /// Cells that look like dates, but have none of the formats.
    pub(super) n_others: u64,
}

#[derive(Clone, Debug, Default)]
struct OfFormat {
    n: u64,
    /// The first of the dates that have other formats only.
    others: Vec<OddCell>,
}

impl Dates {
    /// Adds a cell of text that occurs `n` times; returns whether it is a date in one of the formats.
    pub(super) fn add(&mut self, text: &str, n: u64, line: impl Fn() -> u64) -> bool {
        const MAX_BYTES: usize = 40;
        let may_be_date = text.len() <= MAX_BYTES && text.bytes().any(|byte| byte.is_ascii_digit());
        let is_date = may_be_date && self.add_if(|format| format.parse(text).is_some(), text.as_bytes(), n, line);
        self.n_others += if may_be_date && !is_date && looks_like_date(text) { n } else { 0 };
        is_date
    }

    /// The same for a cell that is a number.
    pub(super) fn add_number(&mut self, cell: &[u8], n: u64, line: impl Fn() -> u64) -> bool {
        let is_date = str::from_utf8(cell).is_ok_and(|text| DateFormat::COMPACT.parse(text).is_some());
        is_date && self.add_if(|format| format == DateFormat::COMPACT, cell, n, line)
    }

    fn add_if(&mut self, fits: impl Fn(DateFormat) -> bool, cell: &[u8], n: u64, line: impl Fn() -> u64) -> bool {
        let fits: [bool; DateFormat::N] = std::array::from_fn(|format| fits(DateFormat(format)));
        if !fits.contains(&true) {
            return false;
        }
        for (format, fits) in self.formats.iter_mut().zip(fits) {
            if fits { format.n += n } else { note(&mut format.others, cell, &line) }
        }
        true
    }

    /// Adds the cells of later rows, whose lines are counted from `line`.
    pub(super) fn merge(&mut self, later: &Self, line: u64) {
        self.n_others += later.n_others;
        for (format, later) in self.formats.iter_mut().zip(&later.formats) {
            format.n += later.n;
            note_later(&mut format.others, &later.others, line);
        }
    }

    /// How many dates have the format that most have.
    pub(super) fn n_most(&self) -> u64 {
        self.formats.iter().map(|format| format.n).max().unwrap_or(0)
    }

    /// The formats that most dates have.
    pub(super) fn most(&self) -> impl Iterator<Item = DateFormat> {
        let n_most = self.n_most();
        DateFormat::all().filter(move |format| n_most > 0 && self.formats[format.0].n == n_most)
    }

    /// The first of the dates that do not have the format.
    pub(super) fn others(&self, format: DateFormat) -> &[OddCell] {
        &self.formats[format.0].others
    }
}
