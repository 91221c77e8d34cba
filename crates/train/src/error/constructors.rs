//! Short forms of errors that many modules return.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::Error;

impl Error {
    /// [`Error::Setting`].
    pub(crate) fn setting(name: &'static str, found: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::Setting { name, found: found.into(), expected: expected.into() }
    }

    /// [`Error::RowSet`].
    pub(crate) fn row_set(set: &'static str, found: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::RowSet { set, found: found.into(), expected: expected.into() }
    }

    /// [`Error::WrongFile`].
    pub(crate) fn wrong_file(path: impl Into<PathBuf>, found: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::WrongFile { path: path.into(), found: found.into(), expected: expected.into() }
    }

    /// [`Error::Damaged`].
    pub(crate) fn damaged(path: impl Into<PathBuf>, len_bytes: Option<u64>, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), len_bytes, reason: reason.into() }
    }

    /// [`Error::Io`] of a cause, for `map_err`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Self {
        move |cause| Self::Io { path: path.to_owned(), action, cause }
    }

    /// [`Refused`](brisk_nn::Error::Refused) by an operation.
    pub(crate) fn refused(op: &'static str, found: impl Into<String>, expected: &'static str) -> Self {
        Self::Tensor(brisk_nn::Error::Refused { op, found: found.into(), expected })
    }

    /// An argument of another [shape](brisk_nn::Error::Shape).
    pub(crate) fn shape(op: &'static str, arg: &'static str, expected: String, found: Vec<usize>) -> Self {
        Self::Tensor(brisk_nn::Error::Shape { op, arg, expected, found })
    }
}
