use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// How tables at URLs are read and written.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use brisk_table::{CacheFolder, Remote, RemoteOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let cache = folder.path().join("cache");
/// let options = RemoteOptions { cache: CacheFolder::At(cache), timeout: Duration::from_secs(10), ..RemoteOptions::default() };
/// let remote = Remote::new(options)?;
/// assert_eq!(remote.report().n_requests, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Where blocks are kept that were read.
    pub cache: CacheFolder,
    /// The largest size of the cache, in bytes. The least recently used blocks are removed first. 10 GiB by default.
    pub cache_bytes: u64,
    /// Memory for the blocks that were read last, in bytes. 64 MiB by default.
    pub memory_bytes: usize,
    /// Whether rows are read in whole blocks of 1 MiB, which are checked and cached, as for training. `false` requests the bytes
    /// of the rows that are read, which are neither checked nor cached: for a look at a few rows. `true` by default.
    pub whole_blocks: bool,
    /// The number of requests at a time. 16 by default.
    pub parallel: usize,
    /// How long a server may take to connect, to send anything at all, or to send less than 1 KiB/s. 30 s by default, and at
    /// most `retry_for`, or 1 s if that is longer.
    pub timeout: Duration,
    /// How long a request is repeated, as often as there is time for, before its failure is an error. 2 minutes by default.
    pub retry_for: Duration,
    /// The pause before a request is repeated the first time. It doubles each time, up to 10 s, and each pause is shortened at
    /// random by up to half of it. 100 ms by default.
    pub first_pause: Duration,
    /// What the error of a request that was repeated for so long names as the way to allow more: the option of a program, such as
    /// `` `--retry-seconds` ``. `` `RemoteOptions` `` by default.
    pub more_retries: String,
    /// The folder in which [`ShardedWriter::create_url`](crate::ShardedWriter::create_url) writes a shard, and
    /// [`Destination::url`](crate::Destination::url) a table, before it is sent. A folder of this user in the system's folder for
    /// temporary files by default.
    pub staging: Option<PathBuf>,
    /// Settings of the store, in addition to its environment variables and by the same names, such as `aws_endpoint`.
    pub settings: Vec<(String, String)>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            cache: CacheFolder::Default,
            cache_bytes: 10 << 30,
            memory_bytes: 64 << 20,
            whole_blocks: true,
            parallel: 16,
            timeout: Duration::from_secs(30),
            retry_for: Duration::from_secs(120),
            first_pause: Duration::from_millis(100),
            more_retries: "`RemoteOptions`".to_owned(),
            staging: None,
            settings: Vec::new(),
        }
    }
}

/// Values of settings may be secret.
impl std::fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings: Vec<&String> = self.settings.iter().map(|(name, _)| name).collect();
        f.debug_struct("RemoteOptions")
            .field("cache", &self.cache)
            .field("parallel", &self.parallel)
            .field("settings", &settings)
            .finish_non_exhaustive()
    }
}

/// Where blocks of tables are kept that were read from a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheFolder {
    /// `brisk-table/cache-2`, for the version of the cache, in the user's folder for caches: `XDG_CACHE_HOME`, or `~/.cache`. If
    /// it cannot be used, tables are read without a cache, and
    /// [`RemoteReport::cache_problem`](crate::RemoteReport::cache_problem) says why.
    #[default]
    Default,
    /// This folder, which is created if it does not exist.
    At(PathBuf),
    /// Nowhere.
    Off,
}

impl CacheFolder {
    /// The version of the blocks in it.
    pub(super) const VERSION: &str = "2";

    /// The folder for caches of this user.
    pub(super) fn of_user() -> Option<PathBuf> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .or_else(|| absolute("LOCALAPPDATA"))?;
        Some(base.join("brisk-table").join(format!("cache-{}", Self::VERSION)))
    }
}
