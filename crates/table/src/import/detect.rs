use std::io::Read;
use std::path::Path;

use super::Input;
use crate::error::{Error, SourceError};
use crate::import_format::Format;
use crate::parts::first_bytes;
use crate::remedy::Remedy;
use crate::shards::INDEX;

/// How many bytes of a file, after decompression, are examined.
const LOOKED_AT: u64 = 512;

impl Format {
    /// Detects the format of the source at `path`: by its first bytes, decompressed if necessary, then by its file extensions. A
    /// folder contains images, unless it contains batches of CIFAR; the same applies to an archive.
    ///
    /// # Errors
    /// [`Error::Source`] if it is none of them; [`Error::Io`] if it cannot be read; [`Error::FeatureOff`] if it cannot be
    /// decompressed.
    /// # Examples
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("rows.txt");
    /// use brisk_table::Format;
    ///
    /// std::fs::write(&path, "1,0.5\n0,1.5\n")?;
    /// assert_eq!(Format::detect(&path)?, Format::Csv);
    /// assert_eq!(Format::detect(folder.path())?, Format::Images);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detect(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        if path.join(INDEX).is_file() {
            let (part, found) = ("the folder".to_owned(), "has the shards of a table, which needs no import".to_owned());
            return Err(SourceError::unsupported(part, found, "open it as a `ShardedTable`").at(path));
        }
        if path.is_dir() {
            refuse_python_folder(path)?;
            return Ok(if has_batches(path)? { Self::Cifar } else { Self::Images });
        }
        let (mut start, _) = first_bytes(path, LOOKED_AT)?;
        if let Some(format) = by_magic(&start) {
            return Ok(format);
        }
        let input = Input::open(path)?;
        start.clear();
        input.bytes.take(LOOKED_AT).read_to_end(&mut start).map_err(Error::io(path, input.action))?;
        refuse_python_archive(path, &start)?;
        if let Some(known) = foreign(&start) {
            let way_out = "convert it to .npy files or a Parquet file".to_owned();
            let (part, found) = ("the file".to_owned(), format!("is {known}, which is not supported"));
            return Err(SourceError::unsupported(part, found, way_out).at(path));
        }
        let by_bytes = by_magic(&start)
            .or_else(|| is_svmlight(&start).then_some(Self::Svmlight))
            .or_else(|| is_tar(&start).then(|| by_first_member(&start)));
        match by_bytes.or_else(|| by_name(&name)).or_else(|| is_text(&start).then_some(Self::Csv)) {
            Some(format) => Ok(format),
            None => {
                let shown = start.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
                let found = format!("the first bytes {shown}");
                Err(SourceError::unexpected("the file", found, "those of a known format", &[Remedy::NameFormat]).at(path))
            }
        }
    }

    /// The error for a format whose feature is not enabled.
    #[allow(dead_code, reason = "all formats may be enabled")]
    pub(crate) fn not_enabled(self, path: &Path) -> Error {
        let (found, feature) = (self.description(), self.feature());
        Error::FeatureOff { path: path.to_owned(), found, feature, instead: "convert the source to a format that is enabled" }
    }
}

fn by_magic(start: &[u8]) -> Option<Format> {
    match start {
        [b'P', b'A', b'R', b'1', ..] => Some(Format::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Format::Arrow),
        // A stream: a continuation marker, and a schema of less than 16 MiB.
        [0xff, 0xff, 0xff, 0xff, _, _, _, 0, ..] => Some(Format::Arrow),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] | [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Format::Npy),
        // Two zeros, a type, and a number of dimensions, all of which are present.
        [0, 0, 0x08 | 0x09 | 0x0b..=0x0e, rank @ 1..=32, rest @ ..] if rest.len() >= 4 * usize::from(*rank) => Some(Format::Idx),
        _ => None,
    }
}

/// Well-known formats that are not imported.
fn foreign(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'H', b'D', b'F', b'\r', b'\n', 0x1a, b'\n', ..] => Some("an HDF5 file"),
        // The protocol, and its first opcode: a frame, a mark, or an empty dict, list or tuple; or a module or a class.
        [0x80, 2..=5, 0x95 | b'(' | b'}' | b']' | b')' | b'c' | 0x8c, ..] => Some("a pickle of Python"),
        _ => None,
    }
}

/// The Python versions of CIFAR: their folders, files of theirs, and the archives of the binary versions.
const PYTHON_VERSIONS: [(&str, &[&str], &str); 2] = [
    ("cifar-10-batches-py", &["data_batch_1", "batches.meta"], "cifar-10-binary.tar.gz"),
    ("cifar-100-python", &["train", "test", "meta"], "cifar-100-binary.tar.gz"),
];

pub(crate) fn refuse_python_folder(path: &Path) -> Result<(), Error> {
    refuse_python(path, "the folder", |folder, files| {
        files.iter().all(|name| path.join(name).is_file()) || path.join(folder).is_dir()
    })
}

pub(crate) fn refuse_python_archive(path: &Path, start: &[u8]) -> Result<(), Error> {
    let first = first_member(start).filter(|_| is_tar(start)).unwrap_or_default();
    refuse_python(path, "the archive", |folder, _| first.starts_with(folder))
}

fn refuse_python(path: &Path, part: &str, is_it: impl Fn(&str, &[&str]) -> bool) -> Result<(), Error> {
    match PYTHON_VERSIONS.iter().find(|(folder, files, _)| is_it(folder, files)) {
        Some((.., binary)) => {
            let (found, way_out) =
                ("has the Python version of CIFAR, of pickles", format!("download the binary version, {binary}"));
            Err(SourceError::unsupported(part, found, way_out).at(path))
        }
        None => Ok(()),
    }
}

/// By the last extension that is known: `data_batch_1.bin.xz` is a `.bin`.
fn by_name(name: &str) -> Option<Format> {
    let endings = name.split('.').skip(1).filter(|ending| !matches!(*ending, "gz" | "xz" | "zst"));
    match endings.last()? {
        "csv" | "tsv" | "txt" | "data" | "test" => Some(Format::Csv),
        "svm" | "svmlight" | "libsvm" => Some(Format::Svmlight),
        "npy" | "npz" => Some(Format::Npy),
        "bin" => Some(Format::Cifar),
        "arrow" | "arrows" | "feather" | "ipc" => Some(Format::Arrow),
        "parquet" => Some(Format::Parquet),
        _ => None,
    }
}

/// CIFAR's own archives have a folder `cifar-10-batches-bin` or `cifar-100-binary`, and batches in it.
fn by_first_member(start: &[u8]) -> Format {
    let name = first_member(start).unwrap_or_default();
    let is_of_cifar = name.starts_with("cifar-10") || name.ends_with(".bin");
    if is_of_cifar { Format::Cifar } else { Format::Images }
}

/// The name of the first member of a tar archive, in lower case.
fn first_member(start: &[u8]) -> Option<String> {
    let field = start.get(..100)?;
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    Some(String::from_utf8_lossy(&field[..end]).to_ascii_lowercase())
}

fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}

/// Whether all bytes can occur in text.
fn is_text(start: &[u8]) -> bool {
    !start.is_empty() && start.iter().all(|&byte| byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r'))
}

/// Whether the first line that is not a comment has a label and features, with an optional query: `1 qid:2 3:4.5`.
fn is_svmlight(start: &[u8]) -> bool {
    let is_index = |index: &str| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    let text = String::from_utf8_lossy(start);
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let Some(line) = lines.into_iter().find(|line| !line.is_empty()) else { return false };
    let mut features = line.split_whitespace().skip(1).skip_while(|word| word.starts_with("qid:"));
    // The first feature is enough, and it is complete even if the line is cut off.
    features
        .next()
        .and_then(|word| word.split_once(':'))
        .is_some_and(|(index, value)| is_index(index) && value.parse::<f32>().is_ok())
}

/// Whether the folder contains a batch of CIFAR.
fn has_batches(folder: &Path) -> Result<bool, Error> {
    let io = Error::io(folder, "list");
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        let batch = ["data_batch_1.bin", "test_batch.bin", "train.bin", "test.bin"].iter().any(|batch| name.starts_with(batch));
        if batch {
            return Ok(true);
        }
    }
    Ok(false)
}
