//! The cache: shared, limited, and never trusted.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use brisk_table::{CacheFolder, Error, ReadAhead, Remote, RemoteOptions, RemoteReport, StreamedTable, Table};

use super::server::{Fault, Names, Server};
use super::{N_ROWS, check_ramp, options, ramp, serving_ramp};

const URL: &str = "BRISK_TABLE_TEST_URL";
const CACHE: &str = "BRISK_TABLE_TEST_CACHE";

fn at(folder: &Path) -> RemoteOptions {
    options(CacheFolder::At(folder.to_owned()))
}

fn read(url: &str, options: RemoteOptions) -> RemoteReport {
    let remote = Remote::new(options).unwrap();
    check_ramp(&Table::open_url(url, &remote).unwrap(), N_ROWS);
    remote.report()
}

fn blocks(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "block")).collect()
}

#[test]
fn what_was_read_is_not_read_again() {
    let (server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    let cold = read(&url, at(folder.path()));
    assert!(cold.bytes_from_server >= ramp().len() as u64 && cold.bytes_from_cache == 0, "{cold:?}");
    let warm = read(&url, at(folder.path()));
    // The header and the checksums.
    assert!(warm.bytes_from_server < 70_000 && warm.bytes_from_cache + 4096 >= ramp().len() as u64, "{warm:?}");
    assert_eq!((warm.cache_problem, blocks(folder.path()).len()), (None, super::N_BLOCKS));

    // A signature does not count, another object does.
    assert_eq!(read(&format!("{url}?sig=1"), at(folder.path())).bytes_from_server, warm.bytes_from_server);
    server.put("/t.safetensors", ramp().to_vec());
    let changed = read(&url, at(folder.path()));
    assert_eq!((changed.bytes_from_cache, blocks(folder.path()).len()), (0, 2 * super::N_BLOCKS));
}

#[test]
fn an_object_without_a_name_is_not_cached() {
    let (server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    server.set_names(Names::None);
    read(&url, at(folder.path()));
    assert_eq!(blocks(folder.path()).len(), 0);
    server.set_names(Names::Time);
    read(&url, at(folder.path()));
    assert_eq!(blocks(folder.path()).len(), super::N_BLOCKS);
}

#[test]
fn damaged_blocks_are_fetched_again() {
    let (_server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    read(&url, at(folder.path()));
    let damages: [fn(&mut Vec<u8>); 4] =
        [|bytes| bytes[1000] ^= 1, |bytes| bytes.truncate(5000), Vec::clear, |bytes| bytes.push(0)];
    for damage in damages {
        // The last block of the table is shorter.
        let path = blocks(folder.path()).into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let report = read(&url, at(folder.path()));
        assert!(report.bytes_from_server > 1 << 20 && report.bytes_from_cache > 1 << 20, "{report:?}");
        assert_eq!((report.cache_problem, blocks(folder.path()).len()), (None, super::N_BLOCKS));
    }
}

#[test]
fn the_cache_keeps_to_its_size() {
    let (_server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    let report = read(&url, RemoteOptions { cache_bytes: 5 << 20, ..at(folder.path()) });
    let size: u64 = blocks(folder.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(size <= 5 << 20 && size > 0 && report.cache_problem.is_none(), "{size}: {report:?}");
}

/// A process was killed between creating the marker and writing it.
#[test]
fn an_empty_marker_is_written() {
    let (folder, server) = (tempfile::tempdir().unwrap(), super::serving_ramp());
    let marker = folder.path().join("brisk-table-cache");
    fs::write(&marker, "").unwrap();
    read(&server.1, at(folder.path()));
    assert!(!blocks(folder.path()).is_empty());
    assert_ne!(fs::read(marker).unwrap(), b"");
}

#[test]
fn a_folder_that_is_no_cache_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("brisk-table-cache");
    let error = || Remote::new(at(folder.path())).unwrap_err();
    fs::write(folder.path().join("thesis.tex"), "x").unwrap();
    assert!(matches!(error(), Error::Cache { .. }) && error().to_string().contains("has other files"), "{}", error());
    fs::write(&marker, "1").unwrap();
    assert!(error().to_string().contains("another version, \"1\""), "{}", error());
    fs::remove_file(&marker).unwrap();
    fs::create_dir(&marker).unwrap();
    assert!(error().to_string().contains("cannot use as a cache"), "{}", error());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Remote::new(at(&file)), Err(Error::Io { .. })));
}

/// The file with the size cannot be written, as in a folder that is read-only.
#[test]
fn a_cache_that_cannot_be_written_is_read() {
    let (server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    read(&url, at(folder.path()));
    fs::remove_file(folder.path().join("size")).unwrap();
    fs::create_dir(folder.path().join("size")).unwrap();
    let report = read(&url, at(folder.path()));
    assert!(report.bytes_from_server < 70_000, "{report:?}");
    server.put("/t.safetensors", ramp().to_vec());
    let report = read(&url, at(folder.path()));
    assert!(report.cache_problem.as_ref().is_some_and(|problem| problem.contains("not written")), "{report:?}");
    assert_eq!(blocks(folder.path()).len(), super::N_BLOCKS, "nothing was added");
}

/// Nothing can be created there, not even by root.
#[cfg(target_os = "linux")]
#[test]
fn a_cache_that_cannot_be_created_is_a_problem() {
    let (_server, url) = serving_ramp();
    let report = read(&url, at(Path::new("/sys/brisk-table-test")));
    assert!(report.cache_problem.as_ref().is_some_and(|problem| problem.contains("not written")), "{report:?}");
}

fn child(name: &str, url: &str, cache: &Path, limit: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!(r#"trap "" XFSZ; {limit} exec "$0" --exact "$1" --nocapture"#)])
        .arg(env::current_exe().unwrap())
        .arg(format!("remote::cached::{name}"))
        .env(URL, url)
        .env(CACHE, cache)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
fn check_passed(child: Child) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Not a test by itself: the tests below run it in other processes.
#[test]
fn child_that_reads() {
    let (Some(url), Some(cache)) = (env::var_os(URL), env::var_os(CACHE)) else { return };
    read(url.to_str().unwrap(), at(Path::new(&cache)));
}

/// Not a test by itself.
#[test]
fn child_whose_disk_is_full() {
    let (Some(url), Some(cache)) = (env::var_os(URL), env::var_os(CACHE)) else { return };
    let report = read(url.to_str().unwrap(), at(Path::new(&cache)));
    assert!(report.cache_problem.as_ref().is_some_and(|problem| problem.contains("not written")), "{report:?}");
}

#[cfg(unix)]
#[test]
fn a_full_disk_only_costs_the_cache() {
    let (_server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    // 2 MiB, in blocks of 512 bytes or 1 KiB.
    check_passed(child("child_whose_disk_is_full", &url, folder.path(), "ulimit -f 2048;"));
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(blocks(folder.path()).len(), 0, "{files:?}");
    assert!(files.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{files:?}");
}

/// Not even a new cache can be marked.
#[cfg(unix)]
#[test]
fn a_new_cache_on_a_full_disk_is_a_problem() {
    let (_server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    check_passed(child("child_whose_disk_is_full", &url, folder.path(), "ulimit -f 0;"));
    assert_eq!(blocks(folder.path()).len(), 0);
    // Once there is room, it is a cache.
    assert_eq!((read(&url, at(folder.path())).cache_problem, blocks(folder.path()).len()), (None, super::N_BLOCKS));
}

/// Not a test by itself.
#[test]
fn child_whose_disk_is_small() {
    let (Some(url), Some(cache)) = (env::var_os(URL), env::var_os(CACHE)) else { return };
    let (url, cache) = (url.to_str().unwrap(), Path::new(&cache));
    let report = read(url, RemoteOptions { parallel: 1, ..at(cache) });
    assert!(report.cache_problem.is_none() && !blocks(cache).is_empty(), "{report:?}");
}

/// The cache may be larger than its disk, which can be mounted where users have namespaces of their own.
#[cfg(target_os = "linux")]
#[test]
fn the_cache_keeps_to_the_size_of_its_disk() {
    let (_server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    let can_mount = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none"]).arg(folder.path()).output();
    if !can_mount.is_ok_and(|output| output.status.success()) {
        _ = std::io::Write::write_all(&mut std::io::stderr(), b"NOT RUN: a small disk: this user cannot mount one\n");
        return;
    }
    let on_small_disk = format!(r#"unshare -rm sh -c 'mount -t tmpfs -o size=4m none "$0" && "$@"' "${CACHE}""#);
    check_passed(child("child_whose_disk_is_small", &url, folder.path(), &on_small_disk));
}

/// Two processes and two sessions of this one start together: each block is fetched once.
#[cfg(unix)]
#[test]
fn processes_share_the_cache() {
    let (server, url) = serving_ramp();
    server.set_link(100e6, Duration::from_millis(30));
    let folder = tempfile::tempdir().unwrap();
    let children = [child("child_that_reads", &url, folder.path(), ""), child("child_that_reads", &url, folder.path(), "")];
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| read(&url, at(folder.path())));
        }
    });
    children.into_iter().for_each(check_passed);
    let large = |range: &str| {
        let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        last.parse::<u64>().unwrap() - first.parse::<u64>().unwrap() > 100_000
    };
    let n_large = server.requests().iter().filter(|request| large(&request.headers["range"])).count();
    assert_eq!(n_large, super::N_BLOCKS, "each block once");
}

/// A process is killed while it fetches. Its locks and files do not hinder others.
#[cfg(unix)]
#[test]
fn a_killed_process_leaves_nothing() {
    let (server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    // The first blocks never come.
    server.misbehave(|request, n| (n < 6 && request.headers["range"].starts_with("bytes=4096-")).then_some(Fault::Silence));
    let mut child = child("child_that_reads", &url, folder.path(), "");
    let temps = || {
        fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|e| e == "tmp"))
            .count()
    };
    let start = Instant::now();
    while temps() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "the child does not fetch");
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(temps() > 0, "it was killed while it fetched");
    server.misbehave(|_, _| None);
    let start = Instant::now();
    read(&url, at(folder.path()));
    assert!(start.elapsed() < Duration::from_secs(4), "it waited for a process that is gone");
    assert_eq!((temps(), blocks(folder.path()).len()), (0, super::N_BLOCKS));
}

/// Rows that were not announced come from the cache, too.
#[test]
fn streamed_tables_use_the_cache() {
    let (server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    read(&url, at(folder.path()));
    server.misbehave(|_, _| None);
    let remote = Remote::new(at(folder.path())).unwrap();
    let table = StreamedTable::open_url(&url, &ReadAhead::new(8 << 20), &remote).unwrap();
    table.verify().unwrap();
    assert_eq!(server.requests().len(), 2, "the header and the checksums: {:?}", server.requests());
}

#[test]
fn a_server_may_go_while_the_cache_is_read() {
    let (server, url): (Server, String) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    read(&url, at(folder.path()));
    let remote = Remote::new(at(folder.path())).unwrap();
    let table = StreamedTable::open_url(&url, &ReadAhead::new(0), &remote).unwrap();
    // Once the checksums are known, no request is needed.
    brisk_loader::RowSource::fingerprint(&table).unwrap();
    server.misbehave(|_, _| Some(Fault::Status(503, "", "")));
    table.verify().unwrap();
    assert_eq!(server.requests().len(), 0);
}
