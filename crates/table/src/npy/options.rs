use std::path::PathBuf;

use crate::import::NotFinite;

/// How to read numpy's arrays: a .npy of features with a .npy of labels, or a .npz of both. By default, the arrays of a table are
/// the members of an archive called `features` and `labels`, `X` and `y`, `x` and `y`, `data` and `labels`, `images` and
/// `labels`, or `arr_0` and `arr_1`. A single array has no default, since its labels must be named.
///
/// Features `[n, …]` keep their shape. `u8` stays `u8`; other integers, booleans and floats become the nearest `f32`. Labels that
/// are bytes or booleans become `u8`, other integers `i64`, floats `f32`. Arrays may have either byte order and be in C or
/// Fortran order; files may be compressed. Memory use is a few megabytes; a compressed array in Fortran order temporarily takes
/// its decompressed size on the disk of `dest`.
///
/// # Errors
/// [`Error::Source`](crate::Error::Source) for structured arrays, text, objects and single numbers; for arrays that do not fit
/// together, are truncated or have no rows; for NaN and infinities, unless [`NotFinite::Keep`](crate::NotFinite::Keep), with row
/// and column. [`Error::Io`](crate::Error::Io), [`Error::Write`](crate::Error::Write). On `Err`, `dest` is unchanged.
/// # Examples
/// ```no_run
/// use brisk_table::{ArrayRef, NpyLabels, NpyOptions, import};
///
/// let options = NpyOptions { labels: NpyLabels::Array(ArrayRef::File("y.npy".into())), ..NpyOptions::default() };
/// let report = import("X.npy", "train.safetensors", &options)?;
/// println!("{} rows", report.n_rows);
/// import("train.npz", "train.safetensors", &NpyOptions::default())?;
/// # Ok::<(), brisk_table::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NpyOptions {
    /// The member of an archive with the features; found by name by default.
    pub features: Option<String>,
    /// Where the labels are.
    pub labels: NpyLabels,
    /// Where the weights of the rows are, if they have any.
    pub weights: Option<ArrayRef>,
    /// The label of the first class, which is subtracted from labels that are integers. Unless it is 0, the table has names for
    /// its classes, which are the labels of the array; a label below it is an error.
    pub first_label: i64,
    /// A table to match, so that a test set is imported like its training set: its rows must have the same shape and type, and
    /// weights if it has weights. If it has classes, labels become their numbers, and any other label is an error. A table with
    /// offsets or words for missing values cannot be matched.
    pub like: Option<PathBuf>,
    /// How features that are NaN or infinite are treated.
    pub not_finite: NotFinite,
}

/// Where the labels of an array's rows are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum NpyLabels {
    /// In the member of the same archive with one of the usual names for labels.
    #[default]
    Auto,
    /// In a separate array, `[n]` or `[n, 1]`.
    Array(ArrayRef),
    /// In this column of the features, counted from 0, which is removed from them.
    Column(usize),
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayRef {
    /// A .npy file, which may be compressed.
    File(PathBuf),
    /// A member of the .npz with the features, by its name without `.npy`.
    Member(String),
}
