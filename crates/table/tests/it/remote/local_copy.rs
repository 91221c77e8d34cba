//! Copies of objects, which are removed also if their program is killed.

use std::fs;
use std::path::Path;

use brisk_table::{CacheFolder, Error, LocalCopy, Remote, RemoteOptions};

use super::options;
use super::server::Server;

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != ".staging-number").collect()
}

#[test]
fn a_copy_has_the_name_of_its_object_and_is_removed_with_it() {
    let (server, staging) = (Server::start(), tempfile::tempdir().unwrap());
    server.put("/rows.csv.gz", b"rows".to_vec());
    server.put("/", b"root".to_vec());
    let remote = Remote::new(RemoteOptions { staging: Some(staging.path().to_owned()), ..options(CacheFolder::Off) }).unwrap();
    let copy = |path| LocalCopy::of(&server.url(path), &remote);
    // What killed programs leave of a copy, and of a shard.
    let killed = "0123456789abcdef";
    fs::write(staging.path().join(format!(".table.safetensors.index.json.{killed}.tmp")), "").unwrap();
    let folder = staging.path().join(format!("table-{killed}-00000.safetensors"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(".rows.csv.fedcba9876543210.tmp"), "half").unwrap();
    fs::write(staging.path().join(format!("table-{killed}-00001.safetensors")), "half").unwrap();
    let rows = copy("/rows.csv.gz?token=s3cret").unwrap();
    assert_eq!(rows.path().file_name().unwrap(), "rows.csv.gz");
    assert_eq!(names(staging.path()).len(), 2, "only this copy: {:?}", names(staging.path()));
    // Others do not touch it.
    let root = copy("/").unwrap();
    assert_eq!([&rows, &root].map(|copy| fs::read(copy.path()).unwrap()), [b"rows", b"root"]);
    assert!(matches!(copy("/none"), Err(Error::Remote { .. })));
    drop((rows, root));
    assert_eq!(names(staging.path()), [""; 0]);
}
