//! `--json` of the examples that train: all have it, with the same fields.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::example::built;
use crate::run::noise;
use crate::usage;

/// Fields of every training run, which programs read.
const FIELDS: [&str; 11] = [
    "device",
    "executor",
    "seed",
    "rows",
    "epochs",
    "seconds",
    "loader_rows_per_s",
    "train_rows_per_s",
    "planned_peak_bytes",
    "precision",
    "simulated",
];

/// Those of examples that only show how something is trained: they do not measure the memory, and some have no loader.
const COMMON: [&str; 7] = ["device", "executor", "seed", "rows", "epochs", "seconds", "precision"];

/// Examples that train nothing.
const WITHOUT_TRAINING: [&str; 7] = ["augment_gallery", "caller_device", "import", "inspect", "launch", "own_kernel", "predict"];

/// Examples that cannot start without an argument.
const NEEDS_DATA: [&str; 2] = ["images", "tabular"];

/// The results of an example that simulates its rows, with the fields of every run and `more`.
#[track_caller]
pub(crate) fn results(file: &Path, more: &[&str]) -> Value {
    let results: Value = serde_json::from_slice(&fs::read(file).expect("results were written")).expect("they are JSON");
    for field in COMMON.iter().chain(more) {
        assert!(!results[field].is_null(), "no {field}: {results}");
    }
    assert_eq!(results["simulated"], true, "{results}");
    results
}

/// What the others write is tested where they are run: in `own.rs` and the tests of their command lines.
#[test]
fn every_example_that_trains_takes_json() {
    let training = usage::EXAMPLES.into_iter().filter(|name| !WITHOUT_TRAINING.contains(name));
    for name in training {
        let output = Command::new(built(name)).arg("--help").output().expect("it starts");
        assert!(String::from_utf8_lossy(&output.stdout).contains("--json <FILE>"), "{name} has no --json");
        // Nothing is trained before the file of the results is checked.
        if !NEEDS_DATA.contains(&name) {
            let output = Command::new(built(name)).args(["--json", "no/such/folder/a.json"]).output().expect("it starts");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && output.stdout.is_empty() && stderr.contains("--json"), "{name}: {stderr}");
        }
    }
}

#[test]
fn cifar10_writes_the_fields_of_a_run() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| {
        let image =
            |i: usize| (0..3073).map(move |at| if at == 0 { (i % 10) as u8 } else { (127.0 * (noise(i, at) + 1.0)) as u8 });
        let bytes: Vec<u8> = (0..100).flat_map(image).collect();
        fs::write(dir.path().join(name), bytes).expect("there is room");
    };
    (1..=5).for_each(|i| file(&format!("data_batch_{i}.bin")));
    file("test_batch.bin");
    let args = [
        "--data",
        ".",
        "--narrow",
        "--batch-rows",
        "64",
        "--steps",
        "1",
        "--epochs",
        "1",
        "--images",
        "128",
        "--json",
        "out.json",
        "--model",
        "m.safetensors",
        "--report",
        "r.html",
    ];
    let mut command = Command::new(built("cifar10"));
    let output = command
        .args(args)
        .args(["--test-images", "20"])
        .env("BRISK_DEVICE", "cpu")
        .current_dir(dir.path())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value =
        serde_json::from_slice(&fs::read(dir.path().join("out.json")).expect("it was written")).expect("it is JSON");
    for field in FIELDS.into_iter().chain(["test_accuracy"]) {
        assert!(!results[field].is_null(), "no {field}: {results}");
    }
    assert_eq!((&results["rows"], &results["seed"], &results["steps"]), (&128.into(), &0.into(), &1.into()));
    let report = fs::read_to_string(dir.path().join("r.html")).expect("the report");
    assert!(report.contains("muon, narrow") && report.contains("Muon for the filters"), "it names the recipe and its optimizer");

    // The model predicts other images.
    image::save_buffer(dir.path().join("x.png"), &[90; 20 * 30 * 3], 20, 30, image::ColorType::Rgb8).expect("an image");
    let mut command = Command::new(built("images"));
    command.args(["--predict", "x.png", "--model", "m.safetensors"]).env("BRISK_DEVICE", "cpu").current_dir(dir.path());
    let output = command.output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let class = printed.lines().nth(1).and_then(|line| line.split(',').nth(1));
    assert!(
        class.and_then(|class| class.parse().ok()).is_some_and(|class: u8| class < 10),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
