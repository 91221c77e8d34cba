//! Tables in an S3 store that others wrote.

use std::fs;
use std::path::Path;

use brisk_loader::{RowBuffers, RowSelection, RowSource as _, row_source_conformance};
use brisk_table::{
    CacheFolder, Error, ReadAhead, Remote, RemoteError, RemoteFolder, RemoteOptions, Schema, ShardSize, ShardedTable,
    ShardedWriter, StreamedTable, Table,
};

use super::options;
use super::rclone::{KEY, Rclone};
use super::server::{Fault, Server};

const TABLE: &str = "s3://bucket/tables/t";

fn remote(server: &Rclone, staging: &Path, cache: CacheFolder) -> Remote {
    let settings = server.settings().map(|(name, value)| (name.to_owned(), value)).to_vec();
    Remote::new(RemoteOptions { settings, staging: Some(staging.to_owned()), memory_bytes: 0, ..options(cache) }).unwrap()
}

/// Rows of 1 KiB, in shards of 8 300 rows.
fn writer_of(remote: &Remote, n_rows: usize, scale: f32) -> ShardedWriter {
    let mut writer = ShardedWriter::create_url(TABLE, Schema::shaped(&[255]), ShardSize::Rows(8_300), remote).unwrap();
    let rows: Vec<f32> = (0..n_rows).flat_map(|i| [i as f32 * scale; 255]).collect();
    writer.push(&rows, &vec![scale; n_rows]).unwrap();
    writer
}

#[test]
fn shards_are_written_to_rclone_and_read_from_it() {
    let Some(server) = Rclone::start("shards in a store of rclone") else { return };
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(&server, folder.path(), CacheFolder::At(folder.path().join("cache")));
    let writer = writer_of(&remote, 8_700, 1.0);
    // Larger than a part.
    let first = server.names("tables/t").pop().unwrap();
    assert!(first.ends_with(".safetensors") && fs::metadata(server.file("tables/t").join(&first)).unwrap().len() > 8 << 20);
    assert!(matches!(ShardedTable::open_url(TABLE, &remote).unwrap_err(), Error::Remote { reason: RemoteError::NoIndex, .. }));
    assert_eq!(writer.finish().unwrap(), 8_700);
    assert_eq!(server.names("tables/t").len(), 3, "two shards and the index");

    let ahead = ReadAhead::new(16 << 20);
    for _ in 0..2 {
        let table = ShardedTable::open_streamed_url(TABLE, &ahead, &remote).unwrap();
        table.verify().unwrap();
        let (mut features, mut labels) = (vec![0.0; 2 * 255], [0.0; 2]);
        table.gather(RowSelection::Numbers(&[8_500, 3]), RowBuffers::new(&mut features, &mut labels)).unwrap();
        assert_eq!((features[0], features[509], labels), (8_500.0, 3.0, [1.0; 2]));
    }
    assert!(remote.report().bytes_from_cache > 0, "the second time, from the cache: {:?}", remote.report());
    assert_eq!(remote.report().n_retries, 0);
    let small = ShardedTable::open_streamed_url(TABLE, &ahead, &remote).unwrap();
    row_source_conformance(&small);
    assert_eq!(Table::open(server.file("tables/t").join(&first)).unwrap().n_rows(), 8_300, "an object is a table");

    // Another table takes its place; what a killed writer of this machine has sent is removed.
    let number = fs::read_to_string(folder.path().join(".staging-number")).unwrap();
    let orphan = format!("table-{}00000001-00000.safetensors", number.trim());
    let file = server.file("tables/t").join(&first);
    RemoteFolder::at(TABLE, &remote).unwrap().put(&file, &orphan).unwrap();
    let kept = StreamedTable::open_url(&format!("{TABLE}/{first}"), &ReadAhead::new(0), &remote).unwrap();
    writer_of(&remote, 10, 2.0).finish().unwrap();
    assert_eq!(server.names("tables/t").len(), 2, "a shard and the index");
    assert_eq!(ShardedTable::open_url(TABLE, &remote).unwrap().rows::<f32>(1..2).unwrap()[0], 2.0);
    let gone = kept.verify().unwrap_err();
    assert!(gone.to_string().contains(&first) && matches!(super::reason(gone), RemoteError::NotFound));
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left = left.filter(|name| name != ".staging-number");
    assert_eq!(left.collect::<Vec<_>>(), ["cache"], "staged files are removed");
}

/// rclone ignores `If-Match`, so that the tag of each response decides.
#[test]
fn an_object_of_rclone_that_is_replaced_while_it_is_read_is_an_error() {
    let Some(server) = Rclone::start("objects of rclone that are replaced") else { return };
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(&server, folder.path(), CacheFolder::Off);
    let (file, url) = (folder.path().join("file"), "s3://bucket/t.safetensors");
    let mut bytes = super::ramp().to_vec();
    fs::write(&file, &bytes).unwrap();
    remote.upload(&file, url).unwrap();
    let table = StreamedTable::open_url(url, &ReadAhead::new(0), &remote).unwrap();
    table.verify().unwrap();
    // The same length and the same header.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    remote.upload(&file, url).unwrap();
    let error = table.verify().unwrap_err();
    assert!(error.to_string().contains(url) && error.to_string().contains("replaced while it was read"), "{error}");
    assert!(matches!(super::reason(error), RemoteError::Changed { .. }));
}

#[test]
fn wrong_credentials_of_rclone_are_an_error() {
    let Some(server) = Rclone::start("wrong credentials of rclone") else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, code) in [("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"), ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId")] {
        let wrong =
            server.settings().map(|(found, value)| (found.to_owned(), if found == name { "wrong".to_owned() } else { value }));
        let options =
            RemoteOptions { settings: wrong.to_vec(), staging: Some(folder.path().to_owned()), ..options(CacheFolder::Off) };
        let remote = Remote::new(options).unwrap();
        let read = Table::open_url("s3://bucket/t.safetensors", &remote).map(drop);
        let written = ShardedWriter::create_url(TABLE, Schema::named(["x"]), ShardSize::Rows(1), &remote).unwrap().finish();
        for error in [read.unwrap_err(), written.map(drop).unwrap_err()] {
            let said = error.to_string();
            assert!([code, "s3://bucket/t", "AWS_ACCESS_KEY_ID"].iter().all(|word| said.contains(word)), "{said}");
            assert!(matches!(super::reason(error), RemoteError::Refused { .. }), "{said}");
        }
        assert_eq!(remote.report().n_retries, 0, "it is not tried again");
    }
}

/// rclone answers before it reads the body, and closes the connection.
#[test]
fn a_bucket_that_rclone_does_not_have_is_named() {
    let Some(server) = Rclone::start("a bucket that rclone does not have") else { return };
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(&server, folder.path(), CacheFolder::Off);
    for n_bytes in [1 << 10, 6 << 20, 20 << 20] {
        fs::write(folder.path().join("rows"), vec![1; n_bytes]).unwrap();
        let error = remote.upload(folder.path().join("rows"), "s3://nobucket/rows").unwrap_err();
        assert!(error.to_string().contains("no bucket nobucket"), "{n_bytes}: {error}");
        assert!(matches!(super::reason(error), RemoteError::NoBucket { .. }), "{n_bytes}");
    }
    assert!(remote.report().n_retries <= 1, "a connection of before may have ended: {:?}", remote.report());
}

#[test]
fn credentials_that_change_while_a_table_is_read_are_an_error() {
    let Some(mut server) = Rclone::start("credentials of rclone that change") else { return };
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(&server, folder.path(), CacheFolder::Off);
    // More than the first request for a shard reads.
    writer_of(&remote, 100, 1.0).finish().unwrap();
    let table = ShardedTable::open_streamed_url(TABLE, &ReadAhead::new(0), &remote).unwrap();
    table.verify().unwrap();
    server.change_key((KEY.0, "another"));
    let error = table.verify().unwrap_err();
    let said = error.to_string();
    assert!(
        [TABLE, ".safetensors: ", "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"].iter().all(|word| said.contains(word)),
        "{said}"
    );
    assert!(matches!(super::reason(error), RemoteError::Refused { .. }), "{said}");
    // The connection of before has ended, which may be noticed only by a request.
    assert!(remote.report().n_retries <= 1, "it is not tried again: {:?}", remote.report());
    server.change_key(KEY);
    table.verify().unwrap();
}

/// rclone has neither: Amazon S3 refuses times that differ from its own by more than 15 minutes, and temporary credentials that
/// have expired.
#[test]
fn a_wrong_clock_and_expired_credentials_are_errors_while_a_table_is_read() {
    const SKEWED: &str = "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>";
    const EXPIRED: &str = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
    let url = "s3://bucket/t.safetensors";
    for (status, body, words) in [
        (403, SKEWED, ["RequestTimeTooSkewed", "set the clock of this machine"]),
        (400, EXPIRED, ["ExpiredToken", "AWS_SESSION_TOKEN"]),
    ] {
        let server = Server::start();
        server.put("/bucket/t.safetensors", super::ramp().to_vec());
        let settings =
            [("AWS_ENDPOINT", server.url("")), ("AWS_ALLOW_HTTP", "true".to_owned()), ("AWS_REGION", "here".to_owned())];
        let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, "x".to_owned()));
        let settings = settings.into_iter().chain(keys).map(|(name, value)| (name.to_owned(), value)).collect();
        let remote = Remote::new(RemoteOptions { settings, memory_bytes: 0, ..options(CacheFolder::Off) }).unwrap();
        let table = StreamedTable::open_url(url, &ReadAhead::new(0), &remote).unwrap();
        table.verify().unwrap();
        server.misbehave(move |_, _| Some(Fault::Status(status, "", body)));
        let error = table.verify().unwrap_err();
        let said = error.to_string();
        assert!(said.contains(url) && words.iter().all(|word| said.contains(word)), "{said}");
        assert!(matches!(super::reason(error), RemoteError::Refused { .. }), "{said}");
        assert_eq!(remote.report().n_retries, 0, "{said}: it is not tried again");
        server.misbehave(|_, _| None);
        table.verify().unwrap();
    }
}

#[test]
fn objects_of_a_folder_of_rclone_are_written_read_and_removed() {
    let Some(server) = Rclone::start("objects of a folder of rclone") else { return };
    let folder = tempfile::tempdir().unwrap();
    let objects = RemoteFolder::at("s3://bucket/runs", &remote(&server, folder.path(), CacheFolder::Off)).unwrap();
    let file = folder.path().join("file");
    // In two parts, and at once.
    let bytes: Vec<u8> = (0..9_000_000_u32).map(|i| (i >> 12) as u8).collect();
    for bytes in [&bytes[..], b"", b"x"] {
        fs::write(&file, bytes).unwrap();
        objects.put(&file, "a.b").unwrap();
        assert!(objects.read("a.b").unwrap().as_deref() == Some(bytes), "{} bytes differ", bytes.len());
        assert!(fs::read(server.file("runs/a.b")).unwrap() == bytes, "{} bytes differ in the store", bytes.len());
    }
    for _ in 0..2 {
        objects.delete("a.b").unwrap();
        assert_eq!(objects.read("a.b").unwrap(), None);
    }
}
