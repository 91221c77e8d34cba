//! The attack itself: what it refuses, and how it reports what it finds.

use std::process::Command;

use crate::example::built;

#[test]
fn an_attack_that_cannot_be_run_says_why() {
    let check = |args: &[&str], words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_attack")).args(args).output().expect("the attack starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
    };
    check(&["--programs", "no/such/folder"], "--programs no/such/folder: there is no such folder");
    check(&["--programs", "."], "it has no program `higgs`");
    check(&["--programs", ".", "--only", "import-kill"], "import-kills");
    check(&["--programs", ".", "--minutes", "0"], "above 0");
}

#[test]
fn a_finding_is_reported_with_the_command_that_repeats_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["higgs", "data_parallel", "import", "inspect"] {
        std::fs::copy(built(name), folder.path().join(name)).expect("there is room for a program");
    }
    std::fs::write(
        folder.path().join("import"),
        "#!/bin/sh\n: > \"$2\"\necho \"thread 'main' panicked at here:1:1\" >&2\nexit 101\n",
    )
    .expect("there is room");
    let mut attack = Command::new(env!("CARGO_BIN_EXE_attack"));
    attack.arg("--programs").arg(folder.path()).args(["--only", "background", "--cases", "15", "--json", "report.json"]);
    let output = attack.current_dir(folder.path()).output().expect("the attack starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("panic, case 0: import panics: here:1:1") && said.contains("--only background --case 0"), "{said}");
    let report = std::fs::read(folder.path().join("report.json")).expect("it was written");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("it is JSON");
    assert_eq!(report["parts"][0]["panics"], 5, "{report}");
}
