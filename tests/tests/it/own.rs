//! The examples of parts of your own: they run as their headers say.

use std::process::Command;

use crate::example::built;

/// What the example prints, on the CPU.
fn printed(name: &'static str) -> String {
    let output = Command::new(built(name)).args(["--device", "cpu"]).output().expect("the example runs");
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).expect("results are text")
}

#[test]
fn an_operation() {
    let printed = printed("own_op");
    assert!(printed.starts_with("the gradient of squared_relu agrees with finite differences\n"), "{printed}");
    assert!(printed.contains("squared_relu     bf16"), "autocast applies to it: {printed}");
}

#[test]
fn a_loss() {
    let printed = printed("own_loss");
    assert!(printed.starts_with("the gradient of info_nce agrees with finite differences\n"), "{printed}");
    assert!(printed.contains("of 128 new items are found by their other view"), "{printed}");
}
