//! One CRC-32 per block, so that damage can be located and blocks can be checked independently.
//!
//! Checksums are a tensor of the table, not metadata: the header comes first in the file but is written last, into space reserved
//! before the number of rows was known. As a tensor, checksums take four bytes per MiB, cover the header too, and any safetensors
//! reader can read the file.

/// The number of bytes that one checksum covers; the last block of a file may be shorter.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// The CRC-32 of zlib and gzip, which `zlib.crc32` computes in Python.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    zlib_rs::crc32::crc32(0, bytes)
}
