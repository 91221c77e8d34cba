//! Tables on a server: what is read is what was written, or an error says why.

mod cached;
mod installed;
mod lanes;
mod local_copy;
mod nginx;
#[cfg(feature = "s3")]
mod rclone;
#[cfg(feature = "s3")]
mod s3;
#[cfg_attr(not(feature = "s3"), expect(dead_code, reason = "tests of stores use the rest"))]
mod server;
#[cfg(feature = "s3")]
mod written;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use brisk_loader::{Batching, Hint, Loader, RowBuffers, RowSelection, RowSource as _, row_source_conformance};
use brisk_table::{
    CacheFolder, Error, ReadAhead, Remote, RemoteError, RemoteFolder, RemoteOptions, Retry, Schema, ShardMismatch, ShardSize,
    ShardedTable, StreamedTable, Table, TableWriter,
};

use server::{Fault, Names, Server};

const N_ROWS: usize = 800_000;
/// Blocks of 1 MiB that these rows take.
const N_BLOCKS: usize = 10;

fn options(cache: CacheFolder) -> RemoteOptions {
    RemoteOptions {
        cache,
        parallel: 8,
        first_pause: Duration::from_millis(1),
        timeout: Duration::from_secs(5),
        retry_for: Duration::from_secs(10),
        ..RemoteOptions::default()
    }
}

fn without_cache() -> Remote {
    Remote::new(options(CacheFolder::Off)).unwrap()
}

/// The file of a ramp.
fn ramp() -> Arc<Vec<u8>> {
    static RAMP: OnceLock<Arc<Vec<u8>>> = OnceLock::new();
    RAMP.get_or_init(|| Arc::new(ramp_of(N_ROWS))).clone()
}

fn ramp_of(n_rows: usize) -> Vec<u8> {
    let (_folder, path) = crate::scratch();
    let mut writer = TableWriter::create(&path, Schema::named(["whole", "half"])).unwrap();
    let rows: Vec<f32> = (0..n_rows).flat_map(|i| [i as f32, i as f32 / 2.0]).collect();
    writer.push(&rows, &(0..n_rows).map(|i| (i % 2) as f32).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

fn serving_ramp() -> (Server, String) {
    let server = Server::start();
    server.put("/t.safetensors", ramp().to_vec());
    let url = server.url("/t.safetensors");
    (server, url)
}

#[track_caller]
fn check_ramp(table: &Table, n_rows: usize) {
    assert_eq!(table.n_rows(), n_rows);
    let rows = table.rows::<f32>(0..n_rows).unwrap();
    assert!(rows.chunks_exact(2).enumerate().all(|(i, row)| row == [i as f32, i as f32 / 2.0]), "rows differ");
    assert!(table.labels::<f32>().unwrap().iter().enumerate().all(|(i, &y)| y == (i % 2) as f32), "labels differ");
}

fn open_error(server: &Server, options: RemoteOptions) -> Error {
    let url = server.url("/t.safetensors");
    Table::open_url(&url, &Remote::new(options).unwrap()).unwrap_err()
}

#[track_caller]
fn reason(error: Error) -> RemoteError {
    match error {
        Error::Remote { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn all_kinds_of_tables_are_read() {
    let (server, url) = serving_ramp();
    let remote = without_cache();
    let table = Table::open_url(&url, &remote).unwrap();
    check_ramp(&table, N_ROWS);
    table.verify().unwrap();

    let small = Server::start();
    small.put("/t.safetensors", ramp_of(700));
    row_source_conformance(&StreamedTable::open_url(&small.url("/t.safetensors"), &ReadAhead::new(1 << 20), &remote).unwrap());
    let streamed = StreamedTable::open_url(&url, &ReadAhead::new(16 << 20), &remote).unwrap();
    streamed.verify().unwrap();
    assert_eq!(streamed.path().to_str(), Some(url.as_str()));

    let parent = tempfile::tempdir().unwrap();
    crate::shards::write_ramp(&parent.path().join("t"), 10_000, ShardSize::Rows(900), 1.0);
    for entry in std::fs::read_dir(parent.path().join("t")).unwrap() {
        let path = entry.unwrap().path();
        server.put(&format!("/t/{}", path.file_name().unwrap().to_str().unwrap()), std::fs::read(&path).unwrap());
    }
    let ahead = ReadAhead::new(16 << 20);
    for url in [server.url("/t"), server.url("/t/"), server.url("/t/table.safetensors.index.json")] {
        let shards = ShardedTable::open_url(&url, &remote).unwrap();
        assert_eq!((shards.n_rows(), shards.n_shards()), (10_000, 12));
        assert_eq!(shards.rows::<f32>(900..901).unwrap(), [900.0, 450.0]);
        let shards = ShardedTable::open_streamed_url(&url, &ahead, &remote).unwrap();
        row_source_conformance(&shards);
        shards.verify().unwrap();
    }
    let path = parent.path().join("t").display().to_string();
    if cfg!(unix) {
        let here = ShardedTable::open_url(&format!("file://{path}"), &remote).unwrap();
        assert_eq!(here.n_rows(), 10_000);
    }

    let error = ShardedTable::open_url(&server.url("/nothing"), &remote).unwrap_err();
    assert!(matches!(error, Error::Remote { reason: RemoteError::NoIndex, .. }), "{error}");
    let error = ShardedTable::open_url(&server.url("/nothing.json"), &remote).unwrap_err();
    assert!(matches!(error, Error::Remote { reason: RemoteError::NotFound, .. }), "{error}");

    let shard = server.names_of_objects().into_iter().find(|name| name.contains("00003.safetensors")).unwrap();
    server.put(&shard, ramp_of(3));
    let error = ShardedTable::open_url(&server.url("/t"), &remote).unwrap_err();
    assert!(matches!(error, Error::Shard { reason: ShardMismatch::Bytes { .. }, .. }), "{error}");
    server.remove(&shard);
    let error = ShardedTable::open_url(&server.url("/t"), &remote).unwrap_err();
    assert!(matches!(error, Error::Shard { reason: ShardMismatch::Missing, .. }), "{error}");
    assert!(error.to_string().contains(&shard) && error.to_string().contains("index.json"), "{error}");
}

/// Opening reads the header only.
#[test]
fn opening_and_reading_ahead_take_few_requests() {
    let (server, url) = serving_ramp();
    let remote = without_cache();
    let ahead = ReadAhead::new(64 << 20);
    let table = StreamedTable::open_url(&url, &ahead, &remote).unwrap();
    assert!(table.statistics().is_some());
    assert_eq!((server.requests().len(), remote.report().bytes_from_server), (1, 64 << 10));

    let mut loader = Loader::new(&table, Batching::of(5000).shuffled_blocks(7, 50_000, 4)).unwrap();
    let mut batches = loader.epoch(0);
    let mut sum = 0.0;
    while let Some(batch) = batches.next_batch().unwrap() {
        sum += batch.features.iter().step_by(2).map(|&x| f64::from(x)).sum::<f64>();
    }
    assert_eq!(sum, (N_ROWS as f64) * (N_ROWS as f64 - 1.0) / 2.0);
    let report = ahead.report();
    assert_eq!((report.rows_from_file, report.rows_without_room), (0, 0), "{report:?}");
    // The header, the checksums and the blocks, each once.
    assert_eq!(server.requests().len(), 2 + N_BLOCKS, "{:?}", server.requests());
    assert!(server.requests()[1..].iter().all(|request| request.headers.contains_key("if-match")), "the version is pinned");
}

/// Of the rows around those that are needed, only what the same checksum covers is read.
#[test]
fn a_part_of_the_rows_takes_a_part_of_the_bytes() {
    let (_server, url) = serving_ramp();
    let remote = without_cache();
    let table = StreamedTable::open_url(&url, &ReadAhead::new(64 << 20), &remote).unwrap();
    let opened = remote.report().bytes_from_server;
    let (mut features, mut labels) = (vec![0.0; 2 * 100_000], vec![0.0; 100_000]);
    table.gather(RowSelection::Range(200_000..300_000), RowBuffers::new(&mut features, &mut labels)).unwrap();
    assert_eq!(features[..2], [200_000.0, 100_000.0]);
    // 800 kB of features and 400 kB of labels, and less than a block at each end of both.
    let read = remote.report().bytes_from_server - opened;
    assert!(read < 1_200_000 + (4 << 20), "{read}");
}

/// Memory for two pieces, and sixteen threads that want some.
#[test]
fn little_memory_does_not_block_the_readers() {
    let (_server, url) = serving_ramp();
    let table = StreamedTable::open_url(&url, &ReadAhead::new(9 << 20), &without_cache()).unwrap();
    let mut loader = Loader::new(&table, Batching::of(10_000).shuffled_blocks(7, 100_000, 3)).unwrap();
    for epoch in 0..2 {
        let (mut batches, mut n_rows) = (loader.epoch(epoch), 0);
        while let Some(batch) = batches.next_batch().unwrap() {
            n_rows += batch.labels.len();
        }
        assert_eq!(n_rows, N_ROWS);
    }
}

/// Without blocks, a few rows take a few bytes.
#[test]
fn a_few_rows_are_read_without_their_blocks() {
    let (server, url) = serving_ramp();
    let remote = Remote::new(RemoteOptions { whole_blocks: false, ..options(CacheFolder::Off) }).unwrap();
    let table = StreamedTable::open_url(&url, &ReadAhead::new(0), &remote).unwrap();
    let (mut rows, mut labels) = ([0.0; 6], [0.0; 3]);
    let start = N_ROWS - 3;
    table.gather(RowSelection::Range(start..N_ROWS), RowBuffers::new(&mut rows, &mut labels)).unwrap();
    assert_eq!((rows[0], rows[5], labels[0]), (start as f32, (N_ROWS - 1) as f32 / 2.0, (start % 2) as f32));
    let report = remote.report();
    assert!(server.requests().len() == 3 && report.bytes_from_server < 70_000, "{report:?}");
}

#[test]
fn a_silent_server_is_reported_before_its_time_is_over() {
    let (server, url) = serving_ramp();
    server.misbehave(|_, _| Some(Fault::Silence));
    let (timeout, retry_for) = (Duration::from_secs(1), Duration::from_millis(1));
    let remote = Remote::new(RemoteOptions { timeout, retry_for, ..options(CacheFolder::Off) }).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    assert!(remote.on_retry(move |retry: &Retry| tell.lock().unwrap().push(retry.clone())));
    assert!(matches!(reason(Table::open_url(&url, &remote).unwrap_err()), RemoteError::GaveUp { attempts: 1, .. }));
    let told = told.lock().unwrap();
    assert!(told.len() == 1 && told[0].attempts == 1 && told[0].problem.contains("not answered for 500ms"), "{told:?}");
}

/// Every request fails the first time.
#[test]
fn what_passes_is_tried_again() {
    let faults = [
        Fault::Status(429, "Retry-After: 0\r\n", ""),
        Fault::Status(500, "", "<Error><Code>InternalError</Code></Error>"),
        Fault::Status(503, "", "<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"),
        Fault::Cut,
        Fault::ShortRange,
        Fault::WrongByte,
    ];
    for fault in faults {
        let (server, url) = serving_ramp();
        let mut seen = std::collections::BTreeSet::new();
        let planned = fault.clone();
        server.misbehave(move |request, n| {
            let is_first = seen.insert(request.headers.get("range").cloned());
            // With a wrong byte, the header is that of another table.
            let is_header = matches!(planned, Fault::WrongByte) && n == 0;
            (is_first && !is_header).then(|| planned.clone())
        });
        let remote = without_cache();
        let table = Table::open_url(&url, &remote).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        check_ramp(&table, N_ROWS);
        let report = remote.report();
        assert!(report.n_requests > 6, "{fault:?}: {report:?}");
    }
}

/// An outage that takes more attempts than could be counted in advance: the time is the limit.
#[test]
fn an_outage_that_is_shorter_than_the_time_passes() {
    let (server, url) = serving_ramp();
    server.misbehave(|_, n| (n < 9).then_some(Fault::Status(503, "", "")));
    let remote = without_cache();
    StreamedTable::open_url(&url, &ReadAhead::new(0), &remote).unwrap();
    assert_eq!(remote.report().n_retries, 9);
    // A server that hangs is not given more time than all attempts together.
    server.misbehave(|_, _| Some(Fault::Silence));
    let brief =
        RemoteOptions { timeout: Duration::from_secs(3600), retry_for: Duration::from_millis(1), ..options(CacheFolder::Off) };
    assert!(matches!(reason(open_error(&server, brief)), RemoteError::GaveUp { attempts: 1, .. }));
}

/// As `rclone serve s3` does.
#[test]
fn a_range_with_the_status_of_a_whole_object_is_one() {
    let (server, url) = serving_ramp();
    server.misbehave(|_, _| Some(Fault::RangeWithoutStatus));
    check_ramp(&Table::open_url(&url, &without_cache()).unwrap(), N_ROWS);
}

#[test]
fn web_servers_may_redirect() {
    let (server, _) = serving_ramp();
    server.misbehave(|request, _| (request.path == "/moved").then_some(Fault::Status(302, "Location: /t.safetensors\r\n", "")));
    let table = Table::open_url(&server.url("/moved"), &without_cache()).unwrap();
    check_ramp(&table, N_ROWS);
    server.misbehave(|_, _| Some(Fault::Status(302, "Location: /t.safetensors\r\n", "")));
    assert!(Table::open_url(&server.url("/moved"), &without_cache()).is_err(), "for ever");
}

#[test]
fn the_server_says_how_long_to_wait() {
    let (server, url) = serving_ramp();
    server.misbehave(|_, n| (n == 0).then_some(Fault::Status(429, "Retry-After: 1\r\n", "")));
    let start = Instant::now();
    StreamedTable::open_url(&url, &ReadAhead::new(0), &without_cache()).unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_program_is_told_what_is_tried_again() {
    let (server, url) = serving_ramp();
    server.misbehave(|_, n| (n < 2).then_some(Fault::Status(503, "", "")));
    let (remote, told) = (without_cache(), Arc::new(Mutex::new(Vec::new())));
    let tell = told.clone();
    assert!(remote.on_retry(move |retry: &Retry| tell.lock().unwrap().push(retry.clone())));
    assert!(!remote.clone().on_retry(|_| unreachable!("it was set before")));
    let with_secrets = url.replace("://", "://me:pass@") + "?sig=secret";
    StreamedTable::open_url(&with_secrets, &ReadAhead::new(0), &remote).unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.iter().map(|retry| retry.attempts).collect::<Vec<_>>(), [1, 2]);
    for retry in &*told {
        assert_eq!(retry.url, format!("{url}?…"));
        assert!(retry.problem.contains("503") && retry.pause > Duration::ZERO, "{retry:?}");
    }
    assert!(told[1].elapsed >= told[0].pause, "{told:?}");
}

/// The first answer for each range has a wrong byte, but not that with the header.
#[test]
fn damaged_blocks_are_counted_and_told() {
    let (server, url) = serving_ramp();
    let mut seen = std::collections::BTreeSet::new();
    server.misbehave(move |request, n| (seen.insert(request.range()) && n > 0).then_some(Fault::WrongByte));
    let (remote, told) = (without_cache(), Arc::new(Mutex::new(Vec::new())));
    let tell = told.clone();
    assert!(remote.on_retry(move |retry: &Retry| tell.lock().unwrap().push(retry.clone())));
    check_ramp(&Table::open_url(&url, &remote).unwrap(), N_ROWS);
    let told = told.lock().unwrap();
    assert!(!told.is_empty() && remote.report().n_retries == told.len() as u64, "{told:?}");
    assert!(told.iter().all(|retry| retry.url == url && retry.problem.contains("damaged")), "{told:?}");
}

#[test]
fn what_does_not_pass_is_an_error() {
    let (server, _) = serving_ramp();
    let for_ms = |ms| RemoteOptions { retry_for: Duration::from_millis(ms), ..options(CacheFolder::Off) };
    let few = || for_ms(100);
    server.misbehave(|_, _| Some(Fault::Status(503, "", "<Error><Code>SlowDown</Code><Message>Please.</Message></Error>")));
    let error = open_error(&server, few());
    assert!(error.to_string().contains("SlowDown: Please"), "{error}");
    assert!(error.to_string().contains("`RemoteOptions`"), "{error}");
    assert!(matches!(reason(error), RemoteError::GaveUp { attempts: 2.., .. }));
    let error = open_error(&server, RemoteOptions { more_retries: "--patience".to_owned(), ..few() });
    assert!(error.to_string().contains("--patience") && !error.to_string().contains("RemoteOptions"), "{error}");

    server.misbehave(|_, _| Some(Fault::Status(429, "Retry-After: 1000\r\n", "")));
    assert!(matches!(reason(open_error(&server, few())), RemoteError::GaveUp { attempts: 1, .. }), "there is no time to wait");

    server.misbehave(|_, _| Some(Fault::Silence));
    let error = open_error(&server, RemoteOptions { timeout: Duration::from_millis(150), ..for_ms(200) });
    assert!(error.to_string().contains("did not answer for 150ms"), "{error}");

    server.misbehave(|_, _| Some(Fault::Drip));
    let error = open_error(&server, RemoteOptions { timeout: Duration::from_millis(150), ..for_ms(200) });
    assert!(error.to_string().contains("2 attempts") && error.to_string().contains("the server sent"), "{error}");

    server.misbehave(|_, _| Some(Fault::Status(204, "", "")));
    assert!(open_error(&server, few()).to_string().contains("204 No Content, expected some bytes"));
    server.misbehave(|_, _| Some(Fault::Status(416, "Content-Range: bytes */0\r\n", "")));
    assert!(open_error(&server, few()).to_string().contains("the file is empty"));
    server.misbehave(|_, _| Some(Fault::Status(200, "", "")));
    let error = open_error(&server, few());
    assert!(error.to_string().contains("the file has 0"), "{error}");

    server.misbehave(|_, n| (n > 0).then_some(Fault::Cut));
    let error = open_error(&server, few());
    assert!(error.to_string().contains("closed the connection"), "{error}");

    server.misbehave(|_, n| (n > 0).then_some(Fault::ShortRange));
    assert!(open_error(&server, few()).to_string().contains("was requested"));

    server.misbehave(|_, _| Some(Fault::WholeObject));
    assert_eq!(reason(open_error(&server, few())), RemoteError::NoRanges);

    server.misbehave(|_, _| Some(Fault::Status(200, "Content-Type: text/html; charset=utf-8\r\n", "<html>Log in</html>")));
    let error = open_error(&server, few());
    assert!(error.to_string().contains("sends a page for browsers"), "{error}");

    server.misbehave(|_, _| Some(Fault::Status(403, "", "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>")));
    let error = open_error(&server, few());
    assert!(error.to_string().contains("AccessDenied: No"), "{error}");
    assert!(matches!(reason(error), RemoteError::Refused { .. }));
    assert_eq!(server.requests().len(), 1, "it is not tried again");

    server.misbehave(|_, _| Some(Fault::Status(400, "", "strange")));
    let error = open_error(&server, few());
    assert!(
        matches!(&error, Error::Remote { reason: RemoteError::Failed { .. }, .. }) && error.to_string().contains("strange"),
        "{error}"
    );

    server.misbehave(|request, _| (request.headers["range"] != "bytes=0-65535").then_some(Fault::WrongByte));
    let error = open_error(&server, few());
    assert!(matches!(&error, Error::Checksum { .. }) && error.to_string().contains("t.safetensors"), "{error}");
    assert!(error.to_string().contains("the server sent damaged bytes 3 times"), "{error}");

    server.misbehave(|_, _| None);
    server.remove("/t.safetensors");
    assert_eq!(reason(open_error(&server, few())), RemoteError::NotFound);
    let address = server.url("/t.safetensors");
    drop(server);
    let error = Table::open_url(&address, &Remote::new(few()).unwrap()).unwrap_err();
    assert!(matches!(reason(error), RemoteError::GaveUp { attempts: 2.., .. }), "no server listens");
}

#[test]
fn a_program_that_is_to_stop_does_not_wait_for_a_server() {
    let (server, url) = serving_ramp();
    let long = Duration::from_secs(3600);
    let patient = || RemoteOptions { timeout: long, retry_for: long, ..options(CacheFolder::Off) };
    let stopped = || {
        let remote = Remote::new(patient()).unwrap();
        assert!(remote.stop_reading_if(|| true), "it is the first call");
        assert!(!remote.stop_reading_if(|| false), "only the first call counts");
        remote
    };
    let table = Table::open_url(&url, &stopped()).expect("a server that answers is read");
    check_ramp(&table, N_ROWS);
    for is_silent in [true, false] {
        let busy = || Fault::Status(503, "Retry-After: 600\r\n", "");
        server.misbehave(move |_, _| Some(if is_silent { Fault::Silence } else { busy() }));
        let remote = stopped();
        let error = Table::open_url(&url, &remote).expect_err("it does not answer");
        assert!(matches!(reason(error), RemoteError::Stopped), "silent: {is_silent}");
        assert_eq!(remote.report().n_stopped, 1, "silent: {is_silent}");
    }
}

#[test]
fn an_object_that_is_no_table_is_an_error() {
    let server = Server::start();
    for bytes in [vec![], vec![1; 7], b"<html>this is a page, not a table</html>".to_vec(), ramp()[..100_000].to_vec()] {
        server.put("/t.safetensors", bytes);
        let error = open_error(&server, options(CacheFolder::Off));
        assert!(matches!(&error, Error::Format { .. }) && error.to_string().contains(&server.url("/t.safetensors")), "{error}");
        let remote = without_cache();
        assert!(ShardedTable::open_url(&server.url("/t.safetensors/i.json"), &remote).is_err());
    }
}

/// Rows of two tables are never mixed, whatever the server says about their versions.
#[test]
fn a_table_that_is_replaced_is_an_error() {
    for names in [Names::Tag, Names::WeakTag, Names::Time] {
        let (server, url) = serving_ramp();
        server.set_names(names);
        let remote = without_cache();
        let table = StreamedTable::open_url(&url, &ReadAhead::new(0), &remote).unwrap();
        // The same length and the same header.
        let mut other = ramp().to_vec();
        let at = other.len() / 2;
        other[at] ^= 1;
        server.put("/t.safetensors", other);
        let error = table.verify().unwrap_err();
        assert!(error.to_string().contains("replaced while it was read"), "{names:?}: {error}");
        assert!(matches!(reason(error), RemoteError::Changed { .. }));
    }
    // Without any name, the checksums tell.
    let (server, url) = serving_ramp();
    server.set_names(Names::None);
    let table = StreamedTable::open_url(&url, &ReadAhead::new(0), &without_cache()).unwrap();
    let mut other = ramp().to_vec();
    let at = other.len() / 2;
    other[at] ^= 1;
    server.put("/t.safetensors", other);
    assert!(matches!(table.verify(), Err(Error::Checksum { .. })));
}

/// Parts of two versions would make a file that never was.
#[test]
fn an_object_without_a_name_is_copied_by_one_request() {
    let (server, url) = serving_ramp();
    let folder = tempfile::tempdir().unwrap();
    let whole = format!("bytes=0-{}", ramp().len() - 1);
    for names in [Names::None, Names::Time] {
        server.set_names(names);
        server.misbehave(|_, _| None);
        let remote = without_cache();
        remote.download(&url, folder.path().join("t")).unwrap();
        assert!(std::fs::read(folder.path().join("t")).unwrap() == *ramp(), "{names:?}");
        let n_whole = || server.requests().iter().filter(|request| request.headers["range"] == whole).count();
        assert_eq!((server.requests().len() == 2, n_whole()), (names == Names::None, usize::from(names == Names::None)));
        server.misbehave(|_, _| None);
        let read = RemoteFolder::at(&server.url("/"), &remote).unwrap().read("t.safetensors").unwrap();
        assert!(read.as_ref() == Some(&*ramp()), "{names:?}");
        assert_eq!(n_whole(), usize::from(names == Names::None), "{names:?}");
    }
    let first: &str = "x".repeat(64 << 10).leak();
    server.misbehave(|_, _| Some(Fault::Status(206, "Content-Range: bytes 0-65535/9999999999\r\n", first)));
    let error = without_cache().download(&url, folder.path().join("t")).unwrap_err();
    assert!(error.to_string().contains("ETag") && error.to_string().contains("another program"), "{error}");
    assert_eq!(reason(error), RemoteError::Unnamed { n_bytes: 9_999_999_999 });
}

#[test]
fn secrets_are_not_printed() {
    let (server, _) = serving_ramp();
    let remote = without_cache();
    let url = format!("http://me:s3cret@{}/t.safetensors?sig=s3cret", server.address);
    let table = StreamedTable::open_url(&url, &ReadAhead::new(0), &remote).unwrap();
    assert!(!format!("{table:?} {remote:?}").contains("s3cret"), "{table:?}");
    let request = &server.requests()[0];
    assert_eq!(request.query, "sig=s3cret", "the server gets it");
    assert_eq!(request.headers["authorization"], "Basic bWU6czNjcmV0");

    let mut errors = vec![];
    for fault in [
        Fault::Status(403, "", "<Error><Message>http://x/?sig=s3cret is wrong</Message></Error>"),
        Fault::Cut,
        Fault::Status(404, "", ""),
    ] {
        server.misbehave(move |_, _| Some(fault.clone()));
        errors.push(Table::open_url(&url, &remote).unwrap_err());
    }
    for url in
        ["s3://me:s3cret@bucket/t", "https://me:s3cret@/t?sig=s3cret", "ftp://me:s3cret@host", "http://me:s3cret@host:99999999/"]
    {
        errors.push(Table::open_url(url, &remote).unwrap_err());
    }
    for error in errors {
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}

#[test]
fn urls_that_lead_nowhere_are_errors() {
    let remote = without_cache();
    let cases = [
        ("table.safetensors", "is a path; open it as one"),
        ("ftp://host/t", "use http, https, s3"),
        ("s3:///t.safetensors", "no host or bucket"),
        ("file://host.example/t", "file:///PATH"),
        ("s3://me@bucket/t", "leave them out"),
    ];
    for (url, expected) in cases {
        let error = Table::open_url(url, &remote).unwrap_err();
        assert!(error.to_string().contains(expected), "{url}: {error}");
    }
    let zero = Remote::new(RemoteOptions { parallel: 0, ..options(CacheFolder::Off) }).unwrap_err();
    assert!(zero.to_string().contains("`parallel` is 0"), "{zero}");
}

/// Threads that wait for rows get the error of the thread that read them ahead, and do not request them again.
#[test]
fn a_failure_to_read_ahead_is_the_error_of_all_that_wait() {
    let (server, url) = serving_ramp();
    let table = StreamedTable::open_url(&url, &ReadAhead::new(64 << 20), &without_cache()).unwrap();
    server.set_link(1e9, Duration::from_millis(500));
    server.misbehave(|_, _| Some(Fault::Status(503, "Retry-After: 1000\r\n", "")));
    table.hint(RowSelection::Range(0..100), Hint::WillNeed);
    let gather = || {
        let (mut features, mut labels) = ([0.0; 200], [0.0; 100]);
        let error = table.gather(RowSelection::Range(0..100), RowBuffers::new(&mut features, &mut labels)).unwrap_err();
        assert!(matches!(reason(error), RemoteError::GaveUp { attempts: 1, .. }));
    };
    std::thread::scope(|scope| (0..3).for_each(|_| _ = scope.spawn(gather)));
    assert_eq!(server.requests().len(), 1, "{:?}", server.requests());
    server.misbehave(|_, _| None);
    let (mut features, mut labels) = ([0.0; 200], [0.0; 100]);
    table.gather(RowSelection::Range(0..100), RowBuffers::new(&mut features, &mut labels)).expect("the server answers again");
}

#[test]
fn a_table_that_is_dropped_does_not_wait_for_a_server() {
    let (server, url) = serving_ramp();
    let long = Duration::from_secs(3600);
    let remote = Remote::new(RemoteOptions { timeout: long, retry_for: long, ..options(CacheFolder::Off) }).unwrap();
    let (table, received) =
        (StreamedTable::open_url(&url, &ReadAhead::new(64 << 20), &remote).unwrap(), std::sync::mpsc::channel());
    let arrived = received.0;
    server.misbehave(move |_, _| {
        _ = arrived.send(());
        Some(Fault::Silence)
    });
    table.hint(RowSelection::Range(0..100), Hint::WillNeed);
    received.1.recv().expect("a request is on its way");
    drop(table);
}

/// A function that a program gives to its connections runs on the threads that read ahead.
#[test]
fn a_panic_while_reading_ahead_is_an_error() {
    let server = Server::start();
    server.put("/t", ramp().to_vec());
    let remote = Remote::new(RemoteOptions { memory_bytes: 0, ..options(CacheFolder::Off) }).unwrap();
    let table = StreamedTable::open_url(&server.url("/t"), &ReadAhead::new(64 << 20), &remote).unwrap();
    assert!(remote.on_retry(|_| panic!("on purpose")));
    server.misbehave(|_, n_before| (n_before < 1).then_some(Fault::Status(503, "", "")));
    let rows: Vec<u32> = (0..100).collect();
    let n_cols = table.n_cols();
    let (mut features, mut labels) = (vec![0.0; 100 * n_cols], [0.0; 100]);
    table.hint(RowSelection::Range(0..100), Hint::WillNeed);
    let mut gather = || table.gather(RowSelection::Numbers(&rows), RowBuffers::new(&mut features, &mut labels));
    let error = gather().unwrap_err().to_string();
    assert!(error.contains("/t") && error.contains("panicked"), "{error}");
    // Once: the rows are read again.
    gather().unwrap();
}
