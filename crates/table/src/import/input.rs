use std::fs::File;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::counted::Counted;
use super::gzip_members::GzipMembers;
use crate::error::Error;
use crate::parts::first_bytes;
use crate::source_identity::SourceIdentity;

/// The bytes of a file, decompressed if necessary, whatever its name.
pub(crate) struct Input {
    pub(crate) bytes: Box<dyn Read + Send>,
    pub(crate) source: SourceIdentity,
    /// The number of bytes of the file that have been read.
    pub(crate) n_read: Arc<AtomicU64>,
    /// The action that failed if a read returns an error, for the message.
    pub(crate) action: &'static str,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let (magic, file) = first_bytes(path, 6)?;
        let source = SourceIdentity::new(path, &file.metadata().map_err(Error::io(path, "read"))?);
        let packing = Packing::of(&magic);
        let n_read = Arc::new(AtomicU64::new(0));
        let counted = Counted::new(Cursor::new(magic).chain(file), &n_read);
        let [found, feature, action] = packing.words();
        let Some(bytes) = unpacked(packing, counted) else {
            return Err(Error::FeatureOff { path: path.to_owned(), found, feature, instead: "unpack it first" });
        };
        Ok(Self { bytes, source, n_read, action })
    }
}

/// How a file is compressed, detected by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
    Xz,
}

impl Packing {
    pub(crate) fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // The second pattern is a skippable frame, with which the output of `pzstd` begins.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::Plain,
        }
    }

    /// What it is, the feature that decompresses it, and the action that failed if a read returns an error.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Plain => ["plain data", "import", "read"],
            Self::Gzip => ["gzip data", "import", "unpack (it is gzip, damaged or cut short)"],
            Self::Zstd => ["zstd data", "zst", "unpack (it is zstd, damaged or cut short)"],
            Self::Xz => ["xz data", "xz", "unpack (it is xz, damaged or cut short)"],
        }
    }
}

/// `None` if the feature that decompresses it is not enabled.
fn unpacked(packing: Packing, file: Counted<Chain<Cursor<Vec<u8>>, File>>) -> Option<Box<dyn Read + Send>> {
    const BUFFER_BYTES: usize = 1 << 18;
    /// The limit for the dictionary of xz, whose own highest level needs 64 MiB.
    #[cfg(feature = "xz")]
    const XZ_MEMORY_KIB: u32 = 1 << 20;

    let buffered = |file| BufReader::with_capacity(BUFFER_BYTES, file);
    Some(match packing {
        Packing::Plain => Box::new(file),
        Packing::Gzip => Box::new(GzipMembers::new(buffered(file))),
        #[cfg(feature = "zst")]
        Packing::Zstd => Box::new(super::zstd_frames::ZstdFrames::new(buffered(file))),
        #[cfg(feature = "xz")]
        Packing::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(buffered(file), true, XZ_MEMORY_KIB)),
        #[cfg(not(all(feature = "zst", feature = "xz")))]
        _ => return None,
    })
}
