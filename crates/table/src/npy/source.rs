//! The sources of arrays: files, compressed files, members of an archive.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use brisk_atomic_file::{listed, scratch_file};
use zip::ZipArchive;
use zip::result::ZipError;

use super::header::{Header, Order};
use super::transposed::Transposed;
use crate::error::{Error, SourceError};
use crate::import::{Array, Counted, Dest, Input, Packing};
use crate::parts::{first_bytes, open_file};
use crate::source_identity::file_name;

/// A file of one array, or an archive of several.
pub(super) struct Source {
    path: PathBuf,
    /// The path next to which an array is decompressed that must be read out of order.
    beside: PathBuf,
    n_read: Arc<AtomicU64>,
    pub(super) members: Option<Vec<String>>,
}

impl Source {
    pub(super) fn open(path: &Path, dest: &Dest<'_>, n_read: &Arc<AtomicU64>) -> Result<Self, Error> {
        dest.check_differs([path])?;
        let (start, _) = first_bytes(path, 4)?;
        let mut source =
            Self { path: path.to_owned(), beside: dest.destination().beside()?, n_read: Arc::clone(n_read), members: None };
        // The second signature is that of an empty archive.
        if start == *b"PK\x03\x04" || start == *b"PK\x05\x06" {
            let archive = source.archive()?;
            let names: Result<Vec<_>, _> = archive.file_names().collect();
            let names = names.map_err(|error| source.bad_archive("the archive", error))?;
            let members: Vec<_> = names.iter().filter_map(|name| name.strip_suffix(".npy")).map(str::to_owned).collect();
            if members.is_empty() && !names.is_empty() {
                let is_workbook = names.iter().any(|name| name.starts_with("xl/"));
                let (found, expected) = match is_workbook {
                    true => ("an Excel workbook", "CSV, as which a spreadsheet saves each sheet"),
                    false => ("a zip archive without arrays of numpy", "one with them, or a file of rows: unpack it first"),
                };
                let (part, found, expected) = ("the file".to_owned(), found.to_owned(), expected.to_owned());
                return source.fail(SourceError::unexpected(part, found, expected, &[]));
            }
            source.members = Some(members);
        }
        Ok(source)
    }

    pub(super) fn archive(&self) -> Result<Archive, Error> {
        let file = BufReader::with_capacity(1 << 18, Counted::new(open_file(&self.path)?, &self.n_read));
        ZipArchive::new(file).map_err(|error| self.bad_archive("the archive", error))
    }

    /// The array in a file that is not an archive.
    pub(super) fn array(&self) -> Result<Array<'static>, Error> {
        let name = file_name(&self.path);
        let io = Error::io(&self.path, "read");
        let (start, mut file) = first_bytes(&self.path, 6)?;
        if Packing::of(&start) != Packing::Plain {
            let input = Input::open(&self.path)?;
            return self.read_array(name, input.bytes);
        }
        file.rewind().map_err(&io)?;
        let n_bytes = file.metadata().map_err(&io)?.len();
        // Not buffered: rows are read a megabyte at a time, and the columns of an array in Fortran order are all over the file.
        let mut file = Counted::new(file, &self.n_read);
        let header = self.header(&name, &mut file)?;
        self.seekable_array(name, &header, file, n_bytes)
    }

    pub(super) fn member<'a>(&self, archive: &'a mut Archive, name: &str) -> Result<Array<'a>, Error> {
        let part = format!("the member `{name}.npy`");
        let member = archive.by_name(&format!("{name}.npy")).map_err(|error| self.bad_archive(&part, error))?;
        self.read_array(name.to_owned(), member)
    }

    fn read_array<'a>(&self, name: String, mut from: impl Read + 'a) -> Result<Array<'a>, Error> {
        let header = self.header(&name, &mut from)?;
        if header.order == Order::RowMajor || header.shape.len() < 2 {
            return self.checked(name, &header, Box::new(from));
        }
        // Its first row needs its last bytes, so it is decompressed first.
        let mut spool = scratch_file(&self.beside).map_err(Error::write(&self.beside))?;
        let copied = std::io::copy(&mut from, &mut spool);
        let n_bytes = copied.map_err(Error::io(&self.path, "unpack"))?;
        let header = Header { n_bytes: 0, ..header };
        self.seekable_array(name, &header, spool, n_bytes)
    }

    fn seekable_array<'a>(
        &self,
        name: String,
        header: &Header,
        file: impl Read + Seek + 'a,
        file_bytes: u64,
    ) -> Result<Array<'a>, Error> {
        let array = self.checked(name, header, Box::new(std::io::empty()))?;
        let n_bytes = header.shape.iter().product::<u64>() * array.numbers.n_bytes() as u64;
        let found = file_bytes.saturating_sub(header.n_bytes);
        if found < n_bytes {
            let row_bytes = (n_bytes / array.n_rows.max(1)).max(1);
            let (part, expected) = (array.name, array.n_rows);
            return self.fail(SourceError::Truncated { part, found: found / row_bytes, expected });
        }
        let bytes: Box<dyn Read + 'a> = if header.order == Order::ColumnMajor && header.shape.len() > 1 && n_bytes > 0 {
            if found > n_bytes {
                return self.fail(SourceError::unexpected(
                    array.name,
                    format!("{} bytes after its values", found - n_bytes),
                    "one array and nothing else; save others to files of their own",
                    &[],
                ));
            }
            Box::new(Transposed::new(file, header.n_bytes, array.n_rows, &array.row_shape, array.numbers.n_bytes()))
        } else {
            let mut file = file;
            file.seek(SeekFrom::Start(header.n_bytes)).map_err(Error::io(&self.path, "read"))?;
            Box::new(file)
        };
        Ok(Array { bytes, ..array })
    }

    /// The array that a header describes, if it is possible.
    fn checked<'a>(&self, name: String, header: &Header, bytes: Box<dyn Read + 'a>) -> Result<Array<'a>, Error> {
        let [n_rows, row_shape @ ..] = header.shape.as_slice() else {
            return self.fail(SourceError::unsupported(
                format!("`{name}`"),
                "is a single number, of no dimensions",
                "save an array of rows, `[n, …]`",
            ));
        };
        let numbers = header.numbers;
        let n_bytes = header.shape.iter().try_fold(numbers.n_bytes() as u64, |n, &dimension| n.checked_mul(dimension));
        // A dimension of 0 would hide how large the others are.
        let row: Option<Vec<usize>> = row_shape.iter().map(|&dimension| usize::try_from(dimension).ok()).collect();
        let row = row.filter(|row| row.iter().try_fold(8_usize, |n, &dimension| n.checked_mul(dimension.max(1))).is_some());
        match (n_bytes, row) {
            (Some(_), Some(row_shape)) => Ok(Array { name, numbers, n_rows: *n_rows, row_shape, bytes }),
            _ => self.fail(SourceError::unexpected(
                format!("the header of `{name}`"),
                format!("the shape {:?}, of more values than can be counted", header.shape),
                "the shape of an array that some machine holds",
                &[],
            )),
        }
    }

    fn header(&self, name: &str, from: &mut dyn Read) -> Result<Header, Error> {
        Header::read(name, from).map_err(|failure| failure.into_error(&self.path))
    }

    pub(super) fn fail<T>(&self, reason: SourceError) -> Result<T, Error> {
        Err(reason.at(&self.path))
    }

    fn bad_archive(&self, part: &str, error: ZipError) -> Error {
        match error {
            ZipError::Io(cause) => Error::Io { path: self.path.clone(), action: "read or unpack", cause },
            ZipError::FileNotFound => {
                let members = self.members.as_deref().unwrap_or_default();
                let reason = SourceError::unexpected(
                    "the archive",
                    format!("the arrays {}", listed(members)),
                    format!("{part} too; name one of those"),
                    &[],
                );
                reason.at(&self.path)
            }
            error => {
                let expected = "an archive as `numpy.savez` writes it; save it again".to_owned();
                SourceError::unexpected(part.to_owned(), error.to_string(), expected, &[]).at(&self.path)
            }
        }
    }
}

pub(super) type Archive = ZipArchive<BufReader<Counted<File>>>;
