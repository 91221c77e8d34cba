//! Tables at a path or a URL: files, folders of shards, and objects of servers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "remote")]
use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
    sync::{Mutex, Once, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::{Result, bail};
use brisk_loader::RowSource;
#[cfg(feature = "remote")]
use brisk_report::{mebibytes, thousands};
#[cfg(feature = "remote")]
use brisk_table::{CacheFolder, LocalCopy, Remote, RemoteError, RemoteFolder, RemoteOptions, RemoteReport};
use brisk_table::{Destination, Error, ReadAhead, ShardSize, ShardedTable, StreamedTable, Table, printable};
#[cfg(feature = "remote")]
use brisk_train::StopFlag;
use brisk_train::{CheckpointStore, StopSignal};

use crate::folder::check_folder;

/// The rows of a table, wherever they are.
pub type TableRows = Box<dyn RowSource<Feature = f32, Error = Error> + Send + Sync>;

/// Where rows are while a program runs.
#[derive(Debug, Clone)]
pub enum Held {
    /// In memory, which the whole table is copied to.
    InMemory,
    /// Where they are, except for those that are needed next.
    Streamed(ReadAhead),
}

/// A table of either kind that is read when its rows are needed.
#[derive(Debug)]
pub enum Streamed {
    /// One file.
    File(StreamedTable),
    /// Several files with an index.
    Shards(ShardedTable<StreamedTable>),
}

/// Whether an argument is a URL rather than a path. One that lacks its `//` is, too, unless there is a file of that name: opening
/// it is then an error that says so.
pub fn is_url(path: &Path) -> bool {
    const SCHEMES: [&str; 5] = ["http", "https", "s3", "gs", "az"];
    path.to_str().is_some_and(|text| {
        let has_scheme = || text.split_once(':').is_some_and(|(word, _)| SCHEMES.iter().any(|s| s.eq_ignore_ascii_case(word)));
        text.contains("://") || text.starts_with("file:") || has_scheme() && !path.exists()
    })
}

/// A path as it is, or a URL without its secrets.
pub fn shown(path: &Path) -> String {
    match path.to_str().filter(|_| is_url(path)) {
        Some(text) => Url { text }.to_string(),
        None => path.display().to_string(),
    }
}

/// Whether the argument is a table by its name: a file `.safetensors`, an index `.json`, or a folder with an index.
pub fn is_table(path: &Path) -> bool {
    let Some(text) = path.to_str().filter(|_| is_url(path)) else {
        let is_named = path.extension().is_some_and(|extension| extension == "safetensors");
        return is_named || is_shards(path) && path.exists();
    };
    let name = text.split(['?', '#']).next().unwrap_or(text);
    name.ends_with(".safetensors") || is_shards(path)
}

/// Whether a table at this path or URL has shards.
fn is_shards(path: &Path) -> bool {
    match path.to_str().filter(|_| is_url(path)) {
        Some(url) => {
            let name = Url { text: url }.name();
            name.ends_with(".json") || !name.contains('.')
        }
        None => {
            path.join("table.safetensors.index.json").is_file() || path.extension().is_some_and(|extension| extension == "json")
        }
    }
}

/// Opens the table at a path or URL.
///
/// # Errors
/// If it cannot be read; if it is a URL, and this program was built without them.
pub fn open_rows(path: &Path, held: &Held) -> Result<TableRows> {
    Ok(match held {
        Held::InMemory => match (is_shards(path), url(path)?) {
            (false, None) => Box::new(Table::open(path)?),
            (true, None) => Box::new(ShardedTable::open(path)?),
            (false, Some(url)) => Box::new(url.table()?),
            (true, Some(url)) => Box::new(url.shards()?),
        },
        Held::Streamed(ahead) => match open_streamed(path, ahead, Use::Training)? {
            Streamed::File(table) => Box::new(table),
            Streamed::Shards(table) => Box::new(table),
        },
    })
}

/// What a table is opened for, which says how it is read from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Its rows are read several times: in blocks, which are checked and cached.
    Training,
    /// They are read once: in blocks, which are checked but not cached.
    Copy,
    /// A few of them: no more than their bytes, without the checks and the cache.
    Glance,
}

/// Opens the table at a path or URL, reading its header only.
///
/// # Errors
/// As [`open_rows`].
pub fn open_streamed(path: &Path, ahead: &ReadAhead, used: Use) -> Result<Streamed> {
    Ok(match (is_shards(path), url(path)?) {
        (false, None) => Streamed::File(StreamedTable::open(path, ahead)?),
        (true, None) => Streamed::Shards(ShardedTable::open_streamed(path, ahead)?),
        (false, Some(url)) => Streamed::File(url.streamed(ahead, used)?),
        (true, Some(url)) => Streamed::Shards(url.streamed_shards(ahead, used)?),
    })
}

/// A file that a program reads.
#[derive(Debug)]
pub enum LocalFile {
    /// A file at a path.
    At(PathBuf),
    /// The copy of an object, which is removed with this value.
    #[cfg(feature = "remote")]
    Copy(LocalCopy),
}

impl LocalFile {
    /// The file at a path, or a copy of the object at a URL, under its name.
    ///
    /// # Errors
    /// If it cannot be copied; if it is a URL, and this program was built without them.
    pub fn of(path: &Path) -> Result<Self> {
        let Some(url) = url(path)? else { return Ok(Self::At(path.to_owned())) };
        let file = url.copied()?;
        crate::print::call(file.path(), &url);
        Ok(file)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        match self {
            Self::At(path) => path,
            #[cfg(feature = "remote")]
            Self::Copy(copy) => copy.path(),
        }
    }
}

/// Where a program writes a table: a file, or a folder of shards, at a path or URL.
///
/// # Errors
/// If nothing can be written to that path or URL, as far as that is known; if this program was built without URLs.
pub fn destination(target: &Path, shards: Option<ShardSize>) -> Result<Destination> {
    let whole = match url(target)? {
        Some(url) if shards.is_none() && !url.name().ends_with(".safetensors") => {
            bail!("{url}: a table is written to a name that ends in .safetensors");
        }
        Some(url) if shards.is_some() && url.name().contains('.') => {
            bail!("{url}: shards are written to a folder, whose name has no `.`");
        }
        Some(url) => url.destination()?,
        None => Destination::path(target),
    };
    let Some(size) = shards else { return Ok(whole) };
    if !is_url(target) {
        check_folder("OUT, a folder of shards,", target)?;
        let parent = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            bail!("{}: shards are written to a folder whose parent exists", printable(target));
        }
    }
    Ok(whole.in_shards(size))
}

/// The folder at a URL that checkpoints are copied to, or from.
///
/// # Errors
/// If it is a path, or no such store can be used; if this program was built without URLs.
pub fn checkpoint_store(folder: &Path) -> Result<Arc<dyn CheckpointStore>> {
    match url(folder)? {
        Some(url) => url.store(),
        None => bail!("{}: is a path, expected the URL of a folder, such as s3://BUCKET/runs/7", printable(folder)),
    }
}

/// A URL of the command line; `None` for a path.
fn url(path: &Path) -> Result<Option<Url<'_>>> {
    let Some(text) = path.to_str().filter(|_| is_url(path)) else { return Ok(None) };
    let url = Url { text };
    if !text.contains("://") && !text.starts_with("file:") {
        bail!("{url}: the URL has no `//` after its scheme; {} was probably meant", url.with_slashes());
    }
    if cfg!(not(feature = "remote")) {
        bail!("{url}: is a URL, which this program was built without; add `--features remote` before `--example`");
    }
    Ok(Some(url))
}

/// A URL, which is printed without its secrets.
struct Url<'a> {
    text: &'a str,
}

impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.text.split_once(':').unwrap_or(("file", self.text));
        // Those of a file that has a path only stay as they are.
        let slashes = if scheme == "file" || rest.starts_with("//") { "//" } else { "" };
        let rest = rest.strip_prefix("//").unwrap_or(rest).split(['?', '#']).next().unwrap_or(rest);
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.rsplit('@').next().unwrap_or(host);
        write!(f, "{}", printable(&format!("{scheme}:{slashes}{host}/{path}")))
    }
}

impl<'a> Url<'a> {
    /// A URL that lacks the `//` after its scheme, with it and without its secrets.
    fn with_slashes(&self) -> String {
        let (scheme, rest) = self.text.split_once(':').unwrap_or(("file", self.text));
        Url { text: &format!("{scheme}://{}", rest.trim_start_matches('/')) }.to_string()
    }

    /// The last part of its path; empty for a folder that ends with a slash, and for a host without a path.
    fn name(&self) -> &'a str {
        let url = self.text.split(['?', '#']).next().unwrap_or(self.text);
        let path = url.split_once("://").map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
        path.rsplit('/').next().unwrap_or_default()
    }
}

/// The seconds of `--retry-seconds`, if it was given.
#[cfg(feature = "remote")]
static RETRY_SECONDS: OnceLock<u64> = OnceLock::new();

/// Sets for how long requests to servers are sent again, before the first is sent.
#[cfg(feature = "remote")]
pub(crate) fn set_retry_seconds(seconds: u64) {
    // The command line is parsed once.
    let _ = RETRY_SECONDS.set(seconds);
}

/// The folder and the size in bytes of `--cache` and `--cache-gib`, if one was given.
#[cfg(feature = "remote")]
static CACHE: OnceLock<(Option<PathBuf>, Option<u64>)> = OnceLock::new();

/// Sets where blocks of tables are kept, and how many bytes of them, before the first is read.
#[cfg(feature = "remote")]
pub(crate) fn set_cache(folder: Option<PathBuf>, bytes: Option<u64>) {
    // The command line is parsed once.
    let _ = CACHE.set((folder, bytes));
}

/// The wait for a server after which a message is printed.
#[cfg(feature = "remote")]
const TELL_AFTER: Duration = Duration::from_secs(3);

/// The message about an object when its first request has failed for some time.
#[cfg(feature = "remote")]
fn told_of(url: &str, problem: &str, most: Duration) -> String {
    format!("{}: {}, trying again, for up to {} s in all", printable(url), printable(problem), most.as_secs())
}

/// The connections of this process, by their [`Use`].
#[cfg(feature = "remote")]
static REMOTES: [OnceLock<Remote>; 3] = [const { OnceLock::new() }; 3];

/// What this process has read from servers so far.
#[cfg(feature = "remote")]
fn reports() -> impl Iterator<Item = RemoteReport> {
    REMOTES.iter().filter_map(OnceLock::get).map(Remote::report)
}

/// The signal because of which something was not read.
#[cfg(feature = "remote")]
pub(crate) fn stopped_by() -> Option<StopSignal> {
    StopFlag::of_signals()?.signal().filter(|_| reports().any(|report| report.n_stopped > 0))
}

#[cfg(not(feature = "remote"))]
pub(crate) fn stopped_by() -> Option<StopSignal> {
    None
}

/// The connections of this process, and its cache if it is used.
#[cfg(feature = "remote")]
fn remote(used: Use) -> Result<&'static Remote> {
    let known = &REMOTES[used as usize];
    if let Some(remote) = known.get() {
        return Ok(remote);
    }
    let retries = RETRY_SECONDS.get().map(|&seconds| {
        let retry_for = Duration::from_secs(seconds);
        RemoteOptions { retry_for, ..RemoteOptions::default() }
    });
    let retries = retries.unwrap_or_default();
    let (cache, cache_bytes) = CACHE.get().cloned().unwrap_or_default();
    let options = RemoteOptions {
        cache: match used {
            Use::Training => cache.map_or(CacheFolder::Default, CacheFolder::At),
            Use::Copy | Use::Glance => CacheFolder::Off,
        },
        whole_blocks: used != Use::Glance,
        cache_bytes: cache_bytes.unwrap_or(retries.cache_bytes),
        more_retries: "`--retry-seconds`".to_owned(),
        ..retries
    };
    let most = options.retry_for;
    let remote = Remote::new(options)?;
    let told = Mutex::new(HashSet::new());
    remote.on_retry(move |retry| {
        let is_long = retry.elapsed + retry.pause >= TELL_AFTER;
        if is_long && told.lock().unwrap_or_else(PoisonError::into_inner).insert(retry.url.clone()) {
            crate::print::note(told_of(&retry.url, &retry.problem, most));
        }
    });
    remote.stop_reading_if(|| StopFlag::of_signals().is_some_and(|stop| stop.is_requested()));
    warn_of_cache(&remote.report());
    Ok(known.get_or_init(|| remote))
}

/// Says once that blocks are not cached.
#[cfg(feature = "remote")]
fn warn_of_cache(report: &RemoteReport) {
    static SAID: Once = Once::new();
    if let Some(problem) = &report.cache_problem {
        SAID.call_once(|| crate::print::note(format_args!("warning: {problem}")));
    }
}

/// Says what this process has read from servers, if anything, and whether its cache has failed meanwhile.
pub(crate) fn say_what_was_read() {
    // A process cannot fail to send a text to itself.
    let _ = say_what_ranks_read(true, |mine| Ok(vec![mine.to_owned()]));
}

/// Says what all ranks of a job have read from servers, on the first of them, and nothing on the others. `gather` sends a text of
/// each rank to all, and returns the texts. Only the first call in a process says anything, or sends.
///
/// # Errors
/// Those of `gather`.
pub fn say_what_ranks_read(is_first: bool, gather: impl FnOnce(&str) -> Result<Vec<String>>) -> Result<()> {
    #[cfg(feature = "remote")]
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        reports().for_each(|report| warn_of_cache(&report));
        let sum = |of: fn(&RemoteReport) -> u64| reports().map(|report| of(&report)).sum::<u64>();
        let mine =
            [sum(|report| report.bytes_from_server), sum(|report| report.bytes_from_cache), sum(|report| report.n_retries)];
        let all = gather(&mine.map(|n| n.to_string()).join(" "))?;
        let of_all = |at: usize| all.iter().filter_map(|one| one.split(' ').nth(at)?.parse::<u64>().ok()).sum::<u64>();
        let [server, cache, again] = [0, 1, 2].map(of_all);
        if is_first && server + cache > 0 {
            let [server, cache] = [server, cache].map(mebibytes);
            let again = thousands(again);
            let ranks = if all.len() > 1 { format!(", by {} ranks", all.len()) } else { String::new() };
            crate::print::note(format_args!(
                "read: {server} from servers, {cache} from the cache{ranks}; requests sent again: {again}"
            ));
        }
    }
    #[cfg(not(feature = "remote"))]
    let _ = (is_first, gather);
    Ok(())
}

/// Whether it was said what this process has read.
#[cfg(feature = "remote")]
static IS_SAID: AtomicBool = AtomicBool::new(false);

/// The error of reading one file at a URL, which may be that of a folder of shards: such a folder is no object, or a web server
/// lists its files.
#[cfg(feature = "remote")]
fn of_one_file(url: &str, error: Error) -> anyhow::Error {
    let is_no_file = matches!(&error, Error::Remote { reason: RemoteError::NotFound | RemoteError::Failed { .. }, .. });
    if is_no_file && is_shards(Path::new(url)) {
        anyhow::anyhow!("{error}; this program reads one file, not a folder of shards")
    } else {
        error.into()
    }
}

/// Each method calls that of the library; without URLs, none is called, since [`url`] has returned an error.
macro_rules! remote_methods {
    ($(fn $name:ident(&self $(, $arg:ident: $Arg:ty)*) -> $Out:ty { |$url:ident| $body:expr })*) => {
        impl Url<'_> {
            $(
                #[cfg(feature = "remote")]
                fn $name(&self $(, $arg: $Arg)*) -> Result<$Out> {
                    let $url = self.text;
                    Ok($body?)
                }

                #[cfg(not(feature = "remote"))]
                fn $name(&self $(, _: $Arg)*) -> Result<$Out> {
                    bail!("{self}: this program was built without URLs")
                }
            )*
        }
    };
}

remote_methods! {
    fn table(&self) -> Table { |url| Table::open_url(url, remote(Use::Training)?) }
    fn shards(&self) -> ShardedTable { |url| ShardedTable::open_url(url, remote(Use::Training)?) }
    fn streamed(&self, ahead: &ReadAhead, used: Use) -> StreamedTable { |url| StreamedTable::open_url(url, ahead, remote(used)?) }
    fn streamed_shards(&self, ahead: &ReadAhead, used: Use) -> ShardedTable<StreamedTable> {
        |url| ShardedTable::open_streamed_url(url, ahead, remote(used)?)
    }
    fn copied(&self) -> LocalFile {
        |url| LocalCopy::of(url, remote(Use::Copy)?).map(LocalFile::Copy).map_err(|error| of_one_file(url, error))
    }
    fn destination(&self) -> Destination { |url| Destination::url(url, remote(Use::Copy)?) }
    fn store(&self) -> Arc<dyn CheckpointStore> {
        |url| RemoteFolder::at(url, remote(Use::Copy)?).map(|folder| Arc::new(folder) as Arc<dyn CheckpointStore>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_tables_are_told_by_their_names() {
        let cases = [
            ("s3://b/t.safetensors", true, true, false),
            ("https://h/t.safetensors?sig=a/b", true, true, false),
            ("s3://b/folder", true, true, true),
            ("s3://b/folder/", true, true, true),
            ("https://h/t.json?x", true, true, true),
            ("https://h.example", true, true, true),
            ("https://h.example/v1.2/", true, true, true),
            ("https://h/rows.csv", true, false, false),
            ("s3:bucket/t.safetensors", true, true, false),
            ("HTTPS:host/rows.csv", true, false, false),
            (r"C:\t.safetensors", false, true, false),
            ("C:/rows.csv", false, false, false),
            ("a:b/rows.csv", false, false, false),
            ("t.safetensors", false, true, false),
            ("rows.csv", false, false, false),
        ];
        for (text, url, table, shards) in cases {
            let path = Path::new(text);
            assert_eq!((is_url(path), is_table(path), is_shards(path)), (url, table, shards), "{text}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (url, expected) in [
            ("https://me:pass@h/t?sig=x", "https://h/t"),
            ("https:me:pass@h/t?sig=x", "https:h/t"),
            ("file:/a/b?c", "file:///a/b"),
            ("file:///a/b", "file:///a/b"),
        ] {
            assert_eq!(Url { text: url }.to_string(), expected);
        }
    }

    #[test]
    fn a_scheme_without_slashes_is_an_error_that_says_what_was_meant() {
        for (text, meant) in [
            ("s3:bucket/t.safetensors", "s3://bucket/t.safetensors"),
            ("gs:/bucket/t.safetensors", "gs://bucket/t.safetensors"),
            ("https:me:pass@host/t.safetensors?sig=x", "https://host/t.safetensors"),
        ] {
            let opened = open_rows(Path::new(text), &Held::InMemory).err().expect("there is no such file").to_string();
            let downloaded = LocalFile::of(Path::new(text)).expect_err("there is no such file").to_string();
            assert_eq!(opened, downloaded);
            assert!(opened.contains(meant) && !opened.contains("pass") && !opened.contains("sig"), "{opened}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_whose_name_begins_like_a_url_is_a_file() {
        // A path relative to the current folder, which other tests share.
        let folder = tempfile::Builder::new().prefix("s3:").tempdir_in(".").expect("the current folder can be written to");
        let name = Path::new(folder.path().file_name().expect("it has a name"));
        assert!(!is_url(name) && is_url(Path::new("s3:other")), "{}", name.display());
    }

    #[cfg(not(feature = "remote"))]
    #[test]
    fn a_url_needs_a_feature() {
        let error = open_rows(Path::new("https://me:pass@h/t.safetensors"), &Held::InMemory).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("--features remote") && !error.contains("pass")));
    }
}
