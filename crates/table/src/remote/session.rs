use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use object_store::path::Path;

use super::cache::Cache;
use super::failure::Failure;
use super::location::Location;
use super::options::{CacheFolder, RemoteOptions};
use super::permits::Permits;
use super::recent::Recent;
use super::retry::{Ended, Heard, Retry, Stop, Wait, retrying};
use super::runtime::Runtime;
use super::staging;
use super::store::{Store, Stores};
use crate::error::{Error, RemoteError};

/// Connections to servers, and the cache of what was read from them. Clones share both.
///
/// Requests run on one thread, which ends with the last clone and the last table opened with it.
///
/// # Examples
/// ```
/// use brisk_table::{CacheFolder, Remote, RemoteOptions, Table};
///
/// let remote = Remote::new(RemoteOptions { cache: CacheFolder::Off, ..RemoteOptions::default() })?;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ramp.safetensors");
/// # let mut writer = brisk_table::TableWriter::create(&path, brisk_table::Schema::named(["x"]))?;
/// # writer.push(&[0.5_f32], &[1.0_f32])?;
/// # writer.finish()?;
/// # let url = format!("file://{}", path.display());
/// # if cfg!(unix) {
/// let table = Table::open_url(&url, &remote)?;
/// assert_eq!(table.n_rows(), 1);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Remote {
    pub(super) session: Arc<Session>,
}

/// What was read from servers and from the cache so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteReport {
    /// Requests for data that were sent, also those that failed.
    pub n_requests: u64,
    /// Requests that were sent again.
    pub n_retries: u64,
    /// Requests for data, or waits for another process that requested it, that were given up because the
    /// [program was to stop](Remote::stop_reading_if).
    pub n_stopped: u64,
    /// Bytes that servers have sent.
    pub bytes_from_server: u64,
    /// Bytes that were read from the cache.
    pub bytes_from_cache: u64,
    /// Why blocks are not written to a cache although they should be. Those that are in it are still read.
    pub cache_problem: Option<String>,
}

pub(super) struct Session {
    pub(super) options: RemoteOptions,
    pub(super) cache: Option<Cache>,
    /// Why there is no cache, if there should be one.
    problem: Option<String>,
    pub(super) recent: Recent,
    pub(super) runtime: Runtime,
    pub(super) permits: Permits,
    pub(super) stores: Mutex<Stores>,
    heard: Heard,
    pub(super) counts: Counts,
    on_retry: OnceLock<OnRetry>,
    stop: OnceLock<Box<Stop>>,
}

type OnRetry = Box<dyn Fn(&Retry) + Send + Sync>;

/// How long servers may be silent before a program hears of it.
const SILENCE: Duration = Duration::from_secs(3);

/// Without the closure.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("options", &self.options).field("counts", &self.counts).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) n_objects: AtomicU64,
    pub(super) n_requests: AtomicU64,
    pub(super) n_retries: AtomicU64,
    pub(super) n_stopped: AtomicU64,
    pub(super) bytes_from_server: AtomicU64,
    pub(super) bytes_from_cache: AtomicU64,
}

impl Remote {
    /// Opens the cache. Connections are made when they are needed.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Cache`] if the folder named in the options is something other than a cache of this version;
    /// [`Error::Remote`] if an option is zero that may not be.
    pub fn new(mut options: RemoteOptions) -> Result<Self, Error> {
        check(&options)?;
        options.timeout = options.timeout.min(options.retry_for.max(Duration::from_secs(1)));
        let open = |folder| Cache::open(folder, options.cache_bytes).map(Some);
        let (cache, problem) = match (&options.cache, CacheFolder::of_user()) {
            (CacheFolder::Off, _) => (None, None),
            (CacheFolder::At(folder), _) => (open(folder)?, None),
            (CacheFolder::Default, Some(folder)) => match open(&folder) {
                Ok(cache) => (cache, None),
                Err(error) => (None, Some(format!("read without a cache: {error}"))),
            },
            (CacheFolder::Default, None) => (
                None,
                Some("read without a cache, for which there is no folder: neither XDG_CACHE_HOME nor HOME is set".to_owned()),
            ),
        };
        let runtime = Runtime::start().map_err(|cause| Error::Io {
            path: "brisk-table".into(),
            action: "start a thread for requests to servers",
            cause,
        })?;
        let session = Session {
            cache,
            problem,
            recent: Recent::new(options.memory_bytes),
            runtime,
            permits: Permits::new(options.parallel),
            stores: Mutex::default(),
            heard: Heard::default(),
            counts: Counts::default(),
            on_retry: OnceLock::new(),
            stop: OnceLock::new(),
            options,
        };
        Ok(Self { session: Arc::new(session) })
    }

    /// Calls `f` for each request that has failed, or was answered with damaged bytes, and will be sent again, before the
    /// pause; and for each request to read when nothing has arrived from any server for 3 s, or half of the
    /// [timeout](RemoteOptions::timeout) if that is less. It runs on the thread that waits for the answer: to say why nothing
    /// happens. Only the first call of this method sets it, for all clones; it returns whether it was that.
    ///
    /// # Examples
    /// ```
    /// use brisk_table::{CacheFolder, Remote, RemoteOptions};
    ///
    /// let remote = Remote::new(RemoteOptions { cache: CacheFolder::Off, ..RemoteOptions::default() })?;
    /// remote.on_retry(|retry| eprintln!("{}: {}, trying again", retry.url, retry.problem));
    /// # Ok::<(), brisk_table::Error>(())
    /// ```
    pub fn on_retry(&self, f: impl Fn(&Retry) + Send + Sync + 'static) -> bool {
        self.session.on_retry.set(Box::new(f)).is_ok()
    }

    /// Ends the wait for a server soon after `stop` returns true: a program that was asked to stop need not wait for a server
    /// that does not answer until the [time for retries](RemoteOptions::retry_for) is over. A read that does not succeed within
    /// 3 s from then on is the error [`RemoteError::Stopped`]; writes are not affected. `stop` is called about ten times a second
    /// while a read waits. Only the first call of this method sets it, for all clones; it returns whether it was that.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use brisk_table::{CacheFolder, Remote, RemoteOptions};
    ///
    /// let is_asked = Arc::new(AtomicBool::new(false)); // set by a handler of signals
    /// let remote = Remote::new(RemoteOptions { cache: CacheFolder::Off, ..RemoteOptions::default() })?;
    /// remote.stop_reading_if(move || is_asked.load(Ordering::Relaxed));
    /// # Ok::<(), brisk_table::Error>(())
    /// ```
    pub fn stop_reading_if(&self, stop: impl Fn() -> bool + Send + Sync + 'static) -> bool {
        self.session.stop.set(Box::new(stop)).is_ok()
    }

    /// What was read so far.
    pub fn report(&self) -> RemoteReport {
        let counts = &self.session.counts;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RemoteReport {
            n_requests: count(&counts.n_requests),
            n_retries: count(&counts.n_retries),
            n_stopped: count(&counts.n_stopped),
            bytes_from_server: count(&counts.bytes_from_server),
            bytes_from_cache: count(&counts.bytes_from_cache),
            cache_problem: self.session.problem.clone().or_else(|| self.session.cache.as_ref().and_then(Cache::problem)),
        }
    }

    pub(crate) fn n_parallel(&self) -> usize {
        self.session.options.parallel
    }

    /// The folder for files in transit, which exists.
    pub(crate) fn staging(&self) -> Result<PathBuf, Error> {
        staging::folder(self.session.options.staging.as_deref())
    }

    /// Checks that objects of this store can be written, as far as that is known without a request.
    pub(crate) fn check_writable(&self, location: &Location) -> Result<(), Error> {
        let (store, _) = self.session.store_of(location)?;
        match store.parts {
            Some(_) => Ok(()),
            None => Err(location.error(RemoteError::ReadOnly { scheme: location.scheme.name() })),
        }
    }
}

impl Session {
    /// Sends a request until it succeeds or its budget is spent.
    pub(super) fn send<T, F>(&self, location: &Location, request: impl FnMut() -> F) -> Result<T, Ended>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        self.send_while(&Wait::default(), location, request, |_, _| ())
    }

    /// The same, unless the program is to stop: see [`wait`](Self::wait).
    pub(super) fn send_unless_stopped<T, F>(
        &self,
        wait: &Wait<'_>,
        location: &Location,
        request: impl FnMut() -> F,
    ) -> Result<T, Ended>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let start = Instant::now();
        let tell = |attempts, after: Duration| {
            let problem = format!("the server has not answered for {after:?}");
            let (url, elapsed, pause) = (location.shown(), start.elapsed(), Duration::ZERO);
            self.tell(&Retry { url, problem, attempts, elapsed, pause });
        };
        let sent = self.send_while(wait, location, request, tell);
        if matches!(sent, Err(Ended::Error(RemoteError::Stopped))) && !wait.is_abandoned() {
            self.counts.n_stopped.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// A wait that ends soon after the program is to stop.
    pub(super) fn wait(&self) -> Wait<'_> {
        self.stop.get().map_or_else(Wait::default, |stop| Wait::until(stop))
    }

    /// `unheard` is called with the number of attempts when nothing has arrived from any server for this time.
    fn send_while<T, F>(
        &self,
        wait: &Wait<'_>,
        location: &Location,
        mut request: impl FnMut() -> F,
        unheard: impl Fn(u32, Duration),
    ) -> Result<T, Ended>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let (mut attempts, after) = (0, SILENCE.min(self.options.timeout / 2));
        retrying(
            &self.options,
            location,
            wait,
            || {
                // Not during pauses, in which others can send theirs.
                let _permit = self.permits.take();
                self.counts.n_requests.fetch_add(1, Ordering::Relaxed);
                attempts += 1;
                let mut is_silent = self.heard.silence(after);
                let meanwhile = || {
                    if is_silent() {
                        unheard(attempts, after);
                    }
                };
                self.runtime.wait(wait, request(), meanwhile).unwrap_or(Err(Failure::Final(RemoteError::Stopped)))
            },
            |retry| self.tell(retry),
            || _ = self.counts.n_retries.fetch_add(1, Ordering::Relaxed),
        )
    }

    fn tell(&self, retry: &Retry) {
        if let Some(on_retry) = self.on_retry.get() {
            on_retry(retry);
        }
    }

    /// Counts and reports bytes that are requested again at once, because those that the server sent are damaged.
    pub(super) fn note_damage(&self, location: &Location, n_reads: usize) {
        let problem = "the server sent damaged bytes".to_owned();
        let (elapsed, pause) = (Duration::ZERO, Duration::ZERO);
        self.tell(&Retry { url: location.shown(), problem, attempts: n_reads as u32, elapsed, pause });
        self.counts.n_retries.fetch_add(1, Ordering::Relaxed);
    }

    /// The store of an object, and the path of the object in it.
    pub(super) fn store_of(&self, location: &Location) -> Result<(Store, Path), Error> {
        let path = Path::from_url_path(location.object());
        let path = path
            .map_err(|error| location.error(RemoteError::Url { problem: format!("cannot be the name of an object: {error}") }))?;
        let mut stores = self.stores.lock().expect("connecting does not panic");
        Ok((stores.connected(location, &self.options, &self.heard)?, path))
    }
}

fn check(options: &RemoteOptions) -> Result<(), Error> {
    let zero = [("parallel", options.parallel == 0), ("timeout", options.timeout.is_zero())];
    match zero.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((name, _)) => {
            let reason = RemoteError::Setting { name: name.to_owned(), problem: "is 0, expected more".to_owned() };
            Err(Error::Remote { url: "RemoteOptions".to_owned(), reason })
        }
        None => Ok(()),
    }
}
