//! The benchmarks as `cargo xtask bench` starts them, on little data.

use std::process::{Command, Output};

use serde_json::Value;

use crate::gpu::gpu;

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(args).output().expect("the benchmarks run")
}

/// The rows that this suite writes with `--smoke`, after checking that each has the documented keys.
#[track_caller]
fn smoke(args: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rows.json");
    let path = path.to_str().expect("the name of the temporary folder is UTF-8");
    let output = bench(&[args, &["--smoke", "--json", path]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    let text = std::fs::read_to_string(path).expect("the rows were written");
    let rows: Vec<Value> = serde_json::from_str(&text).expect("a list of rows");
    let stdout = String::from_utf8(output.stdout).expect("text");
    for row in &rows {
        for key in ["suite", "case", "unit", "command", "commit", "device"] {
            assert!(row[key].is_string(), "{key} of {row}");
        }
        assert_eq!(row["suite"], args[0], "{row}");
        assert!(row["ours"].as_f64().is_some_and(|ours| ours >= 0.0), "{row}");
        assert_eq!(row["target"].is_null(), row["met"].is_null(), "{row}");
        assert!(stdout.contains(row["case"].as_str().expect("a text")), "{row} is in the printed table");
    }
    rows
}

#[test]
fn the_loader_suite_runs() {
    let rows = smoke(&["loader"]);
    for case in ["in order from rows in memory, batch 1024", "shuffled from a warm map, batch 8192", "CSV import, shortest, gzip"]
    {
        assert!(rows.iter().any(|row| row["case"] == case), "{case} is measured");
    }
    let large = rows.iter().find(|row| row["case"].as_str().is_some_and(|case| case.ends_with("peak memory")));
    assert_eq!(large.expect("an epoch larger than memory is trained")["met"], true, "{rows:?}");
    let opening = rows.iter().find(|row| row["case"].as_str().is_some_and(|case| case.contains("10 GB")));
    assert_eq!(opening.expect("a big table is opened")["reference"], "limit:5 ms");
}

#[test]
fn the_kernels_suite_runs() {
    let rows = smoke(&["kernels"]);
    let adapter = gpu();
    let is_there = |part: &str| rows.iter().any(|row| row["case"].as_str().is_some_and(|case| case.contains(part)));
    for (part, needs_adapter) in [
        ("twin, square", false),
        ("twin, adam", false),
        ("twin, convolution 3x3, 64 to 64", false),
        ("the host's part", true),
        ("WGSL, softmax", true),
        ("WGSL, convolution", true),
        ("WGSL, training, batch 1024", true),
    ] {
        assert_eq!(is_there(part), adapter.is_some() || !needs_adapter, "{part}: {rows:?}");
    }
    for row in rows.iter().filter(|row| row["case"].as_str().is_some_and(|case| case.starts_with("WGSL"))) {
        let device = row["device"].as_str().expect("a text");
        assert!(!device.starts_with("cpu"), "{row} is measured on an adapter");
        assert!(!device.contains("(software") || row["target"].is_null(), "{row}: a software adapter has no target");
    }
}

#[test]
fn the_amp_suite_runs() {
    let rows = smoke(&["amp"]);
    let cases: Vec<_> = rows.iter().map(|row| row["case"].as_str().unwrap_or_default()).collect();
    for part in [
        "convnet, training in f16, transients",
        "28-256-256-256-1, training in bf16, batch 64",
        "convnet, bf16, accuracy off f32's",
    ] {
        assert!(cases.iter().any(|case| case.starts_with(part)), "no {part} in {cases:?}");
    }
}

#[test]
fn the_speedups_suite_runs() {
    let rows = smoke(&["speedups"]);
    let cases: Vec<_> = rows.iter().map(|row| row["case"].as_str().unwrap_or_default()).collect();
    for case in [
        "photos decoded one by one, by one thread, an epoch",
        "+ once, into a table, to the accuracy, with the import",
        "+ augmented on the device, planned memory",
        "+ early stopping, the run, with the import",
        "without early stopping, 2 replicas, sharded (ZeRO 3), an epoch",
    ] {
        assert!(cases.contains(&case), "no {case} in {cases:?}");
    }
}

#[test]
fn a_step_is_profiled_in_each_precision() {
    let output = bench(&["amp", "--smoke", "--profile"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for case in [
        "28-256-256-256-1, batch 64, f32",
        "28-256-256-256-1, batch 128, f16",
        "TabM-mini, 4 x 28-16-16-1, batch 32, bf16",
        "convnet, batch 16, bf16",
    ] {
        assert!(text.contains(case), "no {case} in {text}");
    }
    assert_eq!(text.matches("roofline  form").count(), 12, "{text}");
    assert!(text.contains("conv2d_grad_weight"), "{text}");
}

#[test]
fn parts_can_be_chosen() {
    let rows = smoke(&["loader", "--only", "memory"]);
    assert!(rows.iter().all(|row| row["unit"] == "allocations" || row["unit"] == "B"), "{rows:?}");
}

#[test]
fn peers_are_needed_for_the_parts_that_have_them() {
    let check = |line: &str, expected: &str| {
        let output = bench(&std::iter::once("--needs").chain(line.split(' ')).collect::<Vec<_>>());
        let found = String::from_utf8_lossy(&output.stdout).trim_end().replace('\n', ", ");
        assert!(output.status.success() && found == expected, "{line}: {found}");
    };
    check("higgs --peers", "python torch numpy safetensors scikit-learn");
    check("higgs", "");
    check("amp --peers", "python torch numpy");
    check("amp --peers --only memory", "");
    check("loader --only import --peers", "python torch numpy pandas pyarrow polars");
    check("kernels --peers", "python torch numpy, burn");
    check("kernels", "");
    check("replicate --peers", "mpi");
    check("scaling --simulate --peers --yes", "mpi, yes");
    check("--yes kernels --only burn --peers", "burn, yes");
    check("kernels --only replay --only conv --peers", "python torch numpy");
    check("higgs --help", "");
    check("hggs", "");
}

#[test]
fn usage_errors_name_the_valid_values() {
    let check = |args: &[&str], words: &str| {
        let output = bench(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(words), "{args:?}: {stderr}");
    };
    check(&["no-such-suite"], "unrecognized subcommand 'no-such-suite'");
    check(&["loader", "--only", "speed"], "[possible values: batches, memory, import, open, large, cold]");
    check(&["kernels", "--only", "batches"], "[possible values: twins, elementwise, conv, convnet, replay, families, burn]");
    check(&["loader", "--rounds", "0"], "0 is not in 1..=1000000000");
    check(&["loader", "--rows"], "a value is required for '--rows <N>'");
    check(&["higgs", "--mb", "3"], "unexpected argument '--mb'");
    check(&["hggs"], "a similar subcommand exists: 'higgs'");
    check(&["scaling", "--gbit", "10"], "--simulate");
    check(&["scaling", "--table-gb", "1"], "--peers");
}

#[test]
fn reading_is_predicted_and_measured() {
    let output = bench(&["scaling", "--smoke", "--simulate"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "| 1000 Gbit/s | 100 % | 4096 |",
        "reading an epoch, 2 MiB at 40 MB/s, 3 processes",
        "reading an epoch from the cache, 2 MiB at 40 MB/s, 4 processes",
        "training 28-64-64-1 while reading, 2 MiB at 40 MB/s, 1 processes",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[cfg(feature = "mpi")]
#[test]
fn processes_train_on_a_table_on_a_server() {
    let rows = smoke(&["scaling", "--peers", "--table-gb", "0.01"]);
    let sent = rows.iter().find(|row| row["case"] == "bytes sent to a rank with opening, 0.01 GB at 80 MB/s, 4 processes");
    let sent = sent.and_then(|row| row["ours"].as_f64()).expect("the server counts them");
    assert!((2.3e6..9.5e6).contains(&sent), "{sent} bytes of a table of 9.5 MB");
}

#[test]
fn the_tabular_suite_runs() {
    let rows = smoke(&["tabular"]);
    for effort in ["quick", "good", "best"] {
        let case = format!("generated, {effort}, rmse");
        assert!(rows.iter().any(|row| row["case"] == case.as_str()), "{case} is measured");
    }
}
