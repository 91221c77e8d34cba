use std::fs;
use std::io::{self, Write};
use std::path::Path;

use brisk_atomic_file::{WriteError, write_atomically};

#[test]
fn a_failing_writer_leaves_what_was_there_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("state");
    for is_kept in [false, true] {
        let error = write_atomically(&path, |writer| {
            // More than the writer buffers, so that half of it is on disk.
            writer.write_all(&vec![b'x'; 1 << 20])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(error, Err(WriteError::Failed { is_kept: found, .. }) if found == is_kept), "{error:?}");
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
fn a_path_where_no_file_can_be_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |path: &Path, expected: &str| {
        let error = write_atomically(path, |_| Ok(())).expect_err("no file can be there");
        assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
    };
    let is_folder = "names a folder, expected a file; add the name of a file in it";
    check(folder.path(), is_folder);
    check(&folder.path().join("absent").join(""), is_folder);
    let absent = folder.path().join("absent");
    let no_folder = |folder: &Path| format!("there is no folder {}; create it first, or write elsewhere", folder.display());
    check(&absent.join("state"), &no_folder(&absent));
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    check(&file.join("state"), &no_folder(&file));
    write_atomically(&folder.path().join("state"), |_| Ok(())).expect("a file in a folder");
}
