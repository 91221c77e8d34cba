//! Where rows and cells end if quotes are respected: as in RFC 4180, a quote either opens a cell or has no special meaning.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memrchr};

/// The byte after the row that starts at `start`; `None` if the text ends first.
pub(super) fn row_end(text: &[u8], start: usize, delimiter: u8) -> Option<usize> {
    let mut at = start;
    loop {
        at = cell_end(text, at, delimiter)?;
        if text[at] == b'\n' {
            return Some(at + 1);
        }
        at += 1;
    }
}

/// The byte after the last row that ends in `text`, which starts with a row.
pub(super) fn last_row_end(text: &[u8], delimiter: u8) -> Option<usize> {
    if memchr(b'"', text).is_none() {
        return memrchr(b'\n', text).map(|at| at + 1);
    }
    let mut end = None;
    while let Some(next) = row_end(text, end.unwrap_or(0), delimiter) {
        end = Some(next);
        if next == text.len() {
            break;
        }
    }
    end
}

/// The delimiter or line feed that ends the cell that starts at `start`; `None` if the text ends first.
pub(super) fn cell_end(text: &[u8], start: usize, delimiter: u8) -> Option<usize> {
    let from = if text.get(start) == Some(&b'"') { closing_quote(text, start)? + 1 } else { start };
    memchr2(delimiter, b'\n', &text[from..]).map(|i| from + i)
}

/// The quote that closes the one at `start`; a doubled quote does not.
pub(super) fn closing_quote(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr(b'"', text.get(at..)?)?;
        if text.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// The content of the cell between `start` and `end`, without quotes and without surrounding blanks.
///
/// A cell with text after its closing quote is invalid and is returned unchanged.
pub(super) fn cell_content(text: &[u8], start: usize, end: usize) -> Cow<'_, [u8]> {
    let cell = &text[start..end];
    if cell.first() != Some(&b'"') {
        return Cow::Borrowed(cell.trim_ascii());
    }
    match closing_quote(cell, 0) {
        Some(close) if cell[close + 1..].trim_ascii().is_empty() => {
            let inside = &cell[1..close];
            if memchr(b'"', inside).is_none() {
                return Cow::Borrowed(inside.trim_ascii());
            }
            // Quotes inside come in pairs: keep the second of each.
            let mut after_quote = false;
            let single = |byte: &u8| {
                after_quote = *byte == b'"' && !after_quote;
                !after_quote
            };
            Cow::Owned(inside.trim_ascii().iter().copied().filter(single).collect())
        }
        _ => Cow::Borrowed(cell),
    }
}

/// The cells of the row that starts at `start`, and the byte after it; `None` if the text ends first.
pub(super) fn cells(text: &[u8], start: usize, delimiter: u8) -> Option<(Vec<Cow<'_, [u8]>>, usize)> {
    let (mut cells, mut at) = (Vec::new(), start);
    loop {
        let end = cell_end(text, at, delimiter)?;
        cells.push(cell_content(text, at, end));
        at = end + 1;
        if text[end] == b'\n' {
            return Some((cells, at));
        }
    }
}
