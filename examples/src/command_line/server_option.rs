use std::path::Path;

use anyhow::Result;
use clap::Args;

#[cfg(feature = "remote")]
use {
    super::value::{MAX_COUNT, whole},
    crate::elsewhere::{is_url, set_retry_seconds},
    anyhow::ensure,
};

/// The option of every example that reads or writes at URLs, in builds with the feature `remote`.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct ServerOption {
    /// For how long a request to a server is sent again if there is no answer, or an error that may pass
    /// [default: 8 times within 120 s]
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "SECONDS", help_heading = "Running", allow_negative_numbers = true,
        value_parser = whole::<u64>(0..=MAX_COUNT))]
    retry_seconds: Option<u64>,
}

impl ServerOption {
    /// Applies the option to all requests of this process. `places` are those that the program reads and writes.
    ///
    /// # Errors
    /// If it is given, and none of them is a URL.
    #[cfg(feature = "remote")]
    pub fn apply<'p>(&self, places: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let Some(seconds) = self.retry_seconds else { return Ok(()) };
        ensure!(places.into_iter().any(is_url), "`--retry-seconds` has no effect without a URL; leave it out");
        set_retry_seconds(seconds);
        Ok(())
    }

    /// Without URLs, there is no option.
    #[cfg(not(feature = "remote"))]
    pub fn apply<'p>(&self, _: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        Ok(())
    }
}
