//! The `import` example, called from the command line.

use std::fs;
use std::process::{Command, Output};

use brisk_table::{ShardedTable, Table};
use serde_json::Value;

use crate::example::built;
use crate::place::Place;
use crate::usage::check_usage_error;

const GOOD: &str = "signal,pt,eta,id\n1,0.5,-2,a\n0,1.5,3e-2,b\n1,2.5,,c\n";

/// A folder to work in, with a valid file in it.
fn place() -> Place {
    let place = Place::new();
    place.write("in.csv", GOOD);
    place
}

fn run(place: &Place, args: &[&str]) -> (Output, String, String) {
    let (output, stderr) = place.run("import", args);
    let stdout = String::from_utf8(output.stdout.clone()).expect("messages are UTF-8");
    (output, stdout, stderr)
}

/// The files in the folder in addition to `in.csv`.
fn left(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path("")).expect("the folder can be read");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "in.csv").collect()
}

/// Checks that it is refused on one line that contains all of `words`, and that no file is left.
#[track_caller]
fn check(place: &Place, args: &[&str], words: &[&str]) {
    let stderr = place.refuse("import", args, words);
    assert_eq!(stderr.lines().count(), 1, "{args:?}: one line: {stderr}");
    assert!(left(place).is_empty(), "{args:?} leaves {:?}", left(place));
}

#[test]
fn a_table_and_what_is_told_of_it() {
    let place = place();
    let args = [
        "in.csv",
        "out.safetensors",
        "--label",
        "signal",
        "--label-kind",
        "binary",
        "--drop",
        "id",
        "--missing",
        "keep",
        "--stats",
        "--json",
        "out.json",
    ];
    let (output, stdout, stderr) = run(&place, &args);
    assert!(output.status.success() && stderr.is_empty(), "no bar without a terminal: {stderr}");

    let table = Table::open(place.path("out.safetensors")).expect("a table");
    table.verify().expect("whole");
    let found = table.rows::<f32>(0..3).expect("three rows");
    assert_eq!((found[..5].to_vec(), found[5].is_nan()), (vec![0.5, -2.0, 1.5, 3e-2, 2.5], true), "the values of the text");
    assert_eq!(table.labels::<f32>().expect("labels"), [1.0, 0.0, 1.0]);

    let lines: Vec<Vec<&str>> = stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    for line in
        [&["column", "missing", "mean", "std", "min", "max"][..], &["rows", "3"], &["columns", "2"], &["left", "out", "0"]]
    {
        assert!(lines.iter().any(|found| found == line), "no {line:?} in {stdout}");
    }
    assert!(lines.iter().any(|found| found.starts_with(&["eta", "1"])), "one value of `eta` is missing: {stdout}");

    let json = fs::read_to_string(place.path("out.json")).expect("the results");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["rows"], &json["columns"][1]["name"], &json["columns"][1]["count"]), (&3.into(), &"eta".into(), &2.into()));
}

#[test]
fn several_columns_are_labels_if_several_are_named() {
    let place = place();
    let (output, _, stderr) =
        run(&place, &["in.csv", "out.safetensors", "--label", "signal", "--label", "pt", "--drop", "id", "--missing", "keep"]);
    assert!(output.status.success(), "{stderr}");
    let table = Table::open(place.path("out.safetensors")).expect("a table");
    assert_eq!(
        (table.label_names(), table.column_names()),
        (&["signal".to_owned(), "pt".to_owned()][..], &["eta".to_owned()][..])
    );
    assert_eq!(table.labels::<f32>().expect("labels"), [1.0, 0.5, 0.0, 1.5, 1.0, 2.5]);
    std::fs::remove_file(place.path("out.safetensors")).expect("removed");
    check(
        &place,
        &["in.csv", "out.safetensors", "--label", "signal", "--label", "ptt"],
        &["no column `ptt`", "did you mean `pt`?"],
    );
}

#[test]
fn rows_that_cannot_be_read_are_left_out_when_asked() {
    let place = place();
    let (output, stdout, stderr) = run(&place, &["in.csv", "out.safetensors", "--drop", "id", "--on-bad-row", "skip"]);
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.lines().any(|line| line.split_whitespace().eq(["left", "out", "1"])), "{stdout}");
    assert!(stderr.contains("the first row left out: in.csv, line 4, column 3 (`eta`)"), "{stderr}");
}

#[test]
fn refusals_name_the_way_out_in_words_of_options() {
    let place = place();
    let good = ["in.csv", "out.safetensors"];
    check(&place, &good, &["in.csv, line 2, column 4 (`id`): found \"a\"", "`--on-bad-row skip`"]);
    check(&place, &[&good[..], &["--drop", "id"]].concat(), &["line 4, column 3 (`eta`)", "`--missing keep`"]);
    check(
        &place,
        &[&good[..], &["--label", "pt", "--label-kind", "binary", "--drop", "id"]].concat(),
        &["0.5", "`--label-kind number`"],
    );
    check(&place, &[&good[..], &["--label", "mass"]].concat(), &["`mass`", "signal", "eta"]);
    check(&place, &["none.csv", "out.safetensors"], &["none.csv", "No such file"]);
    check(&place, &["in.csv", "no/such/folder/out.safetensors"], &["OUT needs a file in a folder that exists"]);
    check(&place, &[&good[..], &["--json", "no/such/folder.json"]].concat(), &["--json needs a file in a folder that exists"]);
}

/// Files that are read, and anything except regular files, are not replaced; this is checked before anything is written.
#[test]
fn outputs_that_would_destroy_something_are_refused() {
    let place = place();
    fs::create_dir(place.path("folder")).expect("the folder is writable");
    let refused = |args: &[&str], words: &[&str]| {
        let (output, stdout, stderr) = run(&place, args);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(1), ""), "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{args:?}: one line: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{args:?}: no `{word}` in: {stderr}");
        }
        assert_eq!(fs::read_to_string(place.path("in.csv")).expect("it is still there"), GOOD, "{args:?} changed the rows");
    };
    let rest = ["--drop", "id", "--missing", "keep"];
    let args = |words: &[&'static str]| [words, &rest[..]].concat();
    refused(&args(&["in.csv", "in.csv"]), &["OUT names the same file as IN"]);
    refused(&args(&["in.csv", "folder/../in.csv"]), &["OUT names the same file as IN"]);
    refused(&args(&["in.csv", "out", "--json", "in.csv"]), &["--json names the same file as IN"]);
    refused(&args(&["in.csv", "out", "--json", "folder/../out"]), &["--json names the same file as OUT"]);
    refused(&args(&["in.csv", "folder"]), &["folder: OUT cannot be written: is a folder"]);
    refused(&args(&["in.csv", "out", "--json", "folder"]), &["folder: --json cannot be written: is a folder"]);
    assert!(!place.path("out").exists(), "a table was made");
    run(&place, &args(&["in.csv", "train"]));
    let train = fs::read(place.path("train")).expect("a table");
    refused(&["in.csv", "train", "--like", "train"], &["OUT names the same file as --like"]);
    refused(&["in.csv", "out", "--like", "train", "--json", "train"], &["--json names the same file as --like"]);
    assert_eq!(fs::read(place.path("train")).expect("a table"), train, "the table changed");
}

#[cfg(unix)]
#[test]
fn outputs_are_seen_through_links_and_special_files_are_refused() {
    use std::os::unix::fs::{FileTypeExt, symlink};

    let place = place();
    symlink("in.csv", place.path("soft")).expect("links can be made");
    fs::hard_link(place.path("in.csv"), place.path("hard")).expect("links can be made");
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().expect("there is `mkfifo`").success(), "a pipe");
    let before = left(&place);
    for (args, words) in [
        (["in.csv", "soft", "--drop", "id"], "OUT names the same file as IN"),
        (["soft", "in.csv", "--drop", "id"], "OUT names the same file as IN"),
        (["in.csv", "hard", "--drop", "id"], "OUT names the same file as IN"),
        (["in.csv", "out", "--json", "soft"], "--json names the same file as IN"),
        (["in.csv", "/dev/null", "--drop", "id"], "/dev/null: OUT cannot be written: is a device"),
        (["in.csv", "out", "--json", "/dev/null"], "/dev/null: --json cannot be written: is a device"),
        (["in.csv", "pipe", "--drop", "id"], "pipe: OUT cannot be written: is a pipe"),
        (["in.csv", "out", "--json", "pipe"], "pipe: --json cannot be written: is a pipe"),
    ] {
        let (output, _, stderr) = run(&place, &args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: no `{words}` in: {stderr}");
        assert_eq!(left(&place), before, "{args:?} left something");
    }
    assert_eq!(fs::read_to_string(place.path("in.csv")).expect("it is still there"), GOOD);
    assert!(place.path("soft").is_symlink(), "the link was replaced");
    let pipe = fs::metadata(place.path("pipe")).expect("it is still there");
    assert!(pipe.file_type().is_fifo(), "the pipe was replaced");

    // A link to a file is followed: the file is replaced and the link stays.
    fs::create_dir(place.path("disk")).expect("the folder is writable");
    symlink("disk/table", place.path("table")).expect("links can be made");
    let (output, _, stderr) = run(&place, &["in.csv", "table", "--drop", "id", "--missing", "keep"]);
    assert!(output.status.success(), "{stderr}");
    assert!(place.path("table").is_symlink() && !place.path("disk/table").is_symlink(), "the link is not a link any more");
    Table::open(place.path("disk/table")).expect("a table");
}

/// Names and values of the file, and its name, are not printed to the terminal unescaped.
#[test]
fn control_characters_are_escaped() {
    let place = place();
    place.write("red.csv", "y,\u{1b}[31mred,kind\n1,2,\u{1b}[32mgreen\n0,3,b\n");
    let args = ["red.csv", "out", "--categorical", "kind", "--stats"];
    let (output, stdout, stderr) = run(&place, &args);
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.contains(r"\u{1b}[31mred"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout:?}");
    let (_, _, stderr) = run(&place, &["red.csv", "out", "--label", "\u{1b}[33m"]);
    assert!(stderr.contains(r"`\u{1b}[33m`") && !stderr.contains('\u{1b}'), "{stderr:?}");
}

#[cfg(unix)]
#[test]
fn names_of_files_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let place = place();
    let [source, dest, report] = [&b"\xff.csv"[..], b"\xff.safetensors", b"\xff.json"].map(OsStr::from_bytes);
    fs::rename(place.path("in.csv"), place.path("").join(source)).expect("any bytes are a name");
    let mut command = place.command("import", &["--drop", "id", "--missing", "keep", "--json"]);
    let output = command.arg(report).arg(source).arg(dest).output().expect("the example runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.contains("\u{fffd}.safetensors"), "{stdout}");
    Table::open(place.path("").join(dest)).expect("a table").verify().expect("whole");
    let json = fs::read_to_string(place.path("").join(report)).expect("the results");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["source"], "\u{fffd}.csv");

    let missing = place.command("import", &[]).arg(OsStr::from_bytes(b"\xfe")).arg(dest).output().expect("the example runs");
    let stderr = String::from_utf8_lossy(&missing.stderr);
    assert!(missing.status.code() == Some(1) && stderr.starts_with("error: \u{fffd}: cannot open"), "{stderr}");
}

#[test]
fn text_becomes_categories_and_classes() {
    let place = place();
    let args = [
        "in.csv",
        "out.safetensors",
        "--label-kind",
        "classes",
        "--categorical",
        "id",
        "--missing",
        "mean",
        "--indicators",
        "eta",
    ];
    let (output, stdout, stderr) = run(&place, &args);
    assert!(output.status.success(), "{stderr}");
    for words in ["id (4 codes)", "classes     0, 1"] {
        assert!(stdout.contains(words), "no `{words}` in {stdout}");
    }
    place.write("test.csv", "id,eta,pt,signal\nc,,1,0\nz,1,2,1\n");
    let (output, _, stderr) = run(&place, &["test.csv", "test.safetensors", "--like", "out.safetensors"]);
    assert!(output.status.success(), "{stderr}");
    let table = Table::open(place.path("test.safetensors")).expect("a table");
    assert_eq!(table.column_names(), ["pt", "eta", "eta_missing"], "the columns of the other, in its order");
    assert_eq!(table.categories(0..2).expect("two rows"), [3, 0], "`z` is unknown");
    assert!(stderr.contains("lacks 1 of its values") && stderr.contains("\"z\""), "{stderr}");
    assert_eq!(table.rows::<f32>(0..1).expect("a row"), [1.0, -0.985, 1.0], "the mean of the other table");
}

#[test]
fn options_that_make_no_sense() {
    let place = place();
    for (args, words) in [
        (&[][..], &["required arguments were not provided:\n  <IN>\n  <OUT>"][..]),
        (&["in.csv"], &["required arguments were not provided:\n  <OUT>"]),
        (&["a", "b", "c"], &["unexpected argument 'c'"]),
        (&["--frobnicate"], &["unexpected argument '--frobnicate'"]),
        (&["in.csv", "out", "--labl", "pt"], &["a similar argument exists: '--label'"]),
        (&["in.csv", "out", "--label"], &["a value is required for '--label <COLUMN>'"]),
        (
            &["in.csv", "out", "--missing", "zero"],
            &["'zero' for '--missing <ACTION>'", "`error`, `keep`, `mean` or a finite number"],
        ),
        (&["in.csv", "out", "--delimiter", "ab"], &["'ab' for '--delimiter <CHARACTER>'", "one ASCII character, or `tab`"]),
        (&["in.csv", "out", "--threads", "0"], &["'0' for '--threads <N>'", "a whole number from 1 to 1024"]),
        (&["in.csv", "out", "--dtype", "f64"], &["'f64' for '--dtype <TYPE>'", "f32, f16, u8"]),
    ] {
        check_usage_error(&place.command("import", args).output().expect("the example runs"), args, words);
        assert!(left(&place).is_empty(), "{args:?} leaves {:?}", left(&place));
    }
}

#[test]
fn words_for_missing_values_may_begin_with_a_hyphen() {
    let place = place();
    place.write("in.csv", "signal,pt,eta\n1,-999.0,3\n0,-,5\n");
    let args = ["in.csv", "out.safetensors", "--missing-value", "-999.0", "--missing-value", "-", "--missing", "-1"];
    let (output, _, stderr) = run(&place, &args);
    assert!(output.status.success(), "{stderr}");
    let table = Table::open(place.path("out.safetensors")).expect("a table");
    assert_eq!(table.rows::<f32>(0..2).expect("two rows"), [-1.0, 3.0, -1.0, 5.0], "both words are missing values");
}

#[test]
fn a_table_like_another_has_its_settings() {
    let place = place();
    place.write("in.csv", "y,a,b,w\n1,-999,5.5,2\n0,3,6.5,1\n");
    let settings = ["--missing-value", "-999", "--missing", "mean", "--offset", "b=5", "--weight", "w"];
    let (output, _, stderr) = run(&place, &[&["in.csv", "out.safetensors"][..], &settings].concat());
    assert!(output.status.success(), "{stderr}");
    let (output, _, stderr) = run(&place, &["in.csv", "like.safetensors", "--like", "out.safetensors"]);
    assert!(output.status.success(), "{stderr}");
    let table = Table::open(place.path("like.safetensors")).expect("a table");
    assert_eq!(table.rows::<f32>(0..2).expect("two rows"), [3.0, 0.5, 3.0, 1.5]);
    assert_eq!(table.weights().expect("weights"), [2.0, 1.0]);
    let other = ["in.csv", "other.safetensors", "--like", "out.safetensors", "--offset", "b=7"];
    let (output, _, stderr) = run(&place, &other);
    assert!(!output.status.success() && stderr.contains("`b` is 7") && stderr.contains("match it is 5"), "{stderr}");
}

#[test]
fn help_is_a_result() {
    let place = place();
    let (output, stdout, stderr) = run(&place, &["--help"]);
    assert!(output.status.success() && stderr.is_empty() && stdout.contains("--on-bad-row"), "{stdout}{stderr}");
}

/// Starts an import that takes about a second, and waits until it has started to write.
#[cfg(unix)]
fn started(place: &Place, shell: &str) -> std::process::Child {
    use std::process::Stdio;

    let rows = "1,0.333333333,-1.25e-3,17\n".repeat(1 << 21);
    place.write("in.csv", format!("signal,pt,eta,id\n{rows}"));
    let mut command = Command::new("bash");
    command.args(["-c", shell]).env("IMPORT", built("import")).current_dir(place.path(""));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("there is `bash`");
    while left(place).is_empty() {
        assert!(child.try_wait().expect("the example can be asked").is_none(), "it writes before it ends");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child
}

#[cfg(unix)]
fn send(signal: &str, child: &std::process::Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("there is `kill`");
    assert!(sent.success(), "the example still runs");
}

/// The signals of Ctrl-C, batch systems and closed terminals.
#[cfg(unix)]
#[test]
fn a_signal_leaves_nothing() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let place = place();
        let child = started(&place, r#"exec "$IMPORT" in.csv out.safetensors --threads 1"#);
        send(signal, &child);
        let output = child.wait_with_output().expect("the example ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{signal}: {stderr}");
        assert_eq!(stderr, "error: interrupted; out.safetensors is as it was\n", "{signal}");
        assert!(left(&place).is_empty(), "{signal} leaves {:?}", left(&place));
    }
}

/// A script starts background jobs with SIGINT ignored, and it stays ignored: Ctrl-C is for the job in the foreground.
#[cfg(unix)]
#[test]
fn an_import_runs_in_the_background_of_a_script() {
    for shell in [
        r#""$IMPORT" in.csv out.safetensors --threads 1 & wait $!"#,
        r#"trap '' INT; exec "$IMPORT" in.csv out.safetensors --threads 1"#,
    ] {
        let place = place();
        let child = started(&place, shell);
        if shell.starts_with("trap") {
            send("-INT", &child);
        }
        let output = child.wait_with_output().expect("the example ends");
        assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(left(&place), ["out.safetensors"], "{shell}");
    }
}

/// The options of `--help` that any format takes.
const OF_EVERY_FORMAT: [&str; 6] = ["--format", "--stats", "--json", "--shard-rows", "--completions", "--help"];

/// Every other option, with a value that changes something, and the formats that use it.
const OPTIONS: [(&str, &str, &[&str]); 28] = [
    ("--label", "1", &["csv"]),
    ("--label-kind", "classes", &["csv", "svm"]),
    ("--weight", "b", &["csv", "npy"]),
    ("--drop", "b", &["csv"]),
    ("--categorical", "b", &["csv"]),
    ("--missing", "keep", &["csv", "svm", "npy", "idx"]),
    ("--missing-value", "7", &["csv"]),
    ("--indicators", "b", &["csv"]),
    ("--dtype", "f16", &["csv", "svm"]),
    ("--offset", "b=1", &["csv"]),
    // Of files with an index only.
    ("--keep-index", "", &[]),
    ("--like", "like", &["csv", "svm", "npy", "idx", "images"]),
    ("--features", "x", &["npy"]),
    ("--labels", "y", &["npy", "idx"]),
    ("--first-label", "1", &["npy", "idx"]),
    ("--cifar-labels", "fine", &["bin"]),
    ("--cifar-set", "test", &[]),
    ("--channels", "grey", &["images"]),
    ("--size", "2", &["images"]),
    ("--orientation", "stored", &["images"]),
    ("--archive-end", "optional", &["images"]),
    ("--delimiter", ";", &["csv"]),
    ("--decimal", "comma", &["csv"]),
    ("--header", "absent", &["csv"]),
    ("--skip-lines", "1", &["csv"]),
    ("--on-bad-row", "skip", &["csv", "svm", "images"]),
    ("--threads", "1", &["csv", "svm", "images"]),
    // For URLs only.
    ("--retry-seconds", "5", &[]),
];

#[test]
fn an_option_has_an_effect_or_is_refused() {
    let place = place();
    place.write("in.csv", "y,a,b\n1,2,3\n0,4,7\n");
    place.write("in.svm", "1 1:2\n0 2:3\n");
    fs::write(place.path("in.idx"), [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7]).expect("it can be written");
    fs::write(place.path("in.bin"), [7; 3073]).expect("it can be written");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n";
    let npy = [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header.as_bytes(), &[0; 8]].concat();
    fs::write(place.path("in.npy"), npy).expect("it can be written");
    fs::create_dir_all(place.path("in.images/a")).expect("it can be created");
    let (_, help, _) = run(&place, &["--help"]);
    let help = help.split("An option that has no effect").next().unwrap_or_default();
    let named = help.split_whitespace().filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches([',', ']', ')']));
    for option in named.filter(|option| option.len() > 2 && !OF_EVERY_FORMAT.contains(option)) {
        assert!(OPTIONS.iter().any(|(known, ..)| *known == option), "{option} is not in the table of this test");
    }
    for (option, value, formats) in OPTIONS {
        for format in ["csv", "svm", "npy", "idx", "bin", "images"] {
            let source = format!("in.{format}");
            let mut args = vec![&*source, "out", option, value];
            args.retain(|arg| !arg.is_empty());
            let (_, _, stderr) = run(&place, &args);
            let is_refused = stderr.contains(&format!("`{option}` has no effect"));
            assert_eq!(is_refused, !formats.contains(&format), "{args:?}: {stderr}");
        }
    }
    let (output, _, stderr) = run(&place, &["in.npy", "out", "--labels", "0", "--missing", "mean"]);
    assert!(output.status.code() == Some(1) && stderr.contains("`--missing` has no effect"), "{stderr}");
}

#[test]
fn what_is_suspicious_is_told() {
    let place = place();
    let rows: String = (0..200).map(|row| format!("{row},{},{},{}\n", row % 3, 1_700_000_000 + 3 * row, row * 7 % 11)).collect();
    place.write("frame.csv", format!(",y,time,a\n{rows}"));
    let args = ["frame.csv", "out.safetensors", "--label", "y", "--json", "out.json"];
    let (output, _, stderr) = run(&place, &args);
    assert!(output.status.success(), "{stderr}");
    for words in
        ["the index of a data frame: column_0; --keep-index", "warning: column `time`: f32 has too few digits", "`--offset`"]
    {
        assert!(stderr.contains(words), "no `{words}` in {stderr}");
    }
    let json = fs::read_to_string(place.path("out.json")).expect("the results");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["index_columns"][0], json["warnings"].as_array().map(Vec::len)), (&"column_0".into(), Some(1)));
    let (_, _, stderr) = run(&place, &[&args[..], &["--offset", "time=1.7e9"]].concat());
    assert!(!stderr.contains("warning"), "{stderr}");
    let (output, _, stderr) = run(&place, &["frame.csv", "out.safetensors"]);
    assert!(output.status.code() == Some(1) && stderr.contains("`--label`") && stderr.contains("`--keep-index`"), "{stderr}");
}

#[test]
fn shards_are_a_folder_with_an_index() {
    let place = Place::new();
    place.write("in.csv", "y,x\n0,1\n1,2\n0,3\n1,4\n0,5\n");
    let shown = place.succeed("import", &["in.csv", "shards", "--shard-rows", "2"]);
    assert!(shown.contains("shards"), "{shown}");
    assert_eq!(left(&place), ["shards"], "nothing else is left");
    let table = ShardedTable::open(place.path("shards")).expect("it is a table");
    assert_eq!((table.n_rows(), table.n_shards(), table.column_names()), (5, 3, &["x".to_owned()][..]));
    place.refuse("import", &["in.csv", "in.csv", "--shard-rows", "2"], &["in.csv", "folder"]);
}

#[test]
fn a_table_is_copied_as_it_is() {
    let place = Place::new();
    place.write("in.csv", "y,x,c\nb,1,u\na,2,v\nb,3,u\na,,w\nb,5,u\n");
    place.succeed(
        "import",
        &["in.csv", "one.safetensors", "--label-kind", "classes", "--categorical", "auto", "--missing", "mean"],
    );
    place.succeed("import", &["one.safetensors", "shards", "--shard-rows", "2"]);
    let shown = place.succeed("import", &["shards", "again.safetensors", "--stats", "--json", "again.json"]);
    assert!(shown.contains("c (4 codes)") && shown.contains("a, b"), "{shown}");
    assert_eq!(place.json("again.json")["rows"], 5);
    let [one, again] = ["one.safetensors", "again.safetensors"].map(|name| Table::open(place.path(name)).expect("a table"));
    let shards = ShardedTable::open(place.path("shards")).expect("a table");
    assert_eq!((shards.n_rows(), shards.n_shards()), (5, 3));
    assert_eq!(again.rows::<f32>(0..5).expect("floats"), one.rows::<f32>(0..5).expect("floats"));
    assert_eq!(again.labels::<u32>().expect("classes"), one.labels::<u32>().expect("classes"));
    assert_eq!(again.categories(0..5).expect("codes"), one.categories(0..5).expect("codes"));
    assert_eq!((again.dictionaries(), again.classes(), again.imputed()), (one.dictionaries(), one.classes(), one.imputed()));
    place.refuse("import", &["shards", "t.safetensors", "--label", "x"], &["shards: is a table", "`--label`"]);
    place.refuse("import", &["one.safetensors", "one.safetensors"], &["one.safetensors"]);
}
