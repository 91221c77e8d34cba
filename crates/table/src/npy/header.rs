//! The header of a .npy file: bytes in, a description out.

use std::io::{self, Read};

use brisk_atomic_file::listed;

use super::literal::Literal;
use crate::dtype::DType;
use crate::error::SourceError;
use crate::import::{ByteOrder, Numbers};

/// The longest header that is read; those of plain arrays take 128 bytes, those of many fields a few thousand.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// The contents of a header.
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
    pub(super) fn read(name: &str, from: &mut dyn Read) -> io::Result<Result<Self, SourceError>> {
        let malformed = |found: String, expected: &str| {
            Ok(Err(SourceError::unexpected(format!("the header of `{name}`"), found, expected.to_owned(), &[])))
        };
        let Some([m0, m1, m2, m3, m4, m5, major, minor]) = read_array(from)? else {
            return malformed("an end within its first 8 bytes".to_owned(), "an array as `numpy.save` writes it");
        };
        if [m0, m1, m2, m3, m4, m5] != *b"\x93NUMPY" {
            return malformed("other first bytes than a .npy file has".to_owned(), "an array as `numpy.save` writes it");
        }
        let (n_text, n_before) = match (major, minor) {
            (1, 0) => (read_array(from)?.map(|bytes| usize::from(u16::from_le_bytes(bytes))), 10),
            (2 | 3, 0) => (read_array(from)?.map(|bytes| u32::from_le_bytes(bytes) as usize), 12),
            _ => return malformed(format!("version {major}.{minor}"), "1.0, 2.0 or 3.0; save it with a current numpy"),
        };
        let Some(n_text) = n_text.filter(|&n| n <= MAX_HEADER_BYTES) else {
            return malformed(
                n_text.map_or("an end within its length".to_owned(), |n| format!("{n} bytes of text")),
                "a header of at most 1 MiB",
            );
        };
        let mut text = vec![0; n_text];
        if let Err(error) = from.read_exact(&mut text) {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => malformed("an end within its text".to_owned(), "a whole file; fetch it again"),
                _ => Err(error),
            };
        }
        Ok(Self::parse(name, &text, n_before + n_text as u64))
    }

    fn parse(name: &str, text: &[u8], n_bytes: u64) -> Result<Self, SourceError> {
        const KEYS: [&str; 3] = ["descr", "fortran_order", "shape"];
        let malformed = |found: String, expected: &str| {
            SourceError::unexpected(format!("the header of `{name}`"), found, expected.to_owned(), &[])
        };
        let shown = || String::from_utf8_lossy(&text[..text.len().min(200)]).trim_end().to_owned();
        let dictionary = "a dictionary of `descr`, `fortran_order` and `shape`";
        let Some(Literal::Dict(entries)) = str::from_utf8(text).ok().and_then(Literal::parse) else {
            return Err(malformed(shown(), dictionary));
        };
        let mut values = [None, None, None];
        for (key, value) in entries {
            let slot = KEYS.iter().position(|&known| key == Literal::Text(known.to_owned()));
            match slot.map(|slot| values[slot].replace(value)) {
                Some(None) => {}
                _ => return Err(malformed(shown(), dictionary)),
            }
        }
        let [Some(descr), Some(order), Some(shape)] = values else {
            return Err(malformed(shown(), dictionary));
        };
        let order = match order {
            Literal::Truth(false) => Order::RowMajor,
            Literal::Truth(true) => Order::ColumnMajor,
            _ => return Err(malformed(shown(), "a `fortran_order` of True or False")),
        };
        let Some(shape) = shape.into_numbers() else {
            return Err(malformed(shown(), "a `shape` of whole numbers"));
        };
        Ok(Self { numbers: numbers(name, &descr)?, shape, order, n_bytes })
    }
}

/// The type of numbers that a `descr` describes.
fn numbers(name: &str, descr: &Literal) -> Result<Numbers, SourceError> {
    let unsupported =
        |found: String, way_out: &str| Err(SourceError::unsupported(format!("`{name}`"), found, way_out.to_owned()));
    let descr = match descr {
        Literal::Text(descr) => descr,
        Literal::List(fields) => {
            let names: Vec<&str> = fields.iter().filter_map(Literal::first_text).collect();
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
