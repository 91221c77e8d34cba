use std::fs;
use std::io::{self, Write};

use super::write_atomically;
use crate::Error;

#[test]
fn a_failing_writer_leaves_what_was_there_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("state");
    for is_kept in [false, true] {
        let error = write_atomically(&path, |writer| {
            // More than the writer holds back, so that half of it is on the disk.
            writer.write_all(&vec![b'x'; 1 << 20])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(error, Err(Error::Write { is_kept: found, .. }) if found == is_kept), "{error:?}");
        let names: Vec<_> =
            fs::read_dir(folder.path()).expect("readable").map(|entry| entry.expect("entry").file_name()).collect();
        assert_eq!(names, if is_kept { vec!["state"] } else { vec![] }, "what is left");
        if is_kept {
            assert_eq!(fs::read(&path).expect("readable"), b"before", "the old content");
        }
        write_atomically(&path, |writer| writer.write_all(b"before")).expect("a whole file");
    }
}

#[test]
fn the_old_content_is_there_until_the_new_one_is_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("state");
    fs::write(&path, "old").expect("a file");
    write_atomically(&path, |writer| {
        writer.write_all(b"new")?;
        writer.flush()?;
        assert_eq!(fs::read(&path)?, b"old", "while writing");
        Ok(())
    })
    .expect("a whole file");
    assert_eq!(fs::read(&path).expect("readable"), b"new", "afterwards");
}

#[test]
fn a_folder_is_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = write_atomically(&folder.path().join("absent").join("state"), |_| Ok(()));
    assert!(matches!(error, Err(Error::Write { is_kept: false, .. })), "{error:?}");
}
