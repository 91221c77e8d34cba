use crate::import::ColumnOptions;

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
/// [`Error::Source`](crate::Error::Source) for columns of other types, with their names and types; for values that are not valid
/// in their column, with row and column; for damaged files. [`Error::Io`](crate::Error::Io),
/// [`Error::Write`](crate::Error::Write). On `Err`, `dest` is unchanged.
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
