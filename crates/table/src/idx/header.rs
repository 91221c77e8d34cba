use std::io::Read;

use crate::dtype::DType;
use crate::error::SourceError;
use crate::import::{ByteOrder, Failure, Numbers};

/// The contents of an IDX header: `0 0 TYPE RANK`, then a big-endian `u32` per dimension.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) numbers: Numbers,
    pub(super) shape: Vec<u32>,
}

impl Header {
    /// Reads the header of the file called `name`.
    pub(super) fn read(name: &str, from: &mut dyn Read) -> Result<Self, Failure> {
        let malformed = |found: String, expected: &str| {
            Err(SourceError::unexpected(format!("the header of `{name}`"), found, expected, &[]).into())
        };
        let mut start = Vec::new();
        from.take(4).read_to_end(&mut start)?;
        let &[0, 0, code, rank] = start.as_slice() else {
            return malformed(format!("the bytes {start:02x?}"), "an IDX file: 00 00, a type, a number of dimensions");
        };
        let dtype = match code {
            0x08 => DType::U8,
            0x09 => DType::I8,
            0x0b => DType::I16,
            0x0c => DType::I32,
            0x0d => DType::F32,
            0x0e => DType::F64,
            _ => return malformed(format!("the type {code:#04x}"), "0x08 (bytes), 0x09, 0x0b, 0x0c, 0x0d or 0x0e"),
        };
        let mut dimensions = Vec::new();
        from.take(4 * u64::from(rank)).read_to_end(&mut dimensions)?;
        let shape: Vec<u32> = dimensions.as_chunks().0.iter().map(|&dimension| u32::from_be_bytes(dimension)).collect();
        if rank == 0 || dimensions.len() < 4 * usize::from(rank) {
            return malformed(format!("{} of {rank} dimensions", shape.len()), "one dimension or more, all of them there");
        }
        Ok(Self { numbers: Numbers { dtype, byte_order: ByteOrder::Big }, shape })
    }
}
