use std::fmt;

use brisk_loader::RowSource;

use super::FeedElement;
use crate::error::Error;
use crate::row_digest::RowDigest;

/// The rows of a source, whatever its type.
pub(crate) trait DigestRows: fmt::Debug {
    /// The set's name and its digest.
    fn digest(&self) -> Result<(&'static str, RowDigest), Error>;
}

pub(crate) struct SourceRows<'a, S> {
    pub(crate) set: &'static str,
    pub(crate) source: &'a S,
}

impl<S: RowSource<Feature: FeedElement>> DigestRows for SourceRows<'_, S> {
    fn digest(&self) -> Result<(&'static str, RowDigest), Error> {
        Ok((self.set, RowDigest::of(self.set, self.source)?))
    }
}

impl<S> fmt::Debug for SourceRows<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceRows").field("set", &self.set).finish_non_exhaustive()
    }
}
