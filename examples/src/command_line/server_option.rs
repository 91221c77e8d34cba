use std::path::Path;

use anyhow::Result;
use clap::Args;

#[cfg(feature = "remote")]
use {
    super::value::{MAX_COUNT, positive, whole},
    crate::elsewhere::{is_url, set_cache, set_retry_seconds},
    anyhow::ensure,
    std::path::PathBuf,
};

/// The option of every example that reads or writes at URLs, in builds with the feature `remote`.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct ServerOption {
    /// For how long a request to a server is sent again if there is no answer, or an error that may pass
    /// [default: 120]
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

/// The options of every example that reads tables on servers through a cache, in builds with the feature `remote`.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct CacheOptions {
    /// Folder in which blocks of tables on servers are kept, for all programs that name it
    /// [default: brisk-table/cache-2 in XDG_CACHE_HOME or ~/.cache]
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    cache: Option<PathBuf>,
    /// GiB in that folder, beyond which the least recently used blocks are removed; best as much as this machine reads in an
    /// epoch [default: 10]
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "GIB", help_heading = "Running", allow_negative_numbers = true, value_parser = positive(1_048_576.0))]
    cache_gib: Option<f64>,
}

impl CacheOptions {
    /// Applies the options to all tables that this process reads. `tables` are those of its options.
    ///
    /// # Errors
    /// If one is given, and no table is at a URL.
    #[cfg(feature = "remote")]
    pub fn apply<'p>(&self, tables: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let given = [(self.cache.is_some(), "--cache"), (self.cache_gib.is_some(), "--cache-gib")];
        let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
        ensure!(tables.into_iter().any(is_url), "`{option}` has no effect without a table at a URL; leave it out");
        set_cache(self.cache.clone(), self.cache_gib.map(|gib| (gib * f64::from(1 << 30)) as u64));
        Ok(())
    }

    /// Without URLs, there is no option.
    #[cfg(not(feature = "remote"))]
    pub fn apply<'p>(&self, _: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        Ok(())
    }
}
