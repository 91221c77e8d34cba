//! The `higgs` example, called from the command line.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use brisk_table::{Schema, Table, TableWriter};
use brisk_train::Checkpoint;
use serde_json::Value;
use tempfile::TempDir;

use crate::run::noise;
use crate::say::say;
use crate::usage::{check_help, check_usage_error};

/// A folder to work in, with valid files in it.
struct Place(crate::place::Place);

impl Deref for Place {
    type Target = crate::place::Place;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The header of the columns.
const HEADER: &str = "label,mass,angle,charge";

impl Place {
    fn new() -> Self {
        let place = Self(crate::place::Place::new());
        place.csv("train.csv", |_, _| {});
        place.csv("test.csv", |_, _| {});
        place
    }

    /// Sixty rows of a label and three columns, each changed by `change`.
    fn csv(&self, name: &str, change: impl Fn(usize, &mut Vec<String>)) {
        let line = |row: usize| {
            let mut cells: Vec<_> = (0..4).map(|col| format!("{:.3}", noise(row, col))).collect();
            cells[0] = (row % 2).to_string();
            change(row, &mut cells);
            cells.join(",")
        };
        let lines: Vec<_> = std::iter::once(HEADER.to_owned()).chain((0..60).map(line)).collect();
        self.write(name, lines.join("\n") + "\n");
    }

    /// The bytes of the same as a table.
    fn table(&self, name: &str, change: impl FnOnce(&mut [f32], &mut [f32])) -> Vec<u8> {
        let mut features: Vec<f32> = (0..60 * 3).map(|i| noise(i, 9)).collect();
        let mut labels: Vec<f32> = (0..60).map(|row| (row % 2) as f32).collect();
        change(&mut features, &mut labels);
        let schema = Schema { label_names: vec!["label".into()], ..Schema::named(["mass", "angle", "charge"]) };
        let mut writer = TableWriter::create(self.path(name), schema).expect("the folder is there");
        writer.push(&features, &labels).expect("60 rows of 3 columns");
        writer.finish().expect("there is room for a small file");
        fs::read(self.path(name)).expect("it was written")
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the example runs")
    }

    fn command(&self, args: &[&str]) -> Command {
        let small = ["--data-dir", "data", "--runs", "runs", "--epochs", "1", "--hidden", "8"];
        self.0.command("higgs", &[&small, args].concat())
    }

    /// Checks that these options are refused on one line that contains all of `words`, and that only complete files are left.
    #[track_caller]
    fn check(&self, args: &[&str], words: &[&str]) {
        let line = self.refusal(args, words);
        assert!(!self.path("runs").is_dir(), "{args:?}: no run has begun: {line}");
    }

    /// The same, for a run that has started.
    #[track_caller]
    fn refusal(&self, args: &[&str], words: &[&str]) -> String {
        let output = self.run(args);
        let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}: there is no result");
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
        let errors: Vec<_> = stderr.lines().filter(|line| line.starts_with("error:")).collect();
        let last = stderr.lines().last().expect("something is said").to_owned();
        assert_eq!(errors, [&last], "{args:?}: one line, the last: {stderr}");
        for word in words {
            assert!(last.contains(word), "{args:?}: no `{word}` in: {last}");
        }
        let parts: Vec<_> = last.split(": ").collect();
        let is_told_twice = |part: &&str| part.len() > 10 && parts.iter().filter(|other| *other == part).count() > 1;
        assert!(!parts.iter().any(is_told_twice), "{args:?}: the same is told twice: {last}");
        for dir in ["data", "runs"] {
            check_whole(&self.path(dir));
        }
        last
    }

    /// Checks that `bad` is refused as the training file, and as the test file.
    #[track_caller]
    fn check_file(&self, bad: &str, words: &[&str]) {
        let words = [&[bad], words].concat();
        self.check(&["--train", bad, "--test", "test.csv"], &words);
        self.check(&["--train", "train.csv", "--test", bad], &words);
    }
}

/// Checks that every file below `dir` can be used.
#[track_caller]
fn check_whole(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        assert!(!name.starts_with('.') && !name.contains("tmp"), "{} is left behind", path.display());
        if path.is_dir() {
            check_whole(&path);
        } else if ["best.safetensors", "last.safetensors"].contains(&name.as_str()) {
            Checkpoint::load(&path).expect("a checkpoint is whole");
        } else if name.ends_with(".safetensors") {
            Table::open(&path).and_then(|table| table.verify()).expect("a table is whole");
        }
    }
}

#[test]
fn help_is_the_documentation() {
    let options = "train test label rows device batch epochs patience hidden lr seed runs data-dir json precision \
        accumulate clip";
    check_help("higgs", options);
}

#[test]
fn options_that_make_no_sense() {
    let place = Place::new();
    for (args, words) in [
        (&["--nosuch"][..], &["unexpected argument '--nosuch'"][..]),
        (&["--epoch", "3"], &["unexpected argument '--epoch'", "a similar argument exists: '--epochs'"]),
        (&["surplus"], &["unexpected argument 'surplus'"]),
        (&["--train", "train.csv"], &["required arguments were not provided", "--test <FILE>"]),
        (&["--test", "test.csv"], &["required arguments were not provided", "--train <FILE>"]),
        (&["--epochs"], &["a value is required for '--epochs <N>'"]),
        (&["--epochs", "0"], &["'0' for '--epochs <N>'", "a whole number from 1 to 2^40"]),
        (&["--epochs", "99999999999999"], &["'99999999999999' for '--epochs <N>'", "2^40"]),
        (&["--batch", "-1"], &["'-1' for '--batch <N>'", "a whole number"]),
        (&["--precision", "f8"], &["'f8' for '--precision <TYPE>'", "f32, f16, bf16"]),
        (&["--accumulate", "0"], &["'0' for '--accumulate <N>'", "from 1"]),
        (&["--clip", "0"], &["'0' for '--clip <NORM>'", "a number above 0"]),
        (&["--hidden", "8,x"], &["'8,x' for '--hidden <A,B,C>'", "`x`: expected a whole number from 1 to 65536"]),
        (&["--lr", "nan"], &["'nan' for '--lr <RATE>'", "a number above 0"]),
        (&["--lr", "0"], &["'0' for '--lr <RATE>'", "a number above 0"]),
        (&["--rows", "5"], &["'5' for '--rows <N>'", "from 100"]),
        (&["--on-bad-row", "skp"], &["fail, skip", "a similar value exists: 'skip'"]),
    ] {
        check_usage_error(&place.run(args), args, words);
    }
    for (args, words) in [
        (&["--json", "nosuch/results.json"][..], &["nosuch/results.json", "a folder that exists"][..]),
        (&["--json", "."], &["--json cannot be written: is a folder"]),
    ] {
        place.check(args, words);
    }
    let train = fs::read(place.path("train.csv")).expect("it is there");
    fs::create_dir(place.path("made")).expect("it can be created");
    place.check(
        &["--rows", "100", "--out", "made", "--resume", "auto", "--json", "made/last.safetensors"],
        &["--json names the same file as the run"],
    );
    place.check(
        &["--train", "train.csv", "--test", "test.csv", "--json", "./train.csv"],
        &["--json names the same file as --train"],
    );
    assert_eq!(fs::read(place.path("train.csv")).expect("it is there"), train, "the rows are as they were");
    assert!(!place.path("data").exists() && !place.path("runs").exists(), "nothing was imported, simulated or trained");
}

#[test]
fn a_device_that_is_not_there() {
    Place::new().check(&["--device", "nosuch"], &["no device `nosuch`; available are ", "cpu"]);
}

#[test]
fn files_that_are_no_tables() {
    let place = Place::new();
    place.check_file("nosuch.csv", &["cannot open", "No such file"]);
    fs::create_dir(place.path("folder.csv")).expect("the name is free");
    place.check_file("folder.csv", &["is a folder, expected a file"]);
    fs::create_dir(place.path("folder.safetensors")).expect("the name is free");
    place.check_file("folder.safetensors", &["is a folder, expected a file"]);
    place.write("empty.csv", "");
    place.check_file("empty.csv", &["an empty file, expected rows"]);
    place.write("header.csv", format!("{HEADER}\n"));
    place.check_file("header.csv", &["a header and no rows"]);
    place.write("broken.csv.gz", b"\x1f\x8b\x08\x00 this is no deflate stream");
    place.check_file("broken.csv.gz", &[]);
}

#[test]
fn cells_that_cannot_be_read_are_named_by_line_and_column() {
    let place = Place::new();
    place.csv("ragged.csv", |row, cells| {
        if row == 7 {
            cells.push("1".into())
        }
    });
    place.check_file("ragged.csv", &["has 4 columns, line 9 has 5", "correct it or pass `--on-bad-row skip`"]);
    place.csv("short.csv", |row, cells| {
        if row == 7 {
            cells.truncate(3)
        }
    });
    place.check_file("short.csv", &["has 4 columns, line 9 has 3", "correct it"]);
    for (name, cell) in [("word.csv", "hello"), ("nan.csv", "NaN"), ("infinite.csv", "inf"), ("missing.csv", "")] {
        place.csv(name, |row, cells| {
            if row == 7 {
                cells[2] = cell.into()
            }
        });
        place.check_file(name, &["line 9", "column 3 (`angle`)", &format!("found {cell:?}, expected"), "--on-bad-row skip"]);
    }
    place.csv("label.csv", |row, cells| {
        if row == 7 {
            cells[0] = "2".into()
        }
    });
    place.check_file(
        "label.csv",
        &["line 9", "column 1 (`label`)", "found \"2\", expected a label 0 or 1; name another column with `--label`"],
    );
    place.check(
        &["--train", "train.csv", "--test", "test.csv", "--label", "nosuch"],
        &["train.csv", "no column `nosuch`", "angle"],
    );
    place.check(&["--train", "train.csv", "--test", "test.csv", "--label", "9"], &["train.csv", "no column", "angle"]);
    place.csv("other.csv", |_, cells| cells.truncate(3));
    place.write("other.csv", fs::read_to_string(place.path("other.csv")).expect("it was written").replace(",charge", ""));
    place.check_file("other.csv", &["columns", "differ"]);
}

#[test]
fn rows_that_cannot_be_read_are_left_out_when_asked_and_counted() {
    let place = Place::new();
    place.csv("word.csv", |row, cells| {
        if row == 7 {
            cells[2] = "hello".into()
        }
    });
    let args = ["--train", "word.csv", "--test", "test.csv", "--on-bad-row", "skip", "--epochs", "1", "--hidden", "4"];
    let output = place.run(&args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "skipping ends well: {said}");
    assert!(said.contains("skipped 1 rows") && said.contains("line 9"), "what was left out is said: {said}");
}

#[test]
fn tables_that_were_cut_off_or_forged() {
    let place = Place::new();
    let good = place.table("good.safetensors", |_, _| {});
    for len in [0, 5, 100, good.len() / 2, good.len() - 1] {
        place.write("cut.safetensors", &good[..len]);
        place.check_file("cut.safetensors", &[]);
    }
    place.write("forged.safetensors", [&[0xff; 8], &good[8..]].concat());
    place.check_file("forged.safetensors", &["header"]);
    let header_end = 8 + u64::from_le_bytes(good[..8].try_into().expect("eight bytes")) as usize;
    let header = std::str::from_utf8(&good[8..header_end]).expect("the header is JSON");
    for (from, to) in [("[60,3]", "[90,3]"), ("[60,3]", "[60,0]"), ("[0,720]", "[0,960]"), ("\"F32\"", "\"X99\""), ("{", "[")] {
        let forged = header.replacen(from, to, 1);
        assert_ne!(forged, header, "`{from}` is in the header");
        place.write("forged.safetensors", [&good[..8], forged.as_bytes(), &good[header_end..]].concat());
        place.check_file("forged.safetensors", &[]);
    }
}

#[test]
fn tables_that_cannot_be_trained_on() {
    let place = Place::new();
    for (name, bad, found) in [("nan.safetensors", f32::NAN, " is NaN"), ("infinite.safetensors", f32::NEG_INFINITY, " is -inf")]
    {
        // Everywhere, so that both parts of the training rows have one.
        place.table(name, |features, _| features.iter_mut().skip(1).step_by(3).for_each(|x| *x = bad));
        place.table("good.safetensors", |_, _| {});
        let words = [name, "column 1 (`angle`) of row ", found, "replace missing values"];
        place.check(&["--train", name, "--test", "good.safetensors"], &words);
        place.check(&["--train", "good.safetensors", "--test", name], &words);
    }
    place.table("label.safetensors", |_, labels| labels[3] = 2.0);
    place.check_file("label.safetensors", &["is 2, expected 0 or 1"]);
    place.csv("ones.csv", |_, cells| cells[0] = "1".into());
    place.check(&["--train", "ones.csv", "--test", "test.csv"], &["ones.csv", "all of class 1, expected rows of both classes"]);
    place.check(&["--train", "train.csv", "--test", "ones.csv"], &["ones.csv", "all 60 labels are 1, expected both classes"]);
    place.write("two.csv", format!("{HEADER}\n0,1,2,3\n1,4,5,6\n"));
    place.check(&["--train", "two.csv", "--test", "test.csv"], &["two.csv"]);
}

#[test]
fn folders_that_cannot_be_written() {
    let place = Place::new();
    let files = ["--train", "train.csv", "--test", "test.csv"];
    place.write("file", "in the way");
    for (option, path) in [("--runs", "file"), ("--runs", "file/below"), ("--data-dir", "file"), ("--data-dir", "file/below")] {
        place.check(&[&files[..], &[option, path]].concat(), &[path, option, "needs a folder, and file is not one"]);
    }
    place.check(&["--data-dir", "file"], &["file: --data-dir needs a folder"]);
    assert_eq!(fs::read_to_string(place.path("file")).expect("it is there"), "in the way", "what was there is as it was");
}

#[test]
fn a_rate_that_leads_nowhere() {
    let place = Place::new();
    let args = ["--train", "train.csv", "--test", "test.csv", "--lr", "1e30", "--batch", "8"];
    place.refusal(&args, &["the loss of epoch 1, step", "lower the learning rate"]);
}

#[test]
fn a_disk_that_is_full() {
    let Some(full) = SmallDisk::mount() else {
        say("a disk of 256 KiB cannot be mounted here: THE TEST OF A FULL DISK HAS NOT RUN");
        return;
    };
    let place = Place::new();
    let disk = full.0.path().to_str().expect("the path is UTF-8");
    let is_empty = || fs::read_dir(disk).expect("the disk is there").next().is_none();

    place.check(&["--rows", "3000", "--data-dir", disk], &["No space left", disk]);
    assert!(is_empty(), "the simulated rows: nothing is left behind");

    place.csv("large.csv", |_, _| {});
    let text = fs::read_to_string(place.path("large.csv")).expect("it was written");
    let rows = text.split_once('\n').expect("it has a header").1.repeat(500);
    place.write("large.csv", format!("{HEADER}\n{rows}"));
    place.check(&["--train", "large.csv", "--test", "test.csv", "--data-dir", disk], &["No space left", disk]);
    assert!(is_empty(), "the imported table: nothing is left behind");

    let args = ["--train", "train.csv", "--test", "test.csv", "--hidden", "300,300", "--runs", disk];
    place.check(&args, &["best.safetensors", "No space left", "make room"]);
    check_whole(Path::new(disk));
    assert!(!is_empty(), "the settings and the log of the run stay");
}

/// A disk of 256 KiB in memory, which only root can create.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder for a while");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(dir.path()).output();
        mount.is_ok_and(|output| output.status.success()).then(|| Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_simulated_run_and_its_results() {
    let place = Place::new();
    let args = ["--rows", "400", "--epochs", "2", "--json", "results.json"];
    let output = place.run(&args);
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).expect("the table is UTF-8");
    assert!(table.contains("simulated collisions, not measured ones"), "it says what the rows are: {table}");
    check_whole(&place.path("data"));
    check_whole(&place.path("runs"));

    let text = fs::read_to_string(place.path("results.json")).expect("the results are there");
    let results: Value = serde_json::from_str(&text).expect("they are JSON");
    for key in ["seconds", "loader_rows_per_s", "train_rows_per_s", "planned_peak_bytes"] {
        assert!(results[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {text}");
    }
    for (key, value) in [
        ("executor", Value::from("cpu")),
        ("seed", 0.into()),
        ("rows", 400.into()),
        ("epochs", 2.into()),
        ("precision", "f32".into()),
        ("resolved", "stored in f32, computed in f32".into()),
        ("simulated", true.into()),
    ] {
        assert_eq!(results[key], value, "{key}: {text}");
    }
    assert!(results["device"].as_str().is_some_and(|device| device.contains("cpu")), "{text}");
    assert!(results["test_auc"].as_f64().is_some_and(|auc| (0.0..=1.0).contains(&auc)), "{text}");
    assert_eq!(results["allocated_bytes"], results["planned_peak_bytes"], "what was planned is what was held: {text}");

    let run = place.path(results["run_folder"].as_str().expect("the run has a folder"));
    for name in ["config.json", "metrics.csv", "metrics.json", "best.safetensors", "last.safetensors"] {
        assert!(run.join(name).is_file(), "{name} is in the folder of the run");
    }

    // The second time, the files exist already, and the numbers are the same.
    let output = place.run(&args);
    assert!(String::from_utf8_lossy(&output.stderr).contains("imported before, unchanged"), "{output:?}");
    let again: Value = serde_json::from_slice(&fs::read(place.path("results.json")).expect("it is there")).expect("JSON");
    assert_eq!(again["test_auc"], results["test_auc"], "the same seed gives the same run");
    assert_eq!(fs::read_dir(place.path("runs")).expect("it is there").count(), 2, "each run has a folder of its own");
}

#[test]
fn an_unknown_family_of_products_is_an_error() {
    let output = Place::new().command(&["--rows", "400"]).env("BRISK_FAMILY", "coops").output().expect("the example runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("BRISK_FAMILY: no family of matrix products is called `coops`; choose"),
        "{said}"
    );
}

#[test]
fn a_run_in_16_bits_says_so() {
    let place = Place::new();
    for (precision, is_scaled) in [("f16", true), ("bf16", false)] {
        let args = ["--rows", "400", "--precision", precision, "--batch", "32", "--accumulate", "2", "--clip", "1"];
        let output = place.run(&[&args[..], &["--json", "results.json"]].concat());
        assert!(output.status.success(), "{output:?}");
        let table = String::from_utf8(output.stdout).expect("the table is UTF-8");
        let line = table.lines().find(|line| line.starts_with("precision ")).expect("a line of its own");
        assert_eq!((line.contains(precision), line.contains("steps skipped")), (true, is_scaled), "{line}");
        let text = fs::read_to_string(place.path("results.json")).expect("the results are there");
        let results: Value = serde_json::from_str(&text).expect("they are JSON");
        assert_eq!(results["precision"], precision, "{text}");
        let stored = format!("stored in {precision}, computed in f32, converted by bits");
        let resolved = results["resolved"].as_str().unwrap_or_default();
        assert!(resolved.starts_with(&stored) && line.contains(resolved), "{line}\n{text}");
        assert_eq!(results["loss_scale"].as_f64().is_some_and(|scale| scale > 0.0), is_scaled, "{text}");
        assert_eq!(results["skipped_steps"].is_u64(), is_scaled, "{text}");
        assert_eq!(results["allocated_bytes"], results["planned_peak_bytes"], "what was planned is what was held: {text}");
    }
}

#[test]
fn a_reader_that_has_seen_enough() {
    let place = Place::new();
    for args in [&["--help"][..], &["--train", "train.csv", "--test", "test.csv"]] {
        let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the example ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("panicked"), "{args:?}: {stderr}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn results_that_nobody_can_take() {
    let place = Place::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has one");
    let args = ["--train", "train.csv", "--test", "test.csv", "--json", "results.json"];
    let output = place.command(&args).stdout(full).output().expect("the example runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error: cannot write to standard output: No space left"), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(place.path("results.json").is_file(), "what can be written is");
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_utf8() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    let place = Place::new();
    let name = |text: &str| OsString::from_vec([text.as_bytes(), b"\xff"].concat());
    for (from, to) in [("train.csv", "train"), ("test.csv", "test")] {
        fs::rename(place.path(from), place.path(name(to))).expect("Linux takes any bytes");
    }
    let mut command = place.command(&[]);
    for (option, value) in
        [("--train", "train"), ("--test", "test"), ("--data-dir", "data"), ("--runs", "runs"), ("--json", "json")]
    {
        command.arg(option).arg(name(value));
    }
    let output = command.output().expect("the example runs");
    assert!(output.status.success(), "{output:?}");
    assert!(place.path(name("data")).is_dir(), "the names are those that were given");
    let text = fs::read(place.path(name("json"))).expect("the results are there");
    let results: Value = serde_json::from_slice(&text).expect("they are JSON, and UTF-8");
    assert!(results["run_folder"].as_str().is_some_and(|folder| folder.starts_with("runs\u{fffd}/")), "{results}");

    // It panics neither as an option nor in an error message.
    let output = place.command(&[]).arg(name("--epochs")).output().expect("the example runs");
    check_usage_error(&output, &["--epochs\\xff"], &["unexpected argument '--epochs\u{fffd}'"]);
    let output = place.command(&[]).arg("--epochs").arg(name("3")).output().expect("the example runs");
    check_usage_error(&output, &["--epochs 3\\xff"], &["invalid UTF-8 was detected in one or more arguments"]);
    let output = place.command(&["--train", "nosuch", "--test"]).arg(name("nosuch")).output().expect("the example runs");
    let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert!(output.status.code() == Some(1) && stderr.starts_with("error: nosuch: cannot open"), "{stderr}");
}

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let place = Place::new();
    #[track_caller]
    fn check(output: &Output, escaped: &str) {
        let said = [&output.stdout[..], &output.stderr].concat();
        assert!(!said.contains(&b'\x1b'), "{output:?}");
        let said = String::from_utf8(said).expect("messages are UTF-8");
        assert!(said.contains(escaped) && !said.contains("panicked"), "no `{escaped}` in: {said}");
    }
    check(&place.run(&["--\u{1b}[31mred"]), "--\\u{1b}[31mred");
    check(&place.run(&["--train", "\u{1b}]0;title\u{7}", "--test", "test.csv"]), "\\u{1b}]0;title\\u{7}: cannot open");
    place.csv("word.csv", |row, cells| {
        if row == 7 {
            cells[1] = "\u{1b}[2J".into()
        }
    });
    check(&place.run(&["--train", "word.csv", "--test", "test.csv"]), "found \"\\u{1b}[2J\"");
    for name in ["train.csv", "test.csv"] {
        let text = fs::read_to_string(place.path(name)).expect("it was written");
        place.write(&format!("\u{1b}{name}"), text.replacen("mass", "ma\u{1b}[31mss", 1));
    }
    let output = place.run(&["--train", "\u{1b}train.csv", "--test", "\u{1b}test.csv", "--runs", "\u{1b}runs"]);
    assert!(output.status.success(), "{output:?}");
    check(&output, "\\u{1b}runs");
}

#[test]
fn test_rows_are_never_training_rows() {
    let place = Place::new();
    let mut rows = Vec::new();
    for n in ["100", "104"] {
        let output = place.run(&["--rows", n]);
        assert!(output.status.success(), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let files: Vec<_> =
            stderr.lines().filter_map(|line| line.strip_prefix("simulating ")?.split_once(" collisions: ")).collect();
        let [(n_train, train), (n_test, test)] = files[..] else { panic!("both files are simulated: {stderr}") };
        assert_eq!((n_train, n_test), (n, "20"), "{stderr}");
        let lines = |file: &str| {
            fs::read_to_string(place.path(file)).expect("it is there").lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let (train, test) = (lines(train), lines(test));
        assert!(train.iter().all(|row| !test.contains(row)), "--rows {n}: no row is in both files");
        rows.push((train, test));
    }
    assert_eq!(rows[0].0, rows[1].0[..100], "the training rows of the shorter run are the first of the longer one");
    assert!(rows[1].0[100..].iter().all(|row| rows[0].1.contains(row)), "and its test rows are the rows that follow");
}

#[test]
fn a_damaged_simulated_file_is_simulated_again() {
    let place = Place::new();
    let first = place.run(&["--rows", "100", "--json", "first.json"]);
    assert!(first.status.success(), "{first:?}");
    for entry in fs::read_dir(place.path("data")).expect("it is there").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "csv") {
            let text = fs::read_to_string(entry.path()).expect("it is text");
            fs::write(entry.path(), &text[..text.len() / 2]).expect("it can be replaced");
        }
    }
    let second = place.run(&["--rows", "100", "--json", "second.json"]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.success() && said.matches("simulating ").count() == 2, "{said}");
    let auc = |name| {
        let results: Value = serde_json::from_slice(&fs::read(place.path(name)).expect("it is there")).expect("JSON");
        results["test_auc"].as_f64().expect("a number")
    };
    assert_eq!(auc("first.json"), auc("second.json"), "the rows are the same");
}

#[test]
fn two_runs_over_the_same_folders_at_once() {
    let place = Place::new();
    let args = ["--rows", "400", "--seed", "3"];
    let start = || place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example runs");
    for child in [start(), start(), start()] {
        let output = child.wait_with_output().expect("the example ends");
        assert!(output.status.success(), "{output:?}");
    }
    check_whole(&place.path("data"));
    check_whole(&place.path("runs"));
    assert_eq!(fs::read_dir(place.path("runs")).expect("it is there").count(), 3, "each run has a folder of its own");
}

#[test]
fn files_of_ones_own() {
    let place = Place::new();
    place.table("train.safetensors", |_, _| {});
    for (train, test) in [("train.csv", "test.csv"), ("train.safetensors", "test.csv"), ("train.csv", "train.safetensors")] {
        let output = place.run(&["--train", train, "--test", test, "--label", "label"]);
        assert!(output.status.success(), "{train}, {test}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("from the files given"), "{output:?}");
    }
}

#[test]
fn a_table_of_somebody_elses_with_labels_in_bytes() {
    let place = Place::new();
    let (features, labels): (Vec<u8>, Vec<u8>) =
        ((0..60 * 3).flat_map(|i| noise(i, 9).to_le_bytes()).collect(), (0..60).map(|row| row % 2).collect());
    let header = "{\"features\":{\"dtype\":\"F32\",\"shape\":[60,3],\"data_offsets\":[0,720]},\
        \"labels\":{\"dtype\":\"U8\",\"shape\":[60],\"data_offsets\":[720,780]}}";
    let header = format!("{header:<200}");
    place.write("bytes.safetensors", [&200_u64.to_le_bytes(), header.as_bytes(), &features, &labels].concat());
    let output = place.run(&["--train", "bytes.safetensors", "--test", "bytes.safetensors"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn measured_collisions_are_told_apart() {
    let Some(data) = std::env::var_os("BRISK_DATA").map(PathBuf::from) else {
        say("BRISK_DATA is not set: THE RUN OVER MEASURED COLLISIONS HAS NOT RUN");
        return;
    };
    let file = |name: &str| data.join("higgs").join(name).into_os_string().into_string().expect("the path is UTF-8");
    let (train, test) = (file("higgs_train.csv.gz"), file("higgs_test.csv.gz"));
    let place = Place::new();
    let output = place.run(&["--train", &train, "--test", &test, "--hidden", "32", "--json", "results.json"]);
    assert!(output.status.success(), "{output:?}");
    let results: Value = serde_json::from_slice(&fs::read(place.path("results.json")).expect("it is there")).expect("JSON");
    let auc = results["test_auc"].as_f64().expect("the test AUC is a number");
    assert!(auc > 0.62, "one epoch of a small network reaches 0.62, got {auc}");
    assert_eq!((&results["rows"], &results["simulated"]), (&Value::from(33_813), &Value::from(false)), "{results}");
}
