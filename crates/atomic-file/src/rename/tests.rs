//! Publishing a file whose rename fails as it does on Windows.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{PublishError, Renaming};

/// What [`publish`] did: its result, the number of renames, and how long it waited.
struct Outcome {
    result: Result<(), PublishError>,
    n_renames: usize,
    waited: Duration,
}

/// Renames `new` to `table` in `folder`; the first `n_failures` renames of that pair fail.
fn publish(folder: &Path, n_failures: usize, failure: io::ErrorKind, is_contended: bool) -> Outcome {
    let target = folder.join("table");
    let (n_renames, waited) = (Cell::new(0), Cell::new(Duration::ZERO));
    let rename = |from: &Path, to: &Path| {
        if to == target {
            n_renames.set(n_renames.get() + 1);
            if n_renames.get() <= n_failures {
                return Err(failure.into());
            }
        }
        fs::rename(from, to)
    };
    let wait = |time| waited.set(waited.get() + time);
    let renaming = Renaming { rename: &rename, is_contended: &|_| is_contended, wait: &wait };
    let result = renaming.replace(&folder.join("temp"), &target);
    Outcome { result, n_renames: n_renames.get(), waited: waited.get() }
}

fn folder_with_files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("temp"), "new").unwrap();
    fs::write(folder.path().join("table"), "old").unwrap();
    folder
}

fn content(folder: &tempfile::TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| error.kind().to_string())
}

#[test]
fn a_race_between_writers_is_waited_out() {
    let folder = folder_with_files();
    let outcome = publish(folder.path(), 4, io::ErrorKind::PermissionDenied, true);
    outcome.result.unwrap();
    assert_eq!((outcome.n_renames, outcome.waited), (5, Duration::from_millis(1 + 2 + 4 + 8)));
    assert_eq!(content(&folder, "table"), "new");
}

#[test]
fn a_file_that_stays_in_use_is_not_lost() {
    let folder = folder_with_files();
    for kept_name in ["table.new", "table.2.new"] {
        fs::write(folder.path().join("temp"), "new").unwrap();
        let outcome = publish(folder.path(), usize::MAX, io::ErrorKind::PermissionDenied, true);
        assert!((900..1100).contains(&outcome.waited.as_millis()), "waited {:?}", outcome.waited);
        let error = outcome.result.unwrap_err();
        let message = error.to_string();
        assert!(message.contains(&format!("{kept_name}: close the programs")), "{message}");
        let PublishError::Kept { path, kept, .. } = error else { panic!("{message}") };
        assert_eq!((path, kept), (folder.path().join("table"), folder.path().join(kept_name)));
        assert_eq!(content(&folder, "table") + &content(&folder, kept_name), "oldnew");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "something else was left behind");
}

#[test]
fn what_only_the_old_file_prevents_keeps_the_new_one() {
    for failure in [io::ErrorKind::PermissionDenied, io::ErrorKind::ResourceBusy] {
        let folder = folder_with_files();
        let outcome = publish(folder.path(), usize::MAX, failure, false);
        assert!(matches!(outcome.result, Err(PublishError::Kept { .. })), "{failure}: {:?}", outcome.result);
        assert_eq!((outcome.n_renames, outcome.waited), (1, Duration::ZERO), "{failure}: unexpected retry");
        assert_eq!(content(&folder, "table.new"), "new");
    }
}

#[test]
fn other_errors_are_returned_at_once() {
    let folder = folder_with_files();
    let outcome = publish(folder.path(), usize::MAX, io::ErrorKind::StorageFull, false);
    assert!(matches!(&outcome.result, Err(PublishError::Io { path, .. }) if path.ends_with("table")), "{:?}", outcome.result);
    assert_eq!((outcome.n_renames, outcome.waited), (1, Duration::ZERO));
    assert_eq!(content(&folder, "temp") + &content(&folder, "table"), "newold");
}
