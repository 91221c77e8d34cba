//! The message of an error includes that of its cause, and programs that print the chain of causes print nothing twice.

use std::error::Error as StdError;
use std::{fs, io, iter};

use brisk_loader::{Batching, Decoded, Loader};
use brisk_table::{CsvOptions, PublishError, ShardedTable, SvmlightOptions, Table, import};
use brisk_tensor::{Graph, Transpose};
use brisk_train::metrics;
use brisk_train::{Checkpoint, RunFolder, TrainerConfig};

/// Checks that the message has all of `expected`, and that no message in the chain of causes repeats a later one.
#[track_caller]
fn check(error: impl StdError + 'static, expected: &[&str]) {
    let error: &(dyn StdError + 'static) = &error;
    let first = error.to_string();
    assert!(expected.iter().all(|part| first.contains(part)), "{first}");
    let chain: Vec<String> = iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string).collect();
    for (i, above) in chain.iter().enumerate() {
        assert!(!chain[i + 1..].iter().any(|cause| above.contains(cause)), "a cause is printed twice: {chain:#?}");
    }
}

#[test]
fn files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let missing = if cfg!(unix) { "No such file or directory" } else { "" };
    for (name, text) in [("bad.bin", "\u{8}\0\0\0\0\0\0\0{[1, 2]}"), ("bad.json", "{\"weight_map\": 3}"), ("bad.svm", "1 2:x\n")]
    {
        fs::write(path(name), text).expect("written");
    }
    let (gone, dest) = (path("gone.bin"), path("new.safetensors"));
    check(Table::open(&gone).expect_err("no file"), &["gone.bin: cannot open: ", missing]);
    check(Table::open(path("bad.bin")).expect_err("no table"), &["bad.bin: the header is not that of a safetensors file: "]);
    check(ShardedTable::open(path("bad.json")).expect_err("no index"), &["bad.json: "]);
    check(import(&gone, &dest, &CsvOptions::default()).expect_err("no file"), &["gone.bin: cannot ", missing]);
    let svmlight = import(path("bad.svm"), &dest, &SvmlightOptions::default());
    check(svmlight.expect_err("no number"), &["bad.svm, line 1, byte ", "feature 2: found \"x\""]);
    check(Checkpoint::load(&gone).expect_err("no file"), &["gone.bin: cannot ", missing]);
    check(Checkpoint::load(path("bad.bin")).expect_err("no checkpoint"), &["bad.bin: "]);
    check(TrainerConfig::load(&gone).expect_err("no file"), &["gone.bin: cannot read the settings: ", missing]);
    check(RunFolder::open(&gone).expect_err("no folder"), &["gone.bin: "]);
    let kept = PublishError::Kept { path: gone.clone(), kept: dest, cause: io::Error::other("busy") };
    check(kept, &["gone.bin cannot be replaced: busy; "]);
    check(PublishError::Io { path: gone, cause: io::Error::other("busy") }, &["gone.bin: cannot be written: busy"]);
}

/// An error of a caller's function that does not expose its cause.
#[derive(Debug)]
struct Outer(io::Error);

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no image")
    }
}

impl StdError for Outer {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn errors_of_callers() {
    let images = Decoded::new(8, 3, |row, _: &mut [f32]| match row {
        5 => Err(Outer(io::Error::other("bad magic"))),
        _ => Ok(0.0),
    });
    let mut loader = Loader::new(&images, Batching { order: brisk_loader::Order::Sequential, ..Batching::of(4) }).expect("rows");
    let mut epoch = loader.epoch(0);
    epoch.next_batch().expect("good rows");
    let error = epoch.next_batch().expect_err("row 5 is bad");
    check(error, &["batch 1 could not be gathered: row 5 could not be decoded: no image: bad magic"]);

    let cause = Box::new(Outer(io::Error::other("bad magic")));
    check(metrics::Error::Custom { metric: "iou".to_owned(), cause }, &["iou: no image: bad magic"]);
    let cause = Box::new(Outer(io::Error::other("bad magic")));
    let of_metric = metrics::Error::Custom { metric: "iou".to_owned(), cause };
    check(brisk_train::Error::from(of_metric), &["iou: no image: bad magic"]);
}

#[test]
fn errors_of_operations() {
    let graph = Graph::inference("product");
    let x = graph.constant("x", &[1.0; 6], &[2, 3]);
    let _ = graph.scope("head", || x.matmul(&x, Transpose::None));
    let error = graph.check().expect_err("the shapes do not match");
    let expected = ["matmul: `b` has shape [2, 3]", "(in head, at "];
    check(error.clone(), &expected);
    check(brisk_vision::Error::from(error.clone()), &expected);
    check(brisk_train::Error::from(error), &expected);
}
