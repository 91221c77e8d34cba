use std::path::Path;

use crate::destination::Progress;
use crate::error::Error;
use crate::import::{ColumnOptions, Dest, ImportReport, Origin, ReadSource};
#[cfg(not(feature = "parquet"))]
use crate::import_format::Format;
use crate::parts::first_bytes;
use crate::source_identity::SourceIdentity;

/// How to read a Parquet file, an Arrow IPC file (also called Feather, version 2) or an Arrow IPC stream; a stream may be
/// compressed as a whole.
///
/// Integers, floats and decimals become the nearest `f32`, and booleans 0 and 1, unless [`Categorical::Auto`](crate::Categorical)
/// makes them categories, `True` and `False`; text, dictionary-encoded or not, becomes categories or classes, depending on the
/// options. Times of a time zone are those of its clock, with the offset from UTC. Nulls are missing values. Lists of a fixed
/// size become columns. Dropped columns of a Parquet file are not read, and all its encodings and compressions are supported
/// except LZO. Batches and row groups are decoded on all cores, one per core at a time; what is decoded ahead takes at most 64
/// MiB per core, however large the row groups are.
///
/// # Errors
/// [`Error::Source`] for columns of other types, with their names and types; for values that are not valid in their column, with
/// row and column; for damaged files. [`Error::Io`],
/// [`Error::Write`]. On `Err`, `dest` is unchanged.
/// # Examples
/// ```no_run
/// use brisk_table::{ArrowOptions, Categorical, ColumnOptions, LabelKind, import};
///
/// let columns = ColumnOptions {
///     labels: vec!["income".into()],
///     label_kind: LabelKind::Classes,
///     categorical: Categorical::Auto,
///     ..ColumnOptions::default()
/// };
/// import("adult.arrow", "adult.safetensors", &ArrowOptions { columns, ..ArrowOptions::default() })?;
/// # Ok::<(), brisk_table::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ArrowOptions {
    /// The roles of the columns, and how invalid values are treated. A column of lists of a fixed size counts as one column per
    /// element, `NAME_0`, `NAME_1` and so on; dropping `NAME` drops all of them.
    pub columns: ColumnOptions,
    /// The number of threads that convert, or 0 for one per core. The table does not depend on it.
    pub n_threads: usize,
}

impl ReadSource for ArrowOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        Origin::new(SourceIdentity::of(path)?, &Self { n_threads: 0, ..self.clone() }, self.like())
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        // Before the source is opened: if it is replaced meanwhile, the table is not taken for one of the new source.
        let origin = self.origin(path)?;
        if !is_parquet(path)? {
            return super::ipc::read(path, dest, self, origin, progress);
        }
        #[cfg(feature = "parquet")]
        return super::parquet::read(path, dest, self, origin, progress);
        #[cfg(not(feature = "parquet"))]
        Err(Format::Parquet.not_enabled(path))
    }

    fn like(&self) -> Option<&Path> {
        self.columns.like.as_deref()
    }
}

/// Whether a file is Parquet, or should be by its name.
fn is_parquet(path: &Path) -> Result<bool, Error> {
    let (magic, _) = first_bytes(path, 4)?;
    Ok(magic == *b"PAR1" || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet")))
}
