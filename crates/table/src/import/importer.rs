use std::fmt::Debug;
use std::path::Path;

use super::{Dest, Found, ImportReport, Imported};
use crate::destination::{Destination, Progress};
use crate::error::Error;
use crate::parts::Opened;
use crate::source_identity::SourceIdentity;

/// How a source is read into a table: the options of one format, such as [`CsvOptions`](crate::CsvOptions), or
/// [`ImportOptions`](crate::ImportOptions) for any.
#[expect(private_bounds, reason = "formats are those of this crate; write others with `TableWriter`")]
pub trait Importer: ReadSource {}

impl<R: ReadSource + ?Sized> Importer for R {}

/// An importer, as its format implements it.
pub(crate) trait ReadSource {
    /// What the table records of the source at `path` and of these options.
    fn origin(&self, path: &Path) -> Result<Origin, Error>;

    /// Reads the source at `path` into a table at `dest`.
    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error>;

    fn like(&self) -> Option<&Path> {
        None
    }
}

/// What a table was made from: everything that determines it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Origin {
    pub(crate) source: SourceIdentity,
    /// The options of the importer and the other files it reads, as text.
    pub(crate) options: String,
}

impl Origin {
    /// An import of `source` with `options`, which also reads `others`.
    pub(crate) fn new<'a>(
        source: SourceIdentity,
        options: &dyn Debug,
        others: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self, Error> {
        let mut options = format!("{options:?}");
        for path in others {
            options += &format!(" {:?}", SourceIdentity::of(path)?);
        }
        Ok(Self { source, options })
    }
}

impl SourceIdentity {
    /// The identity of the file or folder at `path`.
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        let metadata = std::fs::metadata(path);
        let metadata = metadata.map_err(Error::io(path, "open"))?;
        Ok(Self::new(path, &metadata))
    }

    /// Adds a file to the identity of its folder: the lengths add up, and the latest change counts.
    #[cfg(any(feature = "cifar", feature = "images"))]
    pub(crate) fn add(&mut self, file: &Self) {
        self.n_bytes += file.n_bytes;
        self.modified_ns = self.modified_ns.max(file.modified_ns);
    }
}

/// Imports a source into a table at `dest`: text, svmlight, numpy's arrays, IDX, CIFAR, images, Arrow, Parquet. The options of a
/// format read that format; [`ImportOptions`](crate::ImportOptions) detect it.
///
/// A file may be compressed, whatever its name: gzip, zstd and xz are recognised by their first bytes. An existing table at
/// `dest` is replaced only by a complete one.
///
/// Shards record the values of categories, the classes and the means that take the place of missing values. If these are found in
/// the rows, as with [`LabelKind::Classes`](crate::LabelKind), [`Categorical`](crate::Categorical) and
/// [`Missing::Mean`](crate::Missing), the source is read twice, and written the second time; so no more of the table than one
/// shard is on this machine.
///
/// # Errors
/// Those of the format, with the place in the source; an option that would have no effect;
/// [`Error::FeatureOff`] for a format whose feature is not enabled, with its name; [`Error::SameFile`] if the import would
/// replace a file that it reads; those of [`ShardedWriter`](crate::ShardedWriter); [`Error::Source`] if a source that is read
/// twice has other values the second time. On `Err`, a file at `dest` is unchanged.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (source, dest) = (folder.path().join("rows.csv"), folder.path().join("rows.safetensors"));
/// use brisk_table::{ImportOptions, import};
///
/// std::fs::write(&source, "1,0.5\n0,1.5\n")?;
/// let report = import(&source, &dest, &ImportOptions::default())?;
/// assert_eq!(report.n_rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn import(
    source: impl AsRef<Path>,
    dest: impl Into<Destination>,
    importer: &(impl Importer + ?Sized),
) -> Result<ImportReport, Error> {
    import_with_progress(source, dest, importer, |_| ())
}

/// Like [`import`]; `progress` is called on this thread from time to time, about once a megabyte.
///
/// # Errors
/// As for [`import`].
pub fn import_with_progress(
    source: impl AsRef<Path>,
    dest: impl Into<Destination>,
    importer: &(impl Importer + ?Sized),
    mut progress: impl FnMut(Progress),
) -> Result<ImportReport, Error> {
    run(importer, source.as_ref(), &dest.into(), &mut progress)
}

/// Imports with the options of a format.
pub(crate) fn run(
    importer: &(impl ReadSource + ?Sized),
    source: &Path,
    dest: &Destination,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport, Error> {
    let mut read = |found: Option<Found>, before: u64| {
        let dest = Dest::new(dest, found);
        dest.check_differs(std::iter::once(source).chain(importer.like()))?;
        importer.read(source, &dest, &mut |now: Progress| {
            let n_times = if dest.is_read_twice() { 2 } else { 1 };
            let total_bytes = now.total_bytes;
            progress(Progress { bytes_read: before * total_bytes + now.bytes_read, total_bytes: n_times * total_bytes, ..now });
        })
    };
    let mut report = read(None, 0)?;
    if let Some(found) = report.found.take() {
        report.n_bytes = read(Some(found), 1)?.n_bytes;
    }
    Ok(report)
}

/// Like [`import_with_progress`], unless the table at `dest` was made with these options from a source of this name, length and
/// time of modification. The files of a folder count together.
///
/// # Errors
/// As for [`import`].
/// # Cost
/// If nothing changed, reads metadata of the source and the header of the table.
pub fn import_if_changed(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    importer: &(impl Importer + ?Sized),
    progress: impl FnMut(Progress),
) -> Result<Imported, Error> {
    let (source, dest) = (source.as_ref(), dest.as_ref());
    let Origin { source: identity, options } = importer.origin(source)?;
    // Anything else at `dest` is replaced.
    if let Ok(found) = Opened::at(dest)
        && found.parts.metadata.source == Some(identity)
        && found.parts.metadata.import == Some(options)
    {
        return Ok(Imported::Unchanged);
    }
    import_with_progress(source, dest, importer, progress).map(|report| Imported::Written(Box::new(report)))
}
