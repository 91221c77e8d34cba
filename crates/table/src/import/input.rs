use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::table::open_file;
use crate::{Error, SourceIdentity};

/// The text of a file, unpacked if it is gzip, whatever its name.
pub(crate) struct Input {
    pub(crate) text: Box<dyn Read + Send>,
    pub(crate) source: SourceIdentity,
    /// How many bytes of the file have been read.
    pub(crate) n_read: Arc<AtomicU64>,
    /// What is done when a read fails, for the message.
    pub(crate) action: &'static str,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), action: "read", source };
        let mut file = open_file(path)?;
        let source = SourceIdentity::new(path, &file.metadata().map_err(io)?);

        let mut magic = Vec::new();
        Read::by_ref(&mut file).take(6).read_to_end(&mut magic).map_err(io)?;
        if let Some(found) = what_else(&magic) {
            return Err(Error::NoRows { path: path.to_owned(), found });
        }
        let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
        let n_read = Arc::new(AtomicU64::new(0));
        let counted = Counted { file: Cursor::new(magic).chain(file), n_read: Arc::clone(&n_read) };
        let text: Box<dyn Read + Send> =
            if is_gzip { Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 18, counted))) } else { Box::new(counted) };
        let action = if is_gzip { "unpack (it is gzip, damaged or cut short)" } else { "read" };
        Ok(Self { text, source, n_read, action })
    }
}

/// Files that are something else, which would only make for odd messages further on.
fn what_else(magic: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 7] = [
        (b"\x28\xb5\x2f\xfd", "zstd data (unpack it first)"),
        (b"\xfd7zXZ\0", "xz data (unpack it first)"),
        (b"BZh", "bzip2 data (unpack it first)"),
        (b"PK\x03\x04", "a zip archive (unpack it first)"),
        (b"PAR1", "a Parquet file"),
        (b"\xff\xfe", "UTF-16 text (convert it to UTF-8 first)"),
        (b"\xfe\xff", "UTF-16 text (convert it to UTF-8 first)"),
    ];
    known.iter().find(|(start, _)| magic.starts_with(start)).map(|(_, what)| *what)
}

/// A file that says how far it has been read.
struct Counted {
    file: Chain<Cursor<Vec<u8>>, File>,
    n_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buf)?;
        self.n_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The error for text that could not be had.
pub(crate) fn read_error(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Error + use<> {
    let path = PathBuf::from(path);
    move |source| Error::Io { path: path.clone(), action, source }
}
