//! Pipes, sockets and devices in place of files: they are never opened, since reading them may block forever.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use brisk_table::{BadRows, Error, Format, ImagesOptions, ImportOptions, StreamedTable, Table, import};

fn special_files(folder: &Path) -> Vec<(&'static str, &'static str)> {
    assert!(Command::new("mkfifo").arg(folder.join("pipe.png")).status().unwrap().success(), "a pipe can be made");
    UnixListener::bind(folder.join("socket.png")).unwrap();
    symlink("/dev/zero", folder.join("zero.png")).unwrap();
    symlink(folder.join("pipe.png"), folder.join("link.png")).unwrap();
    vec![("pipe.png", "a pipe"), ("socket.png", "a socket"), ("zero.png", "a device"), ("link.png", "a pipe")]
}

#[track_caller]
fn check<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str, what: &str) {
    match result {
        Err(Error::NotAFile { found, .. }) => assert_eq!(found, expected, "{what}"),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn no_reader_opens_them() {
    let (folder, dest) = crate::scratch();
    for (name, found) in special_files(folder.path()) {
        let path = folder.path().join(name);
        for &format in Format::ALL {
            let options = ImportOptions { format: Some(format), ..ImportOptions::default() };
            check(import(&path, &dest, &options), found, &format!("{name} as {format}"));
        }
        check(import(&path, &dest, &ImportOptions::default()), found, name);
        check(Table::open(&path), found, name);
        check(StreamedTable::open(&path, &brisk_table::ReadAhead::new(0)), found, name);
    }
}

#[test]
fn among_images_they_are_refused_or_skipped() {
    for (name, found) in special_files(crate::scratch().0.path()) {
        let (folder, dest) = crate::scratch();
        let class = folder.path().join("a");
        std::fs::create_dir(&class).unwrap();
        special_files(&class);
        for (other, _) in special_files(crate::scratch().0.path()) {
            if other != name && !(name == "link.png" && other == "pipe.png") {
                std::fs::remove_file(class.join(other)).unwrap();
            }
        }
        image::save_buffer(class.join("z.png"), &[1; 6], 2, 1, image::ExtendedColorType::Rgb8).unwrap();
        check(import(folder.path(), &dest, &ImagesOptions::default()), found, name);
        let skip = ImagesOptions { bad_files: BadRows::Skip, ..ImagesOptions::default() };
        let report = import(folder.path(), &dest, &skip).unwrap();
        assert_eq!(report.n_rows, 1, "{name}");
        assert!(report.n_skipped >= 1, "{name}");
    }
}
