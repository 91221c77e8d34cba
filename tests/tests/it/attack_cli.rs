//! The attack itself: what it refuses, and how it reports what it finds.

use std::process::Command;

use crate::example::built;
#[cfg(all(unix, feature = "mpi"))]
use crate::example::xtask;

/// The programs that are attacked.
const PROGRAMS: [&str; 10] =
    ["higgs", "data_parallel", "launch", "import", "inspect", "tabular", "predict", "first_network", "images", "cifar10"];

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
    for name in PROGRAMS {
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

// A short form of each part of the attack, on the examples as they are built here: nothing is lost, panics, hangs or is wrong.
macro_rules! short_forms {
    ($($test:ident: $part:literal, $n_cases:literal;)*) => {$(
        #[cfg(all(unix, feature = "mpi"))]
        #[test]
        fn $test() {
            nothing_is_found_by($part, $n_cases);
        }
    )*};
}

short_forms! {
    programs_run_in_the_background: "background", 4;
    unusual_names_are_taken: "names", 4;
    outputs_replace_no_input: "outputs", 6;
    odd_options_are_refused: "options", 12;
    resuming_refuses_what_differs: "resuming", 6;
    no_result_is_wrong: "wrong-results", 3;
    ranks_with_other_rows_are_refused: "unlike-ranks", 1;
    killed_imports_lose_nothing: "import-kills", 6;
    killed_writers_of_shards_lose_nothing: "shard-kills", 4;
    killed_readers_leave_a_sound_cache: "cache-kills", 3;
    killed_runs_resume: "training-kills", 3;
    killed_ranks_are_restarted: "rank-kills", 1;
    killed_ranks_lose_no_row_of_a_server: "url-kills", 2;
    killed_ranks_leave_sharded_checkpoints_whole: "zero-kills", 1;
    a_process_may_have_the_same_pid_as_the_one_before: "same-pid", 3;
    hostile_files_are_refused: "hostile-files", 40;
    full_disks_are_reported: "full-disk", 4;
    signals_end_with_a_checkpoint: "signals", 4;
}

#[cfg(all(unix, feature = "mpi"))]
#[track_caller]
fn nothing_is_found_by(part: &str, n_cases: u32) {
    let programs = PROGRAMS.map(built);
    let [higgs, ..] = &programs;
    let mut attack = Command::new(env!("CARGO_BIN_EXE_attack"));
    attack.arg("--programs").arg(higgs.parent().expect("examples lie in a folder")).arg("--xtask").arg(xtask());
    let output = attack.args(["--only", part, "--cases", &n_cases.to_string(), "--require"]).output().expect("the attack starts");
    let said = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&said));
}
