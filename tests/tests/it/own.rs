//! The examples of custom parts, and the first example: they run as their headers say.

use std::path::Path;
use std::process::Command;

use crate::example::built;
use crate::json_of_examples::results;

/// What the example prints on the CPU, after a check that its results have the fields `more`.
fn printed(name: &'static str, more: &[&str]) -> String {
    printed_in(tempfile::tempdir().expect("a temporary folder").path(), name, &[], more)
}

fn printed_in(folder: &Path, name: &'static str, args: &[&str], more: &[&str]) -> String {
    let mut command = Command::new(built(name));
    command.args(["--device", "cpu", "--json", "results.json"]).args(args).current_dir(folder);
    let output = command.output().expect("the example runs");
    assert!(output.status.success(), "{name}: {output:?}");
    results(&folder.join("results.json"), more);
    String::from_utf8(output.stdout).expect("results are text")
}

/// Fields of the results of a trainer.
const OF_A_TRAINER: [&str; 5] = ["best_epoch", "loader_rows_per_s", "train_rows_per_s", "ended", "test_loss"];

/// The number that follows `word`.
fn number_after(printed: &str, word: &str) -> f64 {
    let (_, rest) = printed.rsplit_once(word).unwrap_or_else(|| panic!("no `{word}` in {printed}"));
    let number = rest.trim_start().split([' ', ',', '\n']).next().unwrap_or_default();
    number.parse().unwrap_or_else(|_| panic!("`{number}` after `{word}` in {printed}"))
}

#[test]
fn a_first_network() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let printed = printed_in(folder.path(), "first_network", &[], &[&OF_A_TRAINER[..], &["test_accuracy"]].concat());
    assert!(number_after(&printed, "accuracy") > 0.9, "{printed}");
    for file in ["letters.safetensors", "model.safetensors", "report.html"] {
        assert!(folder.path().join("target/letters").join(file).is_file(), "{file} has been written");
    }
    // A table that does not exist is not drawn.
    let missing = Command::new(built("first_network")).arg("no/such.safetensors").output().expect("the example runs");
    let stderr = String::from_utf8_lossy(&missing.stderr);
    assert!(missing.status.code() == Some(1) && stderr.contains("no/such.safetensors"), "{stderr}");
}

#[test]
fn an_augmentation() {
    let printed = printed("own_augmentation", &[&OF_A_TRAINER[..], &["test_accuracy", "test_accuracy_inverted"]].concat());
    let accuracies: Vec<f64> =
        printed.split("accuracy ").skip(1).map(|rest| number_after(&format!("accuracy {rest}"), "accuracy")).collect();
    assert!(accuracies.len() == 2 && accuracies.iter().all(|accuracy| *accuracy > 0.9), "{printed}");
    let inverted = printed.matches("on inverted letters").count();
    assert_eq!(inverted, 2, "{printed}");
}

#[test]
fn a_task() {
    let printed = printed("own_task", &[&OF_A_TRAINER[..], &["test_deviance"]].concat());
    let (before, _) = printed.split_once('\n').expect("two lines");
    assert!(number_after(&printed, "deviance") < 0.2 * number_after(before, "deviance"), "{printed}");
}

#[test]
fn heads_and_an_autoencoder() {
    for (name, scores) in [("two_heads", &["test_class_accuracy", "test_rent_rmse"][..]), ("autoencoder", &[])] {
        printed(name, &[&OF_A_TRAINER, scores].concat());
    }
}

#[test]
fn a_training_loop() {
    let printed = printed("custom_loop", &["loader_rows_per_s", "train_rows_per_s", "planned_peak_bytes", "generator_loss"]);
    // Neither wins: both losses are close to those of random guesses, 2 ln 2 and ln 2.
    assert!((number_after(&printed, "discriminator") - 1.386).abs() < 0.1, "{printed}");
    assert!((number_after(&printed, "generator") - 0.693).abs() < 0.15, "{printed}");
}

#[test]
fn a_sequence() {
    let fields = ["loader_rows_per_s", "train_rows_per_s", "planned_peak_bytes", "train_loss", "test_accuracy"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let printed = printed_in(folder.path(), "sequence", &["--epochs", "1"], &fields);
    // Far below ln 16 = 2.77, the loss of a guess.
    assert!(number_after(&printed, "loss") < 2.6, "{printed}");
}

#[test]
fn an_operation() {
    let printed = printed("own_op", &["planned_peak_bytes", "train_loss"]);
    assert!(printed.starts_with("the gradient of squared_relu agrees with finite differences\n"), "{printed}");
    assert!(printed.contains("squared_relu     bf16"), "autocast applies to it: {printed}");
}

#[test]
fn a_loss() {
    let printed = printed("own_loss", &["planned_peak_bytes", "train_loss", "test_accuracy"]);
    assert!(printed.starts_with("the gradient of info_nce agrees with finite differences\n"), "{printed}");
    assert!(printed.contains("of 128 new items are found by their other view"), "{printed}");
}

/// On the CPU, and on an adapter if there is one.
#[test]
fn a_kernel_and_kernels_on_the_device_of_a_program() {
    for (name, words) in [("own_kernel", "1000 logits"), ("caller_device", "384 results equal the twins' within")] {
        let output = Command::new(built(name)).output().expect("the example runs");
        let [printed, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let is_right = output.status.success() && printed.contains(words);
        assert!(is_right || stderr.contains("wgpu finds no adapter"), "{name}: {printed} {stderr}");
    }
}
