//! The `inspect` example, as a person calls it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use brisk_table::{Schema, ShardSize, ShardedWriter, TableWriter};
use serde_json::Value;
use tempfile::TempDir;

use crate::example::built;
use crate::usage::check_usage_error;

/// A folder with a table of 60 rows in it, and the same as shards.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().expect("a folder for a while") };
        let features: Vec<f32> = (0..120).map(|i| i as f32 / 4.0).collect();
        let labels: Vec<f32> = (0..60).map(|row| (row % 2) as f32).collect();
        let schema = Schema { label_name: Some("signal".into()), ..Schema::named(["mass", "angle"]) };
        let mut writer = TableWriter::create(place.path("table.safetensors"), schema.clone()).expect("the folder is there");
        writer.push(&features, &labels).expect("60 rows of 2 columns");
        writer.finish().expect("there is room for a small file");
        let mut writer = ShardedWriter::create(place.path("shards"), schema, ShardSize::Rows(25)).expect("the folder is there");
        writer.push(&features, &labels).expect("60 rows of 2 columns");
        writer.finish().expect("there is room for small files");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(built("inspect")).args(args).current_dir(self.dir.path()).output().expect("the example runs");
        let text = |bytes| String::from_utf8(bytes).expect("messages are UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The lines of what it says, their blanks made one, hold `lines`.
    #[track_caller]
    fn check(&self, args: &[&str], lines: &[&str]) {
        let (code, stdout, stderr) = self.run(args);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
        let found: Vec<String> = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in lines {
            assert!(found.iter().any(|found| found == line), "{args:?}: no `{line}` in:\n{stdout}");
        }
    }

    /// Refused by one line that says `words`.
    #[track_caller]
    fn refuses(&self, args: &[&str], words: &str) {
        let (code, stdout, stderr) = self.run(args);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1 && stderr.contains(words), "{args:?}: {stderr}");
    }
}

const ROWS: [&str; 4] = ["column missing mean std min max", "row label mass angle", "0 0 0 0.25", "1 1 0.5 0.75"];

#[test]
fn a_table_and_a_folder_of_shards() {
    let place = Place::new();
    let lines = ["rows 60", "features F32 [2]", "labels signal, F32", "checksums not checked; --verify does"];
    place.check(&["table.safetensors"], &[&["table table.safetensors, one file"], &lines[..], &ROWS].concat());
    place.check(&["shards"], &[&["table shards, 3 shards"], &lines[..], &ROWS].concat());
    place.check(&["shards", "--verify"], &["checksums every byte is as it was written"]);

    place.check(&["table.safetensors", "--rows", "0", "--json", "out.json"], &["rows 60"]);
    let json: Value = serde_json::from_str(&fs::read_to_string(place.path("out.json")).expect("the results")).expect("JSON");
    assert_eq!((&json["rows"], &json["columns"][1], &json["statistics"][1]["max"]), (&60.into(), &"angle".into(), &29.75.into()));
}

#[test]
fn another_programs_file_is_listed() {
    let place = Place::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/fixtures/accuracy-0000-034.safetensors");
    place.check(&[fixture.to_str().expect("a plain path")], &["op: accuracy", "in.logits F32 [374, 11] 16456 bytes"]);
}

#[test]
fn what_is_damaged_or_absent_is_told() {
    let place = Place::new();
    let bytes = fs::read(place.path("table.safetensors")).expect("it was written");
    fs::write(place.path("short"), &bytes[..bytes.len() - 9]).expect("there is room");
    place.refuses(&["short"], "short: ");
    fs::write(place.path("text"), "1,2,3\n4,5,6\n").expect("there is room");
    place.refuses(&["text"], "text: ");

    let mut changed = bytes;
    let last = changed.len() - 100;
    changed[last] ^= 1;
    fs::write(place.path("changed"), changed).expect("there is room");
    place.check(&["changed"], &["rows 60"]);
    place.refuses(&["changed", "--verify"], "changed: ");
    place.refuses(&["none"], "none: cannot open");
}

#[test]
fn options_that_make_no_sense() {
    let place = Place::new();
    for (args, words) in [
        (&[][..], "required arguments were not provided:\n  <TABLE>"),
        (&["a", "b"], "unexpected argument 'b'"),
        (&["table.safetensors", "--rows", "many"], "'many' for '--rows <N>': expected a whole number from 0 to 100000"),
        (&["--frobnicate"], "unexpected argument '--frobnicate'"),
    ] {
        let output = Command::new(built("inspect")).args(args).current_dir(place.dir.path()).output().expect("the example runs");
        check_usage_error(&output, args, &[words]);
    }
    place.refuses(&["table.safetensors", "--json", "no/such/file"], "--json wants a file in a folder that is there");
}
