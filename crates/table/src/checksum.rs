//! One CRC-32 a block, so that a damaged place is named and blocks can be checked apart.

/// Bytes that one checksum covers; the last block of a file is shorter.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// The CRC-32 of zlib and gzip, which `zlib.crc32` computes in Python.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
