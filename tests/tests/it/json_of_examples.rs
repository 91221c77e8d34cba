//! `--json` of the examples that train: all have it, with the same fields.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::example::built;
use crate::run::noise;

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

/// Examples that show one thing on a page, and take no more options than that needs.
const ON_ONE_PAGE: [&str; 4] = ["custom_loop", "first_network", "own_augmentation", "own_task"];

#[test]
fn every_example_that_trains_takes_json() {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"));
    let mut found = 0;
    for folder in [examples.to_owned(), examples.join("vision")] {
        for entry in fs::read_dir(folder).expect("there are examples") {
            let path = entry.expect("it can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Ok(main) = fs::read_to_string(path.join("main.rs")) else { continue };
            let trains = main.contains("Trainer::new") || main.contains("Step::") || main.contains("cifar10::");
            if trains && !ON_ONE_PAGE.contains(&name.as_str()) {
                found += 1;
                let options = fs::read_to_string(path.join("options.rs")).unwrap_or_default();
                assert!(main.contains("json") || options.contains("json"), "{name} trains and has no --json");
            }
        }
    }
    assert!(found >= 3, "{found} examples train");
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
}
