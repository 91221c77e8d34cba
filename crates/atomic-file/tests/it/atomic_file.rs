use std::fs;
use std::io::Write;
use std::path::Path;

use brisk_atomic_file::AtomicFile;

fn write(path: &Path, content: &str) {
    let mut file = AtomicFile::create(path).unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file.publish().unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_when_it_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    assert!(!path.exists(), "it is there too early");
    file.publish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["results"]);
}

#[test]
fn a_relative_path_is_that_of_its_start() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let before = std::env::current_dir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let [mut published, dropped] = ["results", "other"].map(|name| AtomicFile::create(name).unwrap());
    std::env::set_current_dir(other.path()).unwrap();
    published.write_all(b"new").unwrap();
    assert_eq!(published.path(), Path::new("results"), "as it was given");
    published.publish().unwrap();
    drop(dropped);
    std::env::set_current_dir(before).unwrap();
    assert_eq!((names(folder.path()), names(other.path())), (vec!["results".to_owned()], vec![]));
}

#[test]
fn a_dropped_file_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    write(&path, "old");
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["results"]);
}

/// In a container every process may have the same PID, so a name made of PID and counter would be taken after a process was
/// killed.
#[test]
fn names_of_process_and_number_do_not_stop_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    for number in 0..100 {
        fs::write(folder.path().join(format!(".results.{}-{number}.tmp", std::process::id())), "left").unwrap();
    }
    write(&path, "new");
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["results"], "leftovers of earlier versions are still there");
}

#[test]
fn only_leftovers_of_the_same_file_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(folder.path().join(".a.0123456789abcdef.tmp"), "left").unwrap();
    let others = [".a.b.0123456789abcdef.tmp", ".a.0123456789abcde.tmp", ".a.1-2-3.tmp", ".a.notes.tmp", ".a.tmp", ".b.1-2.tmp"];
    for name in others {
        fs::write(folder.path().join(name), "not ours").unwrap();
    }
    fs::create_dir(folder.path().join(".a.00000000000000aa.tmp")).unwrap();
    write(&path, "new");
    let mut expected: Vec<_> = others.into_iter().chain(["a", ".a.00000000000000aa.tmp"]).collect();
    expected.sort_unstable();
    assert_eq!(names(folder.path()), expected);
}

#[test]
fn the_file_of_a_running_writer_survives_another_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut first = AtomicFile::create(&path).unwrap();
    first.write_all(b"first, ").unwrap();
    write(&path, "second");
    drop(AtomicFile::create(&path).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"second");
    first.write_all(b"finished last").unwrap();
    first.publish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first, finished last");
    assert_eq!(names(folder.path()), ["results"]);
}

/// Every writer sweeps when it starts, while others may have created their file without having locked it yet, or are about to
/// rename it.
#[test]
fn writers_of_one_path_do_not_remove_each_others_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    // On Windows writers wait for each other, for at most a second.
    let n_times = if cfg!(windows) { 10 } else { 200 };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..n_times).for_each(|_| write(&path, "whole")));
        }
    });
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert_eq!(names(folder.path()), ["results"]);
}

#[test]
fn names_may_be_as_long_as_the_file_system_allows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ä".repeat(127));
    write(&path, "old");
    write(&path, "new");
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()).len(), 1);
}

#[test]
fn paths_that_name_no_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path, reason: &str| {
        let error = AtomicFile::create(path).expect_err("it is no file");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    };
    refused(folder.path(), "is a folder");
    refused(&folder.path().join("new/"), "names a folder");
    refused(Path::new(".."), "is a folder");
    refused(Path::new(""), "names no file");
    #[cfg(unix)]
    {
        refused(Path::new("/dev/null"), "is a device");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success(), "mkfifo failed");
        refused(&pipe, "is a pipe");
        std::os::unix::fs::symlink(&pipe, folder.path().join("link")).unwrap();
        refused(&folder.path().join("link"), "is a pipe");
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        refused(&socket, "is a socket");
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        refused(&circle, "symbolic links");
    }
}

#[test]
#[cfg(unix)]
fn symbolic_links_are_followed_and_hard_links_are_not() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("disk")).unwrap();
    fs::write(at("disk/table"), "old").unwrap();
    fs::hard_link(at("disk/table"), at("other")).unwrap();
    symlink("disk/table", at("near")).unwrap();
    symlink(at("near"), at("far")).unwrap();
    symlink("disk/absent", at("dangling")).unwrap();

    write(&at("far"), "new");
    assert_eq!(fs::read(at("disk/table")).unwrap(), b"new");
    assert_eq!(fs::read(at("other")).unwrap(), b"old");
    write(&at("dangling"), "there");
    assert_eq!(fs::read(at("disk/absent")).unwrap(), b"there");
    for link in ["near", "far", "dangling"] {
        assert!(at(link).is_symlink(), "{link} was replaced");
    }
}

#[test]
#[cfg(unix)]
fn names_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    for name in [b"\xff".repeat(3), b"\xff".repeat(250)] {
        let path = folder.path().join(OsStr::from_bytes(&name));
        write(&path, "old");
        write(&path, "new");
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
