use std::fmt;

use crate::error::Error;
use crate::row_digest::RowDigest;
use crate::rows::{FeedRows, RowNames};

/// The rows of a source, whatever its type.
pub(crate) trait DigestRows: fmt::Debug {
    /// The set's name.
    fn set(&self) -> &'static str;

    /// A number that identifies the rows without reading them, if the source knows one.
    fn fingerprint(&self) -> Option<u64>;

    /// The names of columns, labels, classes and categories.
    fn names(&self) -> RowNames;

    /// The digest of the rows, which are read for it.
    fn digest(&self) -> Result<RowDigest, Error>;
}

pub(crate) struct SourceRows<'a, S> {
    pub(crate) set: &'static str,
    pub(crate) source: &'a S,
}

impl<S: FeedRows> DigestRows for SourceRows<'_, S> {
    fn set(&self) -> &'static str {
        self.set
    }

    fn fingerprint(&self) -> Option<u64> {
        self.source.fingerprint()
    }

    fn names(&self) -> RowNames {
        RowNames::of(self.source)
    }

    fn digest(&self) -> Result<RowDigest, Error> {
        RowDigest::of(self.set, self.source)
    }
}

impl<S> fmt::Debug for SourceRows<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceRows").field("set", &self.set).finish_non_exhaustive()
    }
}
