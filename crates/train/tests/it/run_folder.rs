use std::fs;
use std::time::{Duration, SystemTime};

use brisk_train::{Error, RunFolder};
use serde_json::json;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[track_caller]
fn check_name(name: Option<&str>, seconds: u64, expected: &str) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create(root.path(), name, at(seconds)).expect("a new folder");
    assert_eq!(run.path(), root.path().join(expected), "{name:?}");
    assert!(run.path().is_dir(), "{expected} is there");
}

#[test]
fn folders_are_named_after_run_and_time() {
    check_name(Some("higgs"), 1_795_236_901, "higgs-20261121-045501");
    check_name(None, 0, "run-19700101-000000");
    check_name(Some("a.b-c_9"), 951_782_399, "a.b-c_9-20000228-235959");
    check_name(Some("x"), 951_782_400, "x-20000229-000000");
    check_name(Some("x"), 951_868_800, "x-20000301-000000");
    check_name(Some("x"), 1_735_689_599, "x-20241231-235959");
    check_name(Some("x"), 4_107_542_400, "x-21000301-000000");
    check_name(Some("x"), 12_622_780_799, "x-23691231-235959");
    check_name(Some("x"), 12_622_780_800, "x-23700101-000000");
}

#[test]
fn nothing_is_overwritten() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let root = root.path().join("made").join("on the way");
    let names = [(); 3].map(|()| {
        let run = RunFolder::create(&root, Some("x"), at(0)).expect("a new folder");
        fs::write(run.best(), "mine").expect("writable");
        run.path().file_name().expect("a name").to_owned()
    });
    assert_eq!(names, ["x-19700101-000000", "x-19700101-000000-2", "x-19700101-000000-3"], "one each");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let root = tempfile::tempdir().expect("a temporary folder");
    for name in ["", "..", ".hidden", "a/b", "a\\b", "a b", "a\n", "c:"] {
        let error = RunFolder::create(root.path(), Some(name), at(0));
        assert!(matches!(&error, Err(Error::RunName { found }) if found == name), "{name:?}: {error:?}");
    }
    assert_eq!(fs::read_dir(root.path()).expect("readable").count(), 0, "nothing was made");
}

#[test]
fn the_config_is_there_whole_and_marks_a_run() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create(root.path(), None, at(0)).expect("a new folder");
    assert!(matches!(RunFolder::open(run.path()), Err(Error::NotARun { .. })), "not without a config");
    let config = json!({ "seed": 42, "layers": [256, 256], "rate": 0.001 });
    run.write_config(&config).expect("written");
    let text = fs::read_to_string(run.config()).expect("readable");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), config, "{text}");
    assert_eq!(RunFolder::open(run.path()).expect("a run"), run, "opened");
    assert_eq!(fs::read_dir(run.path()).expect("readable").count(), 1, "no temporary file is left");
}

#[test]
fn a_root_that_is_a_file_is_an_error() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let file = root.path().join("file");
    fs::write(&file, "").expect("writable");
    let error = RunFolder::create(&file, None, at(0));
    assert!(matches!(error, Err(Error::Io { .. })), "{error:?}");
}

#[test]
fn a_folder_is_made_under_a_name_that_is_known_beforehand() {
    let root = tempfile::tempdir().expect("a folder for a while");
    let path = root.path().join("runs/mine");
    let run = RunFolder::create_at(&path).expect("it can be made");
    assert_eq!(run.path(), path);
    run.write_config(&serde_json::json!({})).expect("it is there");
    assert_eq!(
        RunFolder::create_at(&path).expect("it is there"),
        RunFolder::open(&path).expect("it is a run"),
        "what is there stays"
    );
    assert!(matches!(RunFolder::create_at(&path.join("config.json")), Err(Error::Io { .. })), "a file is no folder");
}
