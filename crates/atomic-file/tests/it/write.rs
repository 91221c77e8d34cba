use std::fs;
use std::io::{self, Write};
use std::path::Path;

use brisk_atomic_file::{AtomicFile, PublishError, WriteError, check_output, write_atomically};

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
        assert_eq!(check_output(path).expect_err("no file can be there").to_string(), error.to_string(), "the same in advance");
    };
    let is_folder = "names a folder, expected a file; add the name of a file in it";
    check(folder.path(), is_folder);
    check(&folder.path().join("absent").join(""), is_folder);
    let absent = folder.path().join("absent");
    let no_folder = format!("there is no folder {}; create it first, or write elsewhere", absent.display());
    check(&absent.join("state"), &no_folder);
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    check(&file.join("state"), &format!("cannot be written: {} is a file, expected a folder", file.display()));
    #[cfg(unix)]
    {
        let dangling = folder.path().join("dangling");
        std::os::unix::fs::symlink(absent.join("state"), &dangling).expect("a link");
        check(&dangling, &no_folder);
    }
    write_atomically(&folder.path().join("state"), |_| Ok(())).expect("a file in a folder");
}

#[test]
fn what_cannot_be_written_is_refused_in_advance() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |path: &Path, expected: &str| {
        let error = check_output(path).expect_err("no file can be there");
        assert!(matches!(error, WriteError::Refused { .. }) && error.to_string().contains(expected), "{error}");
        write_atomically(path, |_| Ok(())).expect_err("no file can be there");
    };
    check(Path::new(""), "\"\": cannot be written: the path names no file");
    check(&folder.path().join("x".repeat(300)), "xxx: cannot be written: ");
    #[cfg(unix)]
    {
        check(Path::new("/dev/null"), "is a device");
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink(&circle, &circle).expect("a link");
        check(&circle, "symbolic links");
    }
    #[cfg(target_os = "linux")]
    check(Path::new("/proc/brisk"), "/proc/brisk: cannot be written: ");

    let path = folder.path().join("state");
    check_output(&path).expect("a file in a folder");
    fs::write(&path, "old").expect("written");
    check_output(&path).expect("a file");
    assert_eq!(fs::read(&path).expect("readable"), b"old", "unchanged");
    let n_files = fs::read_dir(folder.path()).expect("readable").count();
    assert_eq!(n_files, if cfg!(unix) { 2 } else { 1 }, "nothing is left");
}

#[test]
fn an_error_of_publishing_names_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("state");
    let file = AtomicFile::create(&path).expect("a file");
    fs::create_dir(&path).expect("a folder");
    let error = file.publish().expect_err("a folder cannot be replaced");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    if cfg!(unix) {
        assert!(matches!(&error, PublishError::Io { path: found, .. } if *found == path), "{error}");
        assert!(io::Error::from(error).raw_os_error().is_some(), "that of the system");
    }
}

#[test]
#[cfg(unix)]
fn a_private_file_stays_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("key");
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    for expected in [0o600, 0o444, 0o640, 0o666, 0o755] {
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(expected)).expect("permissions");
        write_atomically(&path, |file| {
            let modes: Vec<u32> = fs::read_dir(folder.path())?.map(|entry| mode(&entry.expect("an entry").path())).collect();
            assert!(modes.len() == 2 && modes.iter().all(|mode| mode & !0o600 & !expected == 0), "while written: {modes:?}");
            file.write_all(b"new")
        })
        .expect("written");
        assert_eq!((mode(&path), fs::read(&path).expect("readable")), (expected, b"new".to_vec()), "{expected:o}");
        fs::remove_file(&path).expect("removed");
    }
}
