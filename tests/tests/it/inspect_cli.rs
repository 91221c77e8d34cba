//! The `inspect` example, called from the command line.

use std::fs;
use std::path::Path;
use std::process::Command;

use brisk_table::{Schema, ShardSize, ShardedWriter, TableWriter};
use serde_json::Value;

use crate::example::built;
use crate::place::Place;
use crate::usage::check_usage_error;

/// A folder with a table of 60 rows in it, and the same table as shards.
fn place() -> Place {
    let place = Place::new();
    let features: Vec<f32> = (0..120).map(|i| i as f32 / 4.0).collect();
    let labels: Vec<f32> = (0..60).map(|row| (row % 2) as f32).collect();
    let schema = Schema { label_names: vec!["signal".into()], ..Schema::named(["mass", "angle"]) };
    let mut writer = TableWriter::create(place.path("table.safetensors"), schema.clone()).expect("the folder is there");
    writer.push(&features, &labels).expect("60 rows of 2 columns");
    writer.finish().expect("there is room for a small file");
    let mut writer = ShardedWriter::create(place.path("shards"), schema, ShardSize::Rows(25)).expect("the folder is there");
    writer.push(&features, &labels).expect("60 rows of 2 columns");
    writer.finish().expect("there is room for small files");
    place
}

fn run(place: &Place, args: &[&str]) -> (Option<i32>, String, String) {
    let (output, stderr) = place.run("inspect", args);
    (output.status.code(), String::from_utf8(output.stdout).expect("messages are UTF-8"), stderr)
}

/// Checks that the lines of its output, with blanks collapsed, contain `lines`.
#[track_caller]
fn check(place: &Place, args: &[&str], lines: &[&str]) {
    let (code, stdout, stderr) = run(place, args);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
    let found: Vec<String> = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in lines {
        assert!(found.iter().any(|found| found == line), "{args:?}: no `{line}` in:\n{stdout}");
    }
}

/// Checks that it is refused on one line that contains `words`.
#[track_caller]
fn refuses(place: &Place, args: &[&str], words: &str) {
    let stderr = place.refuse("inspect", args, &[words]);
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
}

const ROWS: [&str; 4] = ["column missing mean std min max", "row label mass angle", "0 0 0 0.25", "1 1 0.5 0.75"];

#[test]
fn a_table_and_a_folder_of_shards() {
    let place = place();
    let lines = ["rows 60", "features F32 [2]", "labels signal, F32", "checksums not checked; --verify does"];
    check(&place, &["table.safetensors"], &[&["table table.safetensors, one file"], &lines[..], &ROWS].concat());
    check(&place, &["shards"], &[&["table shards, 3 shards"], &lines[..], &ROWS].concat());
    check(&place, &["shards", "--verify"], &["checksums every byte is as it was written"]);

    check(&place, &["table.safetensors", "--rows", "0", "--json", "out.json"], &["rows 60"]);
    let json: Value = serde_json::from_str(&fs::read_to_string(place.path("out.json")).expect("the results")).expect("JSON");
    assert_eq!((&json["rows"], &json["columns"][1], &json["statistics"][1]["max"]), (&60.into(), &"angle".into(), &29.75.into()));
}

#[test]
fn another_programs_file_is_listed() {
    let place = place();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/fixtures/accuracy-0000-034.safetensors");
    check(&place, &[fixture.to_str().expect("a plain path")], &["op: accuracy", "in.logits F32 [374, 11] 16456 bytes"]);
}

#[test]
fn what_is_damaged_or_absent_is_told() {
    let place = place();
    let bytes = fs::read(place.path("table.safetensors")).expect("it was written");
    fs::write(place.path("short"), &bytes[..bytes.len() - 9]).expect("there is room");
    refuses(&place, &["short"], "short: ");
    fs::write(place.path("text"), "1,2,3\n4,5,6\n").expect("there is room");
    refuses(&place, &["text"], "text: ");

    let mut changed = bytes;
    let last = changed.len() - 100;
    changed[last] ^= 1;
    fs::write(place.path("changed"), changed).expect("there is room");
    check(&place, &["changed"], &["rows 60"]);
    refuses(&place, &["changed", "--verify"], "changed: ");
    refuses(&place, &["none"], "none: cannot open");
}

/// A report does not replace a file that is read.
#[test]
fn reports_over_the_table_are_refused() {
    let place = place();
    let before = fs::read(place.path("table.safetensors")).expect("it was written");
    refuses(&place, &["table.safetensors", "--json", "table.safetensors"], "--json names the same file as TABLE");
    assert_eq!(fs::read(place.path("table.safetensors")).expect("it was written"), before, "the table changed");

    let index = "shards/table.safetensors.index.json";
    let before = fs::read(place.path(index)).expect("it was written");
    refuses(&place, &["shards", "--json", index], "--json names a file in the folder TABLE");
    refuses(&place, &[index, "--json", index], "--json names the same file as TABLE");
    let shards = fs::read_dir(place.path("shards")).expect("the folder can be read").map(|entry| entry.expect("an entry").path());
    let shard = shards.into_iter().find(|path| !path.ends_with("table.safetensors.index.json")).expect("a shard");
    refuses(&place, &[index, "--json", shard.to_str().expect("a plain path")], "--json names a file in the folder TABLE");
    assert_eq!(fs::read(place.path(index)).expect("it was written"), before, "the index changed");
    check(&place, &["shards", "--json", "shards/new.json"], &["rows 60"]);
    refuses(&place, &["table.safetensors", "--json", "shards"], "--json cannot be written: is a folder");
}

/// With a flipped bit in the name of a tensor, a table is not mistaken for a file of another program.
#[test]
fn a_table_whose_tensor_has_lost_its_name_is_damaged() {
    let place = place();
    let mut bytes = fs::read(place.path("table.safetensors")).expect("it was written");
    let name = b"\"features\"";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("a tensor of this name");
    bytes[at + 2] ^= 4;
    fs::write(place.path("damaged.safetensors"), bytes).expect("there is room");
    for args in [&["damaged.safetensors"][..], &["damaged.safetensors", "--verify"]] {
        refuses(&place, args, "damaged.safetensors: a damaged table");
    }
    let header = r#"{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}      "#;
    fs::write(place.path("foreign"), [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).expect("room");
    refuses(&place, &["foreign", "--verify"], "without checksums, so that there is nothing to verify");
}

/// Names and values of a file, and its name, are not printed to the terminal unescaped.
#[test]
fn control_characters_are_escaped() {
    let place = place();
    let red = "\u{1b}[31mred\n";
    let schema = Schema { label_names: vec![red.into()], ..Schema::named([red]) };
    let mut writer = TableWriter::create(place.path("red.safetensors"), schema).expect("the folder is there");
    writer.set_classes([red, "b"]).expect("two classes");
    writer.push(&[1.0_f32], &[0.0_f32]).expect("a row");
    writer.finish().expect("there is room for a small file");
    let header =
        r#"{"__metadata__":{"\u001b[32m":"\u001b[33m"},"\u001b[31mred\n":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}      "#;
    fs::write(place.path("foreign"), [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).expect("room");
    for (args, shown) in [
        (&["red.safetensors", "--rows", "1"][..], r"\u{1b}[31mred\n"),
        (&["foreign"][..], r"\u{1b}[31mred\n"),
        (&["foreign"][..], r"\u{1b}[32m: \u{1b}[33m"),
    ] {
        let (code, stdout, stderr) = run(&place, args);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(stdout.contains(shown) && !stdout.contains('\u{1b}'), "{args:?}: {stdout:?}");
    }
    // Longer than the 65,535 columns to which text can be padded.
    let name = "x".repeat(100_000);
    let header = format!("{{\"{name}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}}}      ");
    fs::write(place.path("long"), [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).expect("room");
    let (code, stdout, stderr) = run(&place, &["long"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("x…  U8 [0]") && stdout.len() < 10_000, "{stdout}");

    let (_, stdout, _) = run(&place, &["red.safetensors", "--rows", "1"]);
    assert!(!stdout.contains("red\n\n") && !stdout.lines().any(|line| line.trim() == "red"), "a name breaks a line: {stdout}");
}

#[cfg(unix)]
#[test]
fn names_of_files_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let place = place();
    let [table, foreign, report] = [&b"\xff"[..], b"\xfe", b"\xff.json"].map(OsStr::from_bytes);
    fs::rename(place.path("table.safetensors"), place.path("").join(table)).expect("any bytes are a name");
    let header = r#"{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}   "#;
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    fs::write(place.path("").join(foreign), bytes).expect("there is room");
    for path in [table, foreign] {
        let mut command = Command::new(built("inspect"));
        let output = command.arg(path).arg("--json").arg(report).current_dir(place.path("")).output().expect("the example runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json = fs::read_to_string(place.path("").join(report)).expect("the results");
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["table"], "\u{fffd}");
    }
}

#[test]
fn options_that_make_no_sense() {
    let place = place();
    for (args, words) in [
        (&[][..], "required arguments were not provided:\n  <TABLE>"),
        (&["a", "b"], "unexpected argument 'b'"),
        (&["table.safetensors", "--rows", "many"], "'many' for '--rows <N>': expected a whole number from 0 to 100000"),
        (&["--frobnicate"], "unexpected argument '--frobnicate'"),
    ] {
        let output = Command::new(built("inspect")).args(args).current_dir(place.path("")).output().expect("the example runs");
        check_usage_error(&output, args, &[words]);
    }
    refuses(&place, &["table.safetensors", "--json", "no/such/file"], "--json needs a file in a folder that exists");
}
