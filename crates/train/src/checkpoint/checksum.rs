//! A checksum that is part of the JSON that it covers: eight hexadecimal digits, which count as zeros when it is computed.

use std::ops::Range;

/// The name of the JSON string that holds the digits.
pub(super) const KEY: &str = "brisk.crc32";
/// The digits before they are computed.
pub(super) const UNSET: &str = "00000000";

/// Where the digits are in `json`, if it has any.
///
/// Within a JSON string quotes are escaped, so a quoted key with an unescaped quote on either side is one.
pub(super) fn digits_of(json: &[u8]) -> Option<Range<usize>> {
    let quoted = format!("\"{KEY}\"");
    let digits_after = |key: usize| {
        let rest = &json[key + quoted.len()..];
        let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
        let start = json.len() - rest.len();
        let digits = start..start + UNSET.len();
        let is_hex = json.get(digits.clone())?.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (is_hex && json.get(digits.end) == Some(&b'"')).then_some(digits)
    };
    let keys = (0..json.len()).filter(|&at| json[at] == b'"' && json[at..].starts_with(quoted.as_bytes()));
    keys.filter(|&at| at > 0 && json[at - 1] != b'\\').find_map(digits_after)
}

/// Bytes, by their number and their CRC-32.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    crc: crc32fast::Hasher,
    pub(crate) len_bytes: u64,
}

impl Content {
    pub(crate) fn of<'a>(slices: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut content = Self::default();
        for bytes in slices {
            content.crc.update(bytes);
            content.len_bytes += bytes.len() as u64;
        }
        content
    }

    /// Bytes of which another replica has computed the CRC-32.
    pub(crate) fn with_crc(crc: u32, len_bytes: u64) -> Self {
        Self { crc: crc32fast::Hasher::new_with_initial_len(crc, len_bytes), len_bytes }
    }

    pub(crate) fn append(&mut self, next: &Self) {
        self.crc.combine(&next.crc);
        self.len_bytes += next.len_bytes;
    }

    pub(crate) fn crc(&self) -> u32 {
        self.crc.clone().finalize()
    }
}

/// The digits for `json`, which already has digits at `digits`, followed by `rest`.
pub(super) fn compute(json: &[u8], digits: &Range<usize>, rest: &Content) -> String {
    let mut all = Content::of([&json[..digits.start], UNSET.as_bytes(), &json[digits.end..]]);
    all.append(rest);
    format!("{:08x}", all.crc())
}

/// Writes the digits into `json`, which has a place for them.
pub(super) fn seal(json: &mut [u8], rest: &Content) {
    let digits = digits_of(json).expect("the JSON was made with the key");
    let computed = compute(json, &digits, rest);
    json[digits].copy_from_slice(computed.as_bytes());
}

/// Checks that the digits in `json`, if any, match it and `rest`; otherwise returns what is wrong.
pub(super) fn check(json: &[u8], rest: &Content) -> Result<Found, String> {
    let Some(digits) = digits_of(json) else { return Ok(Found::Nothing) };
    let (found, computed) = (&json[digits.clone()], compute(json, &digits, rest));
    if found == computed.as_bytes() {
        return Ok(Found::Correct);
    }
    Err(format!("its checksum is {computed}, expected {}: its content has changed", String::from_utf8_lossy(found)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Correct,
    Nothing,
}
