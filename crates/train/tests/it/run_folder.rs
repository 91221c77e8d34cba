use std::fs;
use std::time::{Duration, SystemTime};

use brisk_train::{Checkpoint, Error, RunFolder};
use serde_json::json;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[track_caller]
fn check_name(name: Option<&str>, seconds: u64, expected: &str) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create(root.path(), name, at(seconds)).expect("a new folder");
    assert_eq!(run.path(), root.path().join(expected), "{name:?}");
    assert!(run.path().is_dir(), "{expected} exists");
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
        assert!(
            matches!(&error, Err(Error::Setting { name: "run name", found, .. }) if *found == format!("{name:?}")),
            "{name:?}: {error:?}"
        );
    }
    assert_eq!(fs::read_dir(root.path()).expect("readable").count(), 0, "nothing was made");
}

#[test]
fn the_config_is_there_whole_and_marks_a_run() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create(root.path(), None, at(0)).expect("a new folder");
    assert!(matches!(RunFolder::open(run.path()), Err(Error::WrongFile { .. })), "not without a config");
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
    run.write_config(&serde_json::json!({})).expect("the folder exists");
    assert_eq!(
        RunFolder::create_at(&path).expect("the folder exists"),
        RunFolder::open(&path).expect("it is a run"),
        "what is there stays"
    );
    assert!(matches!(RunFolder::create_at(&path.join("config.json")), Err(Error::Io { .. })), "a file is no folder");
}

#[test]
fn a_second_run_in_a_folder_is_refused_until_the_first_ends() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let [first, second] = [(); 2].map(|()| RunFolder::create_at(root.path()).expect("a folder"));
    first.lock().expect("it is free");
    first.lock().expect("it is the same run");
    let clone = first.clone();
    clone.lock().expect("clones are the same run, too");
    let error = second.lock().expect_err("the first run holds it");
    let process = std::process::id();
    assert!(matches!(&error, Error::RunInUse { path, .. } if path == root.path()), "{error}");
    if cfg!(unix) {
        assert!(error.to_string().contains(&format!(": process {process}")), "{error}");
    }
    drop(first);
    assert!(second.lock().is_err(), "a clone still holds it");
    drop(clone);
    second.lock().expect("it is free again");
    drop(second);
    let n_left = fs::read_dir(root.path()).expect("readable").count();
    assert_eq!(n_left, usize::from(cfg!(not(unix))), "the file goes with the lock");
}

/// What a killed process leaves: the file, without a lock.
#[test]
fn a_lock_file_that_no_process_holds_is_no_lock() {
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::write(root.path().join("run.lock"), "process 4711 on host7, and then some more\n").expect("writable");
    let run = RunFolder::create_at(root.path()).expect("a folder");
    run.lock().expect("it is free");
    let text = fs::read_to_string(root.path().join("run.lock"));
    assert!(
        cfg!(not(unix)) || text.is_ok_and(|text| text.starts_with("process ") && !text.contains("4711 on host7, and")),
        "ours"
    );
}

fn checkpoint(epoch: usize, batch: Option<usize>) -> Checkpoint {
    let mut checkpoint = Checkpoint::new();
    checkpoint.insert_metadata("epoch", epoch);
    if let Some(batch) = batch {
        checkpoint.insert_metadata("batch", batch);
    }
    checkpoint
}

#[test]
fn the_newest_intact_checkpoint_is_found_and_damaged_ones_are_listed() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create_at(root.path()).expect("a folder");
    let found = |expected: Option<std::path::PathBuf>, n_damaged: usize| {
        let found = run.find_checkpoint().expect("readable");
        assert_eq!(found.newest.map(|(path, _)| path), expected, "the newest");
        assert_eq!(found.damaged.len(), n_damaged, "{:?}", found.damaged);
    };
    found(None, 0);
    assert!(run.newest_first().is_empty(), "there is none");
    checkpoint(2, None).save(run.best()).expect("there is room");
    found(Some(run.best()), 0);
    assert_eq!(run.newest_first(), [run.best()]);
    checkpoint(2, Some(7)).save(run.last()).expect("there is room");
    found(Some(run.last()), 0);
    assert_eq!(run.newest_first(), [run.last(), run.best()]);
    checkpoint(1, Some(9)).save(run.last()).expect("there is room");
    found(Some(run.best()), 0);
    assert_eq!(run.newest_first(), [run.best(), run.last()], "the last one is of an earlier epoch");
    fs::write(run.last(), "half").expect("writable");
    found(Some(run.best()), 1);
    assert_eq!(run.newest_first(), [run.last(), run.best()], "loading the last one says why it is not used");
    fs::write(run.best(), "").expect("writable");
    found(None, 2);
    assert_eq!(run.newest_first(), [run.last(), run.best()], "both are damaged");
    let damaged = run.find_checkpoint().expect("readable").damaged;
    for (error, name) in damaged.iter().zip(["best.safetensors", "last.safetensors"]) {
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn an_intact_checkpoint_of_no_use_is_an_error_and_not_passed_over() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create_at(root.path()).expect("a folder");
    Checkpoint::new().save(run.last()).expect("there is room");
    let error = run.find_checkpoint().expect_err("it has no epoch");
    assert!(matches!(error, Error::CheckpointEntry { kind: "metadata", .. }), "{error}");
}

#[test]
fn what_cannot_be_resumed_is_set_aside_and_kept() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create_at(root.path()).expect("a folder");
    run.write_config(&json!({ "seed": 1 })).expect("written");
    fs::write(run.metrics_csv(), "").expect("writable");
    assert_eq!(run.set_aside().expect("nothing to do"), None, "a log without rows is used again");
    for number in [1, 2] {
        let sharded = root.path().join("last-3-00001-of-00002.safetensors");
        for path in [&run.metrics_csv(), &run.metrics_json(), &run.best(), &sharded] {
            fs::write(path, format!("{number}")).expect("writable");
        }
        fs::write(root.path().join("notes.txt"), "mine").expect("writable");
        let aside = run.set_aside().expect("moved").expect("there is something");
        assert_eq!(aside, root.path().join(format!("earlier-{number}")), "a name that is free");
        for name in ["metrics.csv", "metrics.json", "best.safetensors", "last-3-00001-of-00002.safetensors"] {
            assert_eq!(fs::read_to_string(aside.join(name)).expect("kept"), number.to_string(), "{name}");
            assert!(!root.path().join(name).exists(), "{name} is gone");
        }
        assert!(aside.join("config.json").exists() && run.config().exists(), "the settings are copied");
        assert!(root.path().join("notes.txt").exists(), "other files stay");
    }
}
