//! The `amp_report` example, called from the command line.

use std::process::Command;

use serde_json::Value;

use crate::example::built;
use crate::usage::check_usage_error;

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(built("amp_report"));
    let output = command.args(args).env("BRISK_DEVICE", "cpu").output().expect("the example runs");
    let text = |bytes| String::from_utf8(bytes).expect("messages are UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The file that it writes for `args`, and its output.
#[track_caller]
fn report(args: &[&str]) -> (Value, String) {
    let dir = tempfile::tempdir().expect("a folder for a while");
    let path = dir.path().join("report.json");
    let (code, stdout, stderr) = run(&[args, &["--json", path.to_str().expect("a path in UTF-8")]].concat());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
    let text = std::fs::read_to_string(&path).expect("results were written");
    (serde_json::from_str(&text).expect("results are JSON"), stdout)
}

fn bytes(report: &Value, plan: &str, part: &str) -> u64 {
    report["planned_bytes"][plan][part].as_u64().expect("bytes")
}

#[test]
fn each_precision_says_what_ran_in_it() {
    for (model, precision, tolerance) in
        [("mlp", "f32", 0.0), ("mlp", "f16", 0.01), ("mlp", "bf16", 0.05), ("convnet", "f16", 0.02), ("convnet", "bf16", 0.1)]
    {
        let (report, printed) = report(&["--model", model, "--precision", precision, "--batch", "4"]);
        let operations = report["operations"].as_array().expect("a list");
        let dtypes_of = |name: &str| -> Vec<&str> {
            let named = operations.iter().filter(|operation| operation["name"] == name);
            named.map(|operation| operation["dtype"].as_str().expect("a type")).collect()
        };
        let product = if model == "mlp" { "linear" } else { "conv2d" };
        assert!(
            dtypes_of(product).len() > 5 && dtypes_of(product).iter().all(|dtype| *dtype == precision),
            "{model} in {precision}"
        );
        assert_eq!(dtypes_of("cross_entropy"), ["f32"], "{model} in {precision}");
        assert_eq!(dtypes_of("cast").len(), if precision == "f32" { 0 } else { 8 }, "seven weights and the input");
        let difference = report["gradient_difference"].as_f64().expect("a number");
        assert!(difference <= tolerance, "{model} in {precision}: gradients are {difference} of their norm from those in f32");
        assert!(printed.contains(&format!("{model}, batch of 4, {precision}, on cpu")), "{printed}");
    }
}

#[test]
fn f16_accumulation_can_be_allowed() {
    let (report, printed) = report(&["--model", "mlp", "--batch", "4", "--f16-accumulation"]);
    let resolved = report["resolved"].as_str().expect("a text");
    assert!(resolved.starts_with("stored in f16, computed in f32, converted by bits"), "on the cpu:\n{printed}");
    assert!(!resolved.contains("added in f16"), "on the cpu:\n{printed}");
}

#[test]
fn memory_is_that_of_kept_activations() {
    let (report, printed) = report(&["--batch", "16", "--precision", "bf16"]);
    let transient = |plan| bytes(&report, plan, "transient");
    let training = transient("training_f32");
    assert!(10 * transient("inference_f32") <= 4 * training, "inference is to take 0.4 of training at most:\n{printed}");
    assert!(10 * transient("training_f32_checkpoints") <= 8 * training, "checkpoints save memory:\n{printed}");
    assert!(10 * transient("training_f32_in_parts") <= 4 * training, "so do four parts:\n{printed}");
    assert!(transient("training") < training, "so do halves:\n{printed}");
    assert!(transient("training_checkpoints") < transient("training"), "and both together:\n{printed}");
    assert_eq!(report["planned_peak_bytes"], report["planned_bytes"]["training"]["peak"]);
}

#[test]
fn options_that_make_no_sense() {
    for (args, words) in [
        (&["--model", "resnet"][..], "'resnet' for '--model <NAME>'\n  [possible values: mlp, convnet]"),
        (&["--precision", "fp8"], "'fp8' for '--precision <TYPE>'\n  [possible values: f32, f16, bf16]"),
        (&["--batch", "0"], "'0' for '--batch <N>': expected a whole number from 1 to 65536"),
        (&["--batch"], "a value is required for '--batch <N>'"),
        (&["table"], "unexpected argument 'table'"),
    ] {
        let output = Command::new(built("amp_report")).args(args).output().expect("the example runs");
        check_usage_error(&output, args, &[words]);
    }
    let (code, stdout, stderr) = run(&["--json", "/"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains("--json cannot be written: is a folder"), "{stderr}");
    let (code, help, _) = run(&["--help"]);
    assert!(code == Some(0) && help.contains("--precision <TYPE>"), "{help}");
}
