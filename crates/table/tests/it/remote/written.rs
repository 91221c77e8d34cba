//! Tables that are written to a store.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use brisk_loader::RowSource as _;
use brisk_table::{
    CacheFolder, Categorical, ColumnOptions, CsvOptions, Destination, Error, ReadAhead, Remote, RemoteError, RemoteFolder,
    RemoteOptions, Schema, ShardSize, ShardedTable, ShardedWriter, StreamedTable, Table, copy_table, import,
    import_with_progress,
};

use super::options;
use super::server::{Fault, Server};

const TABLE: &str = "s3://bucket/tables/t";
const ADDRESS: &str = "BRISK_TABLE_TEST_ADDRESS";
const STAGING: &str = "BRISK_TABLE_TEST_STAGING";

fn s3(server: &Server, staging: &Path) -> RemoteOptions {
    s3_at(&server.address.to_string(), staging)
}

fn s3_at(address: &str, staging: &Path) -> RemoteOptions {
    let settings = [
        ("aws_endpoint", format!("http://{address}")),
        ("aws_allow_http", "true".to_owned()),
        ("aws_access_key_id", "key".to_owned()),
        ("aws_secret_access_key", "s3cret".to_owned()),
        ("aws_region", "here".to_owned()),
    ];
    RemoteOptions {
        settings: settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        staging: Some(staging.to_owned()),
        ..options(CacheFolder::Off)
    }
}

/// `n_rows` rows of 1 KiB.
fn write(remote: &Remote, scale: f32, n_rows: usize, shard_rows: usize) -> Result<usize, Error> {
    let mut writer =
        ShardedWriter::create_url("s3://bucket/tables/t", Schema::shaped(&[255]), ShardSize::Rows(shard_rows), remote)?;
    let rows: Vec<f32> = (0..n_rows).flat_map(|i| [i as f32 * scale; 255]).collect();
    writer.push(&rows, &vec![scale; n_rows])?;
    writer.finish()
}

fn shards(server: &Server) -> Vec<String> {
    server.names_of_objects().into_iter().filter(|name| !name.ends_with(".json")).collect()
}

/// The number of files in a staging folder, without that of its number.
fn staged(staging: &Path) -> usize {
    fs::read_dir(staging).unwrap().filter(|entry| entry.as_ref().unwrap().file_name() != ".staging-number").count()
}

/// Not a test by itself: run in a process that the test below kills. Sends two shards of a table, and waits.
#[test]
fn child_that_sends_shards() {
    let (Ok(address), Ok(staging)) = (env::var(ADDRESS), env::var(STAGING)) else { return };
    let remote = Remote::new(s3_at(&address, Path::new(&staging))).unwrap();
    let mut writer = ShardedWriter::create_url(TABLE, Schema::shaped(&[2]), ShardSize::Rows(5), &remote).unwrap();
    writer.push(&[1.0_f32; 2 * 12], &[0.0_f32; 12]).unwrap();
    writeln!(std::io::stdout(), "sent").unwrap();
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn the_shards_of_a_killed_writer_are_removed_by_the_next() {
    let (server, staging, elsewhere) = (Server::start(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    server.set_modified("2100-01-01T00:00:00Z");
    let kill_one = || {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "remote::written::child_that_sends_shards", "--test-threads", "1", "--nocapture"]);
        child.env(ADDRESS, server.address.to_string()).env(STAGING, staging.path());
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        said.lines().find(|line| line.as_ref().unwrap().contains("sent")).unwrap().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let remote = Remote::new(s3(&server, staging.path())).unwrap();
    let other_machine = Remote::new(s3(&server, elsewhere.path())).unwrap();
    let create = |url, remote| ShardedWriter::create_url(url, Schema::shaped(&[2]), ShardSize::Rows(5), remote).unwrap();
    write(&remote, 1.0, 10, 10).unwrap();
    kill_one();
    assert_eq!(shards(&server).len(), 3, "the table, and what was sent");
    assert!(staged(staging.path()) > 0);
    // Another machine cannot know that the writer is gone.
    write(&other_machine, 2.0, 10, 10).unwrap();
    assert_eq!(shards(&server).len(), 3);
    // Neither those of a writer that runs, nor those of another table are removed.
    create("s3://bucket/tables/t/other.json", &other_machine).finish().unwrap();
    let mut running = create(TABLE, &remote);
    running.push(&[1.0_f32; 2 * 6], &[0.0_f32; 6]).unwrap();
    assert_eq!(shards(&server).len(), 3, "two tables, and what was sent now");
    write(&remote, 3.0, 10, 10).unwrap();
    assert_eq!(shards(&server).len(), 3);
    running.finish().unwrap();
    let scale = |url| ShardedTable::open_url(url, &remote).map(|table| table.n_rows()).unwrap();
    assert_eq!((scale(TABLE), scale("s3://bucket/tables/t/other.json")), (6, 0));
    // Once they are old, those of other machines are.
    kill_one();
    server.set_modified("2022-01-01T00:00:00Z");
    write(&other_machine, 4.0, 10, 10).unwrap();
    assert_eq!((shards(&server).len(), server.names_of_objects().len()), (2, 4), "two tables");
    drop(create(TABLE, &remote));
    assert_eq!((staged(staging.path()), staged(elsewhere.path())), (0, 0));
}

#[test]
fn what_is_written_to_s3_is_read_from_it() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    let remote = Remote::new(s3(&server, staging.path())).unwrap();
    // The first shard is written in two parts, the second at once.
    assert_eq!(write(&remote, 1.0, 8_700, 8_300).unwrap(), 8_700);
    assert!(server.requests().iter().any(|request| request.query.contains("partNumber=2")), "in parts");
    assert!(server.requests().iter().all(|request| request.headers.contains_key("authorization")), "signed");
    assert_eq!((shards(&server).len(), server.n_uploads()), (2, 0));
    let table = ShardedTable::open_url("s3://bucket/tables/t", &remote).unwrap();
    table.verify().unwrap();
    assert_eq!((table.n_rows(), table.rows::<f32>(8_500..8_501).unwrap()[0]), (8_700, 8_500.0));
    let first = shards(&server)[0].replace("/bucket/", "s3://bucket/");
    assert_eq!(Table::open_url(&first, &remote).unwrap().n_rows(), 8_300, "each shard is a table");

    // Another table takes its place, and nothing of the old one stays.
    let old = shards(&server);
    write(&remote, 2.0, 10, 10).unwrap();
    assert_eq!(shards(&server).len(), 1);
    assert!(!old.contains(&shards(&server)[0]));
    assert_eq!(ShardedTable::open_url("s3://bucket/tables/t/", &remote).unwrap().rows::<f32>(1..2).unwrap()[0], 2.0);
    assert_eq!(staged(staging.path()), 0, "files are removed");
}

/// A reader sees the old table until all of the new one is there.
#[test]
fn a_table_appears_as_a_whole() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    let remote = Remote::new(s3(&server, staging.path())).unwrap();
    write(&remote, 1.0, 10, 10).unwrap();
    let scale = || ShardedTable::open_url("s3://bucket/tables/t", &remote).unwrap().rows::<f32>(1..2).unwrap()[0];
    let mut writer =
        ShardedWriter::create_url("s3://bucket/tables/t", Schema::shaped(&[2]), ShardSize::Rows(5), &remote).unwrap();
    for i in 0..12 {
        writer.push(&[i as f32 * 2.0; 2], &[0.0_f32]).unwrap();
        assert_eq!(scale(), 1.0);
    }
    assert_eq!(shards(&server).len(), 3, "two shards of the new table");
    drop(writer);
    assert_eq!((shards(&server).len(), scale()), (1, 1.0), "they are removed");

    // Each request fails once, and then one for good.
    let mut n_failures = 0;
    server.misbehave(move |request, _| {
        n_failures += usize::from(request.method != "GET");
        (request.method != "GET" && n_failures % 2 == 1).then_some(Fault::Status(500, "", ""))
    });
    write(&remote, 3.0, 8_700, 8_300).unwrap();
    assert_eq!(scale(), 3.0);
    for (method, part_of_query) in [("PUT", "partNumber=2"), ("POST", "uploads"), ("POST", "uploadId"), ("PUT", "")] {
        server.misbehave(move |request, _| {
            let is_it = request.method == method
                && (request.query.contains(part_of_query) && !part_of_query.is_empty()
                    || part_of_query.is_empty() && request.path.ends_with(".json"));
            is_it.then_some(Fault::Status(403, "", "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"))
        });
        let error = write(&remote, 4.0, 8_700, 8_300).unwrap_err();
        assert!(
            error.to_string().contains("AccessDenied") && error.to_string().contains("s3://bucket/tables/t/table"),
            "{error}"
        );
        server.misbehave(|_, _| None);
        assert_eq!((shards(&server).len(), server.n_uploads(), scale()), (2, 0, 3.0), "{method} {part_of_query}");
    }
    assert_eq!(staged(staging.path()), 0);
}

/// The index was written, but the answer was lost.
#[test]
fn a_lost_answer_does_not_cost_the_table() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    let (timeout, retry_for) = (Duration::from_millis(200), Duration::from_millis(300));
    let remote = Remote::new(RemoteOptions { timeout, retry_for, ..s3(&server, staging.path()) }).unwrap();
    write(&remote, 1.0, 10, 10).unwrap();
    let parts = server.names_of_objects();
    // Only the answers to two requests are lost, not those to the one that reads the index.
    server.misbehave(move |request, _| (request.method == "PUT" && request.path.ends_with(".json")).then_some(Fault::Silence));
    let error = write(&remote, 2.0, 10, 10).unwrap_err();
    assert!(matches!(error, Error::Remote { reason: RemoteError::GaveUp { .. }, .. }), "{error}");
    assert_eq!(server.names_of_objects(), parts, "it was not written, so that its shards are removed");
}

#[test]
fn what_cannot_be_written_is_said_at_once() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    let create = |url: &str, options| {
        let remote = Remote::new(options).unwrap();
        ShardedWriter::create_url(url, Schema::shaped(&[2]), ShardSize::Rows(5), &remote).map(drop).unwrap_err()
    };
    let error = create(&server.url("/t"), s3(&server, staging.path()));
    assert!(matches!(error, Error::Remote { reason: RemoteError::ReadOnly { .. }, .. }), "{error}");
    let setting = |name: &str| RemoteOptions { settings: vec![(name.to_owned(), "x".to_owned())], ..options(CacheFolder::Off) };
    for name in ["aws_acces_key", "endpoint"] {
        let error = create("s3://bucket/t", setting(name));
        assert!(
            matches!(error, Error::Remote { reason: RemoteError::Setting { .. }, .. }) && error.to_string().contains(name),
            "{error}"
        );
    }
}

#[test]
fn errors_of_s3_that_pass_are_tried_again_and_another_region_is_named() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    let remote = Remote::new(s3(&server, staging.path())).unwrap();
    let late = "<Error><Code>RequestTimeout</Code><Message>Your socket connection was not read from.</Message></Error>";
    server.misbehave(move |_, n| (n % 2 == 0).then_some(Fault::Status(400, "", late)));
    write(&remote, 1.0, 10, 10).unwrap();
    server.misbehave(move |_, n| (n % 2 == 0).then_some(Fault::Status(400, "", late)));
    ShardedTable::open_url(TABLE, &remote).unwrap();

    let moved = "<Error><Code>PermanentRedirect</Code><Message>Use another endpoint.</Message></Error>";
    for (headers, expected) in [("x-amz-bucket-region: eu-west-3\r\n", "AWS_REGION to eu-west-3"), ("", "AWS_REGION to that of")]
    {
        server.misbehave(move |_, _| Some(Fault::Status(301, headers, moved)));
        let error = ShardedTable::open_url(TABLE, &remote).unwrap_err().to_string();
        assert!(error.contains("another region") && error.contains(expected), "{error}");
    }
}

/// Machines of a cloud find their credentials at an address, which has none here.
#[test]
fn missing_credentials_are_said() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    let mut options = s3(&server, staging.path());
    options.settings.retain(|(name, _)| !name.contains("access_key"));
    options.settings.push(("aws_metadata_endpoint".to_owned(), server.url("")));
    if std::env::vars().any(|(name, _)| name.starts_with("AWS_")) {
        return crate::not_run("missing credentials", "the environment has some");
    }
    let error = Table::open_url("s3://bucket/t.safetensors", &Remote::new(options).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Remote { reason: RemoteError::NoCredentials { .. }, .. }), "{error}");
    assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
}

/// Writes two shards, the first in two parts, and reads them.
#[cfg(any(feature = "gs", feature = "az"))]
#[track_caller]
fn check_store(server: &Server, url: &str, settings: &[(&str, &str)]) {
    let staging = tempfile::tempdir().unwrap();
    let remote = Remote::new(RemoteOptions {
        settings: settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        staging: Some(staging.path().to_owned()),
        ..options(CacheFolder::Off)
    })
    .unwrap();
    let mut writer = ShardedWriter::create_url(url, Schema::shaped(&[255]), ShardSize::Rows(8_300), &remote).unwrap();
    let rows: Vec<f32> = (0..8_700).flat_map(|i| [i as f32; 255]).collect();
    writer.push(&rows, &[0.0_f32; 8_700]).unwrap();
    writer.finish().unwrap();
    assert_eq!(server.n_uploads(), 0, "all parts are used");
    let is_part = |query: &str| query.contains("partNumber=2") || query.contains("comp=block&");
    assert!(server.requests().iter().any(|request| is_part(&request.query)), "in parts");
    let table = ShardedTable::open_url(url, &remote).unwrap();
    table.verify().unwrap();
    assert_eq!((table.n_shards(), table.rows::<f32>(8_500..8_501).unwrap()[0]), (2, 8_500.0));
}

#[cfg(feature = "gs")]
#[test]
fn the_stores_of_google_are_read_and_written() {
    let server = Server::start();
    let key = format!(
        r#"{{"private_key":"x","private_key_id":"x","client_email":"x","disable_oauth":true,"gcs_base_url":"http://{}"}}"#,
        server.address
    );
    check_store(&server, "gs://bucket/t", &[("google_service_account_key", &key), ("google_allow_http", "true")]);
}

#[cfg(feature = "az")]
#[test]
fn the_stores_of_azure_are_read_and_written() {
    let server = Server::start();
    let settings = [
        ("azure_storage_account_name", "account"),
        ("azure_storage_account_key", "a2V5"),
        ("azure_storage_endpoint", &server.url("")),
        ("azure_allow_http", "true"),
    ];
    check_store(&server, "az://container/t", &settings);
}

#[test]
fn files_are_copied() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let remote = Remote::new(s3(&server, folder.path())).unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let bytes: Vec<u8> = (0..9_000_000_u32).map(|i| (i >> 12) as u8).collect();
    for bytes in [&bytes[..], b"", b"x"] {
        fs::write(&from, bytes).unwrap();
        remote.upload(&from, "s3://bucket/copy").unwrap();
        remote.download("s3://bucket/copy", &to).unwrap();
        assert!(fs::read(&to).unwrap() == bytes, "{} bytes differ", bytes.len());
    }
    server.misbehave(|request, n| (n > 0 && request.method == "GET").then_some(Fault::WholeObject));
    assert!(remote.upload(&from, &server.url("/copy")).is_err() && remote.check_upload(&server.url("/copy")).is_err());
    assert!(remote.download("s3://bucket/none", &to).is_err());
    assert_eq!(fs::read(&to).unwrap(), b"x", "it is as it was");
}

#[test]
fn objects_of_a_folder_are_written_read_and_removed() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let remote = Remote::new(s3(&server, folder.path())).unwrap();
    let here = format!("file://{}/new/runs", folder.path().display());
    let file = folder.path().join("file");
    // In two parts where there are parts.
    let bytes: Vec<u8> = (0..9_000_000_u32).map(|i| (i >> 12) as u8).collect();
    for url in ["s3://bucket/runs", &server.url("/runs?sig=s3cret"), &here].into_iter().take(if cfg!(unix) { 3 } else { 2 }) {
        let objects = RemoteFolder::at(url, &remote).unwrap();
        for bytes in [&bytes[..], b"", b"x"] {
            fs::write(&file, bytes).unwrap();
            objects.put(&file, "a.b").unwrap();
            assert!(objects.read("a.b").unwrap().as_deref() == Some(bytes), "{url}: {} bytes differ", bytes.len());
            for part in [0..0, 0..1, 7..5_000_000, 8_999_999..u64::MAX, 9_000_000..9_000_001] {
                let [start, end] = [part.start, part.end].map(|at| bytes.len().min(at as usize));
                let (found, n_bytes) = objects.read_part("a.b", part.clone()).unwrap().unwrap();
                assert_eq!(n_bytes, bytes.len() as u64, "{url}: bytes of the object");
                assert!(found == bytes[start..end], "{url}: bytes {part:?} of {n_bytes} differ");
            }
        }
        assert!(!objects.url_of("a.b").contains("s3cret"), "{}", objects.url_of("a.b"));
        assert_eq!(objects.read("none").unwrap(), None, "{url}");
        assert_eq!(objects.read_part("none", 0..1).unwrap(), None, "{url}");
        for _ in 0..2 {
            objects.delete("a.b").unwrap();
            assert_eq!(objects.read("a.b").unwrap(), None, "{url}");
        }
        for name in ["../a", "a/b", "", ".."] {
            assert!(
                objects.put(&file, name).is_err() && objects.read(name).is_err() && objects.delete(name).is_err(),
                "{url}: {name}"
            );
        }
    }
    assert!(server.names_of_objects().is_empty() && server.n_uploads() == 0, "nothing is left");
    assert!(RemoteFolder::at("ftp://h/runs", &remote).is_err(), "there is no such store");
}

#[test]
fn a_web_server_that_takes_no_objects_is_an_error_of_the_object() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let objects = RemoteFolder::at(&server.url("/runs"), &Remote::new(s3(&server, folder.path())).unwrap()).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for status in [403, 405, 501] {
        server.misbehave(move |request, _| (request.method != "GET").then_some(Fault::Status(status, "", "")));
        for error in [objects.put(&file, "a").unwrap_err(), objects.delete("a").unwrap_err()] {
            assert!(matches!(error, Error::Remote { .. }) && error.to_string().contains("/runs/a"), "{status}: {error}");
        }
    }
}

/// By the same importer, to an object and to shards; one shard at a time is on this machine, and nothing after that.
#[test]
fn imports_go_to_a_store() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    let remote = Remote::new(s3(&server, staging.path())).unwrap();
    let [csv, file] = ["rows.csv", "t.safetensors"].map(|name| staging.path().join(name));
    let text: String = (0..20_000).map(|i| format!("{}.5,{},c{}\n", i % 2, i * i % 1000, i * i / 4_000 % 7)).collect();
    fs::write(&csv, format!("y,x,c\n{text}")).unwrap();
    let columns = ColumnOptions { categorical: Categorical::Auto, ..ColumnOptions::default() };
    let options = CsvOptions { columns, ..CsvOptions::default() };
    let report = import(&csv, &file, &options).unwrap();
    let local = Table::open(&file).unwrap();

    let (object, folder) = ("s3://bucket/rows.safetensors", "s3://bucket/rows");
    import_with_progress(&csv, Destination::url(object, &remote).unwrap(), &options, |_| ()).unwrap();
    let table = Table::open_url(object, &remote).unwrap();
    assert_eq!((table.fingerprint(), table.statistics()), (local.fingerprint(), local.statistics()));
    let shards = Destination::url(folder, &remote).unwrap().in_shards(ShardSize::Rows(3_000));
    let mut most = 0;
    let imported = import_with_progress(&csv, &shards, &options, |_| {
        let shards = fs::read_dir(staging.path()).unwrap().map(|entry| entry.unwrap());
        let shards = shards.filter(|entry| entry.file_name().to_string_lossy().starts_with("table-"));
        most = shards.map(|entry| entry.metadata().unwrap().len()).sum::<u64>().max(most);
    });
    assert_eq!(imported.unwrap().n_rows, report.n_rows);
    assert!(most < fs::metadata(&file).unwrap().len() / 2, "{most} bytes were on this machine");
    assert_eq!(server.names_of_objects().len(), 1 + 7 + 1, "the object, seven shards and an index");
    let sharded = ShardedTable::open_url(folder, &remote).unwrap();
    assert_eq!((sharded.n_rows(), sharded.dictionaries()), (20_000, local.dictionaries()));
    assert_eq!(sharded.rows::<f32>(3_000..6_000).unwrap(), local.rows::<f32>(3_000..6_000).unwrap());

    // A table that is there is copied: from shards at a URL to an object, and to other shards.
    let source = ShardedTable::open_streamed_url(folder, &ReadAhead::new(8 << 20), &remote).unwrap();
    let mut n_read = 0;
    let (copy, again) = ("s3://bucket/copy.safetensors", "s3://bucket/again");
    let written = copy_table(&source, Destination::url(copy, &remote).unwrap(), |progress| n_read = progress.n_rows).unwrap();
    assert_eq!((written.n_rows, n_read), (20_000, 20_000));
    let copied = Table::open_url(copy, &remote).unwrap();
    assert_eq!(copied.rows::<f32>(0..20_000).unwrap(), local.rows::<f32>(0..20_000).unwrap());
    assert_eq!(copied.categories(0..20_000).unwrap(), local.categories(0..20_000).unwrap());
    let one = StreamedTable::open_url(copy, &ReadAhead::new(8 << 20), &remote).unwrap();
    copy_table(&one, Destination::url(again, &remote).unwrap().in_shards(ShardSize::Rows(9_000)), |_| ()).unwrap();
    let again = ShardedTable::open_url(again, &remote).unwrap();
    assert_eq!((again.n_shards(), again.dictionaries()), (3, local.dictionaries()));
    assert_eq!(again.rows::<f32>(9_000..18_000).unwrap(), local.rows::<f32>(9_000..18_000).unwrap());
    assert_eq!(staged(staging.path()), 2, "the source and the local table");
}
