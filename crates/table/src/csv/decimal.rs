//! Decimal text to `f32`, rounded exactly: bit-identical to `str::parse`.
//!
//! A number is first computed in `f64`, with an error of a few units in its last place. Rounding that to `f32` gives the right
//! answer unless the `f64` lies so close to the midpoint between two `f32` that the error could carry it across; in that case,
//! about once in ten million numbers, `str::parse` is called. So the fast path needs no exact arithmetic, only a bound on its
//! error.

use std::borrow::Cow;

use super::block::{BLOCK_LEN, Block};
use crate::import::{EXACT_LIMIT, exact};

/// How far beyond a cell's first byte [`simple_cell`] and [`long_cell`] may look: the third word after a point at byte 9.
pub(super) const LOOK_AHEAD: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) delimiter: u8,
    pub(super) decimal: u8,
}

/// Whether a cell is the last of its row; a carriage return may precede the end of the last cell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Inner,
    Last,
}

/// Parses the number at the start of `text`, and returns it with its length up to the delimiter or line feed. Handles only simple
/// numbers, which most are: fewer than 16 bytes, 1 to 8 digits, optionally a point and up to 13 more; less than [`EXACT_LIMIT`],
/// without leading zeros. `None` does not mean that the cell is invalid.
///
/// The result is finite.
#[inline(always)]
pub(super) fn simple_cell(text: &[u8; LOOK_AHEAD], marks: Marks, place: Place) -> Option<(f32, usize)> {
    let block = Block::load(first(text));
    let ends = block.equals(marks.delimiter) | block.equals(b'\n');
    if ends == 0 {
        return None;
    }
    let len = ends.trailing_zeros() as usize;
    let end = if place == Place::Last && len > 0 && text[len - 1] == b'\r' { len - 1 } else { len };

    let point = (block.equals(marks.decimal) | 1 << end).trailing_zeros() as usize;
    let negative = usize::from(text[0] == b'-');
    let n_whole = point.wrapping_sub(negative);
    if n_whole.wrapping_sub(1) >= 8 {
        return None;
    }
    let n_fraction = end.saturating_sub(point + 1) & (BLOCK_LEN - 1);

    let whole = digits(text, negative) << (64 - 8 * n_whole);
    let tenths = digits(text, point + 1) & KEEP[n_fraction];
    let more = digits(text, point + 9) & KEEP[n_fraction.saturating_sub(8)];
    // No branch depends on the number of digits, which a branch predictor cannot learn.
    if not_digits(whole) | not_digits(tenths) | not_digits(more) != 0 {
        return None;
    }
    let n = eight_digits(whole);
    // Large numbers lose digits and codes lose their zeros; neither is simple.
    if n >= EXACT_LIMIT as u64 || starts_with_zero(text, negative, n_whole) {
        return None;
    }
    let after_point = eight_digits(tenths) * 100_000_000 + eight_digits(more);
    let value = n as i64 as f64 + after_point as i64 as f64 * 1e-16;
    // The largest error: each term is rounded twice, each sum once. Less than 4 units in the last place.
    let rounded = round(value)?;
    Some((f32::from_bits(rounded.to_bits() | (negative as u32) << 31), len))
}

/// Like [`simple_cell`] for longer numbers, such as printed `f64` values or the output of `%.18e`: up to 8 digits, a point and up
/// to 24 more, optionally an exponent of two digits with its sign, in fewer than 32 bytes.
#[inline(never)]
pub(super) fn long_cell(text: &[u8; LOOK_AHEAD], marks: Marks, place: Place) -> Option<(f32, usize)> {
    let negative = usize::from(text[0] == b'-');
    // `%.18e`, with which numpy's `savetxt` writes numbers, has its marks in the same places.
    let [point, exponent_at, end] = [1, 20, 24].map(|at| negative + at);
    if text[point] == marks.decimal && text[exponent_at] == b'e' && (text[end] == marks.delimiter || text[end] == b'\n') {
        return Some((long_number(text, [negative, point, exponent_at, end])?, end));
    }
    let (front, back) = (Block::load(first(text)), Block::load(second(text)));
    let equals = |byte| front.equals(byte) | back.equals(byte) << BLOCK_LEN;
    let ends = equals(marks.delimiter) | equals(b'\n');
    if ends == 0 {
        return None;
    }
    let len = ends.trailing_zeros() as usize;
    let end = if place == Place::Last && len > 0 && text[len - 1] == b'\r' { len - 1 } else { len };
    let exponent_at = (equals(b'e') | 1 << end).trailing_zeros() as usize;
    let point = (equals(marks.decimal) | 1 << exponent_at).trailing_zeros() as usize;
    Some((long_number(text, [negative, point, exponent_at, end])?, len))
}

/// The number of a [`long_cell`] whose digits, point, exponent and end are at these places.
#[inline(always)]
fn long_number(text: &[u8; LOOK_AHEAD], [first, point, exponent_at, end]: [usize; 4]) -> Option<f32> {
    let power = if exponent_at == end { 1.0 } else { power_of_ten(&text[exponent_at..end])? };
    let n_whole = point.wrapping_sub(first);
    if n_whole.wrapping_sub(1) >= 8 {
        return None;
    }
    let n_fraction = exponent_at.saturating_sub(point + 1);
    if n_fraction > 24 {
        return None;
    }
    let whole = digits(text, first) << (64 - 8 * n_whole);
    let tenths = digits(text, point + 1) & KEEP[n_fraction.min(8)];
    let more = digits(text, point + 9) & KEEP[n_fraction.saturating_sub(8).min(8)];
    let rest = digits(text, point + 17) & KEEP[n_fraction.saturating_sub(16)];
    if not_digits(whole) | not_digits(tenths) | not_digits(more) | not_digits(rest) != 0 {
        return None;
    }
    let after_point = (eight_digits(tenths) * 100_000_000 + eight_digits(more)) as i64 as f64 * 1e-16;
    let value = eight_digits(whole) as i64 as f64 + after_point;
    // The remaining digits, `rest`, contribute less than 1e-16: that is 5 units in the last place of 0.1, and fewer for larger
    // values. With the errors of the terms, the sum, the power of ten and the product, the total is 11.
    let is_zero = value == 0.0 && rest == 0;
    if value < 0.1 && !is_zero {
        return None;
    }
    let value = value * power;
    if value >= EXACT_LIMIT || starts_with_zero(text, first, n_whole) {
        return None;
    }
    let rounded = round(value)?;
    Some(f32::from_bits(rounded.to_bits() | (first as u32) << 31))
}

/// Whether the first of several digits before the point is a zero.
#[inline(always)]
fn starts_with_zero(text: &[u8; LOOK_AHEAD], first: usize, n_whole: usize) -> bool {
    (n_whole > 1) & (text[first] == b'0')
}

/// The power of ten, rounded to `f64`, of an exponent of two digits with its sign, such as `e-01`. No branch depends on the sign,
/// which a branch predictor cannot learn.
#[inline(always)]
fn power_of_ten(exponent: &[u8]) -> Option<f64> {
    let &[b'e', sign @ (b'+' | b'-'), tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = exponent else { return None };
    let size = usize::from(tens - b'0') * 10 + usize::from(ones - b'0');
    let powers = [&POWERS, &INVERSE_POWERS];
    powers[usize::from(sign == b'-')].get(size).copied()
}

/// Parses any number that `str::parse::<f32>` accepts, with a bit-identical result; also with the minus sign U+2212, and between
/// no-break spaces. `text` has no surrounding blanks.
pub(crate) fn number(text: &[u8], decimal: u8) -> Option<f32> {
    scientific(text, decimal).or_else(|| parse(text, decimal))
}

/// Like [`number`], in `f64`.
pub(crate) fn number64(text: &[u8], decimal: u8) -> Option<f64> {
    let mut rest = text;
    let (mut whole, mut n_digits) = (0, 0);
    take_digits(&mut rest, &mut whole, &mut n_digits);
    // Whole numbers below 2^53 are exact.
    if rest.is_empty() && (1..=15).contains(&n_digits) {
        return Some(whole as f64);
    }
    match text.first() {
        // Most text cannot be a number.
        Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b',' | b'i' | b'I' | b'n' | b'N' | 128..) => parse(text, decimal),
        _ => None,
    }
}

fn parse<T: std::str::FromStr>(text: &[u8], decimal: u8) -> Option<T> {
    plain(text, decimal)?.parse().ok()
}

/// The exact value of a cell for which [`number`] returns a value, and whether `f32` holds it.
pub(crate) fn exact_number(text: &[u8], decimal: u8) -> Option<(f64, bool)> {
    exact(&plain(text, decimal)?)
}

pub(crate) fn whole_number(text: &[u8], decimal: u8) -> Option<i128> {
    plain(text, decimal)?.parse().ok()
}

/// The text of a number as `str::parse` takes it: with a decimal point and the ASCII minus sign, and without no-break spaces
/// around it.
fn plain(text: &[u8], decimal: u8) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(text).ok()?;
    let ascii = match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.trim().replace('\u{2212}', "-")),
    };
    match decimal {
        b'.' => Some(ascii),
        _ if ascii.contains('.') => None,
        _ => Some(Cow::Owned(ascii.replace(char::from(decimal), "."))),
    }
}

/// Parses up to 19 digits, optionally with a point and an exponent.
fn scientific(text: &[u8], decimal: u8) -> Option<f32> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mut mantissa, mut n_digits) = (0_u64, 0_usize);
    take_digits(&mut rest, &mut mantissa, &mut n_digits);
    let mut exponent = 0_i32;
    if let Some((&first, fraction)) = rest.split_first()
        && first == decimal
    {
        rest = fraction;
        take_digits(&mut rest, &mut mantissa, &mut n_digits);
        exponent = -i32::try_from(fraction.len() - rest.len()).ok()?;
    }
    // Leading zeros count as digits too; this is rare, and `str::parse` handles it.
    if n_digits == 0 || n_digits > 19 {
        return None;
    }
    if let [b'e' | b'E', given @ ..] = rest {
        exponent += small_exponent(given)?;
        rest = &[];
    }
    if !rest.is_empty() {
        return None;
    }
    // Rounded once in the conversion to `f64`, and once per step: less than 4 units in the last place.
    let mut value = mantissa as f64;
    value = match exponent {
        0..=22 => value * POWERS[exponent as usize],
        -22..0 => value / POWERS[-exponent as usize],
        -44..-22 => value / POWERS[22] / POWERS[(-exponent - 22) as usize],
        _ => return None,
    };
    if value != 0.0 && !(1e-37..1e38).contains(&value) {
        return None;
    }
    round(value).map(|value| if negative { -value } else { value })
}

/// Parses up to three digits, optionally with a sign.
fn small_exponent(text: &[u8]) -> Option<i32> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mut exponent, mut n_digits) = (0, 0);
    take_digits(&mut rest, &mut exponent, &mut n_digits);
    if !rest.is_empty() || n_digits == 0 || n_digits > 3 {
        return None;
    }
    Some(if negative { -(exponent as i32) } else { exponent as i32 })
}

/// Removes all leading digits and appends them to `value`, which is meaningless after more than 19 of them.
fn take_digits(text: &mut &[u8], value: &mut u64, n_digits: &mut usize) {
    while let Some(eight) = text.first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight) ^ ZEROS;
        if not_digits(word) != 0 {
            break;
        }
        *value = value.wrapping_mul(100_000_000).wrapping_add(eight_digits(word));
        *n_digits += 8;
        *text = &text[8..];
    }
    while let [digit @ b'0'..=b'9', rest @ ..] = text {
        *value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        *n_digits += 1;
        *text = rest;
    }
}

/// The `f32` nearest to every number within 16 units in the last place of `value`, if there is exactly one; `value` is normal as
/// an `f32`, or 0.
#[inline(always)]
fn round(value: f64) -> Option<f32> {
    // The 29 bits that an `f32` lacks; their midpoint is the midpoint between two `f32`.
    const MIDDLE: u64 = 1 << 28;
    let below = value.to_bits() & ((1 << 29) - 1);
    if below.wrapping_sub(MIDDLE - 16) <= 32 {
        return None;
    }
    Some(value as f32)
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// `KEEP[n]` keeps the first `n` bytes of a word; all of them if `n` is 8 or more.
const KEEP: [u64; 16] = {
    let mut keep = [u64::MAX; 16];
    let mut n = 0;
    while n < 8 {
        keep[n] = (1 << (8 * n)) - 1;
        n += 1;
    }
    keep
};

/// The powers of ten that an `f64` holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
    1e22,
];

/// The `f64` values nearest to the inverses of [`POWERS`].
const INVERSE_POWERS: [f64; 23] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18,
    1e-19, 1e-20, 1e-21, 1e-22,
];

/// Eight bytes from `at` with `'0'` subtracted, so digits are 0 to 9; the first is in the lowest byte.
#[inline(always)]
fn digits(text: &[u8; LOOK_AHEAD], at: usize) -> u64 {
    let eight = text[at..].first_chunk().expect("cells are shorter than what may be looked ahead");
    u64::from_le_bytes(*eight) ^ ZEROS
}

/// Zero if every byte is 0 to 9.
#[inline(always)]
fn not_digits(word: u64) -> u64 {
    (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080
}

/// The number with these eight digits, the first in the lowest byte: joins neighbours, then pairs, then fours.
#[inline(always)]
fn eight_digits(word: u64) -> u64 {
    const PAIRS: u64 = 0x0000_00ff_0000_00ff;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let upper = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & PAIRS).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

#[inline(always)]
fn first(text: &[u8; LOOK_AHEAD]) -> &[u8; BLOCK_LEN] {
    text.first_chunk().expect("the look-ahead is longer than a block")
}

#[inline(always)]
fn second(text: &[u8; LOOK_AHEAD]) -> &[u8; BLOCK_LEN] {
    text[BLOCK_LEN..].first_chunk().expect("the look-ahead is longer than two blocks")
}

#[cfg(test)]
mod tests;
