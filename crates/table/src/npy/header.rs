//! The header of a .npy file: bytes in, a description out.

use std::io::{self, Read};

use brisk_atomic_file::listed;
use serde_json::{Map, Value};

use crate::dtype::DType;
use crate::error::SourceError;
use crate::format::Unique;
use crate::import::{ByteOrder, Failure, Numbers};

/// The longest header that is read; those of plain arrays take 128 bytes, those of many fields a few thousand.
const MAX_HEADER_BYTES: usize = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) numbers: Numbers,
    pub(super) shape: Vec<u64>,
    pub(super) order: Order,
    /// The number of bytes before the values.
    pub(super) n_bytes: u64,
}

/// Which index of an array changes fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The last, as in C.
    RowMajor,
    /// The first, as in Fortran.
    ColumnMajor,
}

impl Header {
    /// Reads the header of the array called `name`.
    pub(super) fn read(name: &str, from: &mut dyn Read) -> Result<Self, Failure> {
        let malformed = |found: String, expected: &str| malformed(name, found, expected).into();
        let Some([m0, m1, m2, m3, m4, m5, major, minor]) = read_array(from)? else {
            return Err(malformed("an end within its first 8 bytes".to_owned(), "an array as `numpy.save` writes it"));
        };
        if [m0, m1, m2, m3, m4, m5] != *b"\x93NUMPY" {
            return Err(malformed("other first bytes than a .npy file has".to_owned(), "an array as `numpy.save` writes it"));
        }
        let (n_text, n_before) = match (major, minor) {
            (1, 0) => (read_array(from)?.map(|bytes| usize::from(u16::from_le_bytes(bytes))), 10),
            (2 | 3, 0) => (read_array(from)?.map(|bytes| u32::from_le_bytes(bytes) as usize), 12),
            _ => return Err(malformed(format!("version {major}.{minor}"), "1.0, 2.0 or 3.0; save it with a current numpy")),
        };
        let Some(n_text) = n_text.filter(|&n| n <= MAX_HEADER_BYTES) else {
            let found = n_text.map_or("an end within its length".to_owned(), |n| format!("{n} bytes of text"));
            return Err(malformed(found, "a header of at most 1 MiB"));
        };
        let mut text = vec![0; n_text];
        from.read_exact(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => malformed("an end within its text".to_owned(), "a whole file; fetch it again"),
            _ => error.into(),
        })?;
        Ok(Self::parse(name, &text, n_before + n_text as u64)?)
    }

    fn parse(name: &str, text: &[u8], n_bytes: u64) -> Result<Self, SourceError> {
        let malformed = |expected: &str| {
            malformed(name, String::from_utf8_lossy(&text[..text.len().min(200)]).trim_end().to_owned(), expected)
        };
        let json = str::from_utf8(text).ok().and_then(as_json);
        let mut entries = match json.map(|json| serde_json::from_str(&json)) {
            Some(Ok(Unique(Value::Object(entries)))) => entries,
            _ => Map::new(),
        };
        let entries = (["descr", "fortran_order", "shape"].map(|key| entries.remove(key)), entries.len());
        let ([Some(descr), Some(order), Some(shape)], 0) = entries else {
            return Err(malformed("a dictionary of `descr`, `fortran_order` and `shape`"));
        };
        let is_column_major = order.as_bool().ok_or_else(|| malformed("a `fortran_order` of True or False"))?;
        let shape = shape.as_array().and_then(|shape| shape.iter().map(Value::as_u64).collect());
        Ok(Self {
            numbers: numbers(name, &descr)?,
            shape: shape.ok_or_else(|| malformed("a `shape` of whole numbers"))?,
            order: if is_column_major { Order::ColumnMajor } else { Order::RowMajor },
            n_bytes,
        })
    }
}

fn malformed(name: &str, found: String, expected: &str) -> SourceError {
    SourceError::unexpected(format!("the header of `{name}`"), found, expected, &[])
}

/// A literal of Python as JSON, whose arrays are also tuples: with other quotes, brackets and truth values, and no comma after
/// the last item. `None` if a quote is left open, or a parenthesis was not opened.
fn as_json(literal: &str) -> Option<String> {
    let (mut json, mut parentheses) = (String::with_capacity(literal.len()), Vec::new());
    let mut rest = literal;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' | '"' => {
                let (text, after) = rest.split_once(c)?;
                json += &Value::from(text).to_string();
                rest = after;
            }
            'T' | 'F' => json.push(c.to_ascii_lowercase()),
            '(' => {
                parentheses.push(json.len());
                json.push('[');
            }
            ')' | ']' | '}' => {
                let start = if c == ')' { parentheses.pop()? } else { 0 };
                // `(1)` is not a tuple, but a number in parentheses.
                if c == ')' && !json[start..].contains(',') && json.len() > start + 1 {
                    json.remove(start);
                    continue;
                }
                let n_bytes = json.strip_suffix(',').unwrap_or(&json).len();
                json.truncate(n_bytes);
                json.push(if c == ')' { ']' } else { c });
            }
            // Python 2 wrote large numbers as `28L`.
            'L' if json.ends_with(|c: char| c.is_ascii_digit()) => {}
            c if c.is_whitespace() => {}
            c => json.push(c),
        }
    }
    Some(json)
}

/// The type of numbers that a `descr` describes.
fn numbers(name: &str, descr: &Value) -> Result<Numbers, SourceError> {
    let unsupported = |found: String, way_out: &str| Err(SourceError::unsupported(format!("`{name}`"), found, way_out));
    let descr = match descr {
        Value::String(descr) => descr,
        Value::Array(fields) => {
            let names: Vec<&str> = fields.iter().filter_map(|field| field[0].as_str()).collect();
            return unsupported(
                format!("is a structured array of the fields {}", listed(&names)),
                "save each field on its own, as in `np.save(\"x.npy\", a[\"x\"])`",
            );
        }
        _ => return unsupported("has a `descr` that is not a dtype".to_owned(), "save it with a current numpy"),
    };
    let (byte_order, kind) = match descr.split_at_checked(1) {
        Some(("<" | "|" | "=", kind)) => (ByteOrder::Little, kind),
        Some((">", kind)) => (ByteOrder::Big, kind),
        _ => (ByteOrder::Little, descr.as_str()),
    };
    let dtype = match kind {
        "b1" | "?" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "u2" => DType::U16,
        "i2" => DType::I16,
        "u4" => DType::U32,
        "i4" => DType::I32,
        "u8" => DType::U64,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => {
            let what = match kind.as_bytes().first() {
                Some(b'O') => "Python objects",
                Some(b'S' | b'U' | b'a') => "text",
                Some(b'M' | b'm') => "times",
                Some(b'c') => "complex numbers",
                Some(b'V') => "raw bytes",
                _ => "no kind of number that is read",
            };
            return unsupported(
                format!("has the dtype `{descr}`, {what}"),
                "save numbers, as in `np.save(\"x.npy\", a.astype(np.float32))`",
            );
        }
    };
    Ok(Numbers { dtype, byte_order })
}

/// The next bytes; `None` if the file ends first.
fn read_array<const N: usize>(from: &mut dyn Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match from.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
