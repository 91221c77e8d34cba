//! `cargo xtask mpi` with a real mpirun, and ranks that are lost.
//!
//! `BRISK_TEST_MPI`: `auto` (the default) runs these tests if mpirun is installed and the example is built, as `cargo test --workspace --all-features` does;
//! `require` makes them fail otherwise; `off` skips them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::two_hosts::two_hosts;

/// The example of brisk-replicate, in the same target folder as xtask; `None` if these tests are skipped, after saying so.
fn example() -> Option<PathBuf> {
    let wish = std::env::var("BRISK_TEST_MPI").unwrap_or_else(|_| "auto".to_owned());
    assert!(["off", "auto", "require"].contains(&wish.as_str()), "BRISK_TEST_MPI is `{wish}`, expected off, auto or require");
    let example = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("examples").join("mpi_ranks");
    let why = if wish == "off" {
        "BRISK_TEST_MPI=off"
    } else if Command::new("mpirun").arg("--version").output().is_err() {
        "mpirun is not installed"
    } else if !example.exists() {
        "the example mpi_ranks is not built; `cargo test --workspace --all-features` builds it"
    } else {
        return Some(example);
    };
    assert!(wish != "require", "BRISK_TEST_MPI=require: {why}");
    // Not `eprintln!`, whose output the test harness captures.
    drop(writeln!(std::io::stderr(), "\nJOBS OF SEVERAL PROCESSES ARE NOT TESTED: {why}"));
    None
}

fn run(example: &Path, options: &str, args: &str) -> (Option<i32>, String, String) {
    end(&mut Command::new(env!("CARGO_BIN_EXE_xtask")), example, options, args)
}

/// Status, standard output and standard error of `xtask mpi OPTIONS -- program EXAMPLE ARGS`.
fn end(xtask: &mut Command, example: &Path, options: &str, args: &str) -> (Option<i32>, String, String) {
    xtask.arg("mpi").args(options.split(' ')).args(["--", "program"]).arg(example).args(args.split(' '));
    let Output { status, stdout, stderr } = xtask.output().expect("xtask starts");
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (status.code(), stdout, stderr)
}

/// The line with the result of the example's steps.
#[track_caller]
fn result(stdout: &str) -> &str {
    stdout.lines().find(|line| line.starts_with("60 steps: ")).unwrap_or_else(|| panic!("{stdout}"))
}

#[test]
fn a_run_that_lost_a_rank_has_the_result_of_an_undisturbed_run() {
    let Some(example) = example() else { return };
    let (status, stdout, stderr) = run(&example, "-n 1", "steps");
    assert_eq!(status, Some(0), "{stderr}");
    let undisturbed = result(&stdout).to_owned();

    for options in ["-n 4 --restarts 1", "-n 4 --restart-ranks 2"] {
        let kept = tempfile::tempdir().expect("a temporary folder");
        let (status, stdout, stderr) = run(&example, options, &format!("steps --out {} --kill 2@37", kept.path().display()));
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stderr.contains("the job ended with status 137 after ") && stderr.contains(": rank 2 on "), "{stderr}");
        assert!(stderr.contains(" was killed by signal 9"), "{stderr}");
        let n_ranks = if options.ends_with('2') { 2 } else { 4 };
        assert!(stdout.contains(&format!("resumed at step 30 with {n_ranks} ranks")), "{stdout}");
        assert_eq!(result(&stdout), undisturbed, "{options}");
    }
}

#[test]
fn a_rank_that_hangs_is_named() {
    let Some(example) = example() else { return };
    let (status, _, stderr) = run(&example, "-n 4", "steps --stop 1@3");
    assert_eq!(status, Some(75), "{stderr}");
    assert!(stderr.contains("ranks 0, 2, 3 waited 4s in all_reduce, step 3 for rank 1, which said nothing"), "{stderr}");
}

/// A run on two hosts, the second of which has a fault after the first checkpoint, while its rank hangs. `None` if two hosts cannot be made.
fn run_with_fault(fault: &str, options: &str) -> Option<(Option<i32>, String, String)> {
    let (example, mut command) = (example()?, two_hosts()?);
    let kept = tempfile::tempdir().expect("a temporary folder");
    command.env("FAULT", fault).env("WHEN", kept.path().join("kept")).arg(env!("CARGO_BIN_EXE_xtask"));
    let options = format!("-n 2 --hosts host0:1,host1:1 --grace 2 {options}");
    Some(end(&mut command, &example, &options, &format!("steps --out {} --stop 1@30", kept.path().display())))
}

/// mpirun waits forever for a host that it cannot reach; the job ends because a rank reports it.
#[test]
fn a_network_that_drops_all_packets_ends_the_job() {
    let Some((status, _, stderr)) = run_with_fault("silent", "--restarts 0") else { return };
    assert_eq!(status, Some(75), "{stderr}");
    assert!(stderr.contains("rank 0 waited 4s in all_reduce, step "), "{stderr}");
    assert!(stderr.contains(" for rank 1, which said nothing"), "{stderr}");
}

#[test]
fn a_run_continues_on_the_other_hosts_when_one_is_lost() {
    let Some((status, stdout, stderr)) = run_with_fault("lost", "--restart-ranks 1") else { return };
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("the connection to host1 was lost"), "{stderr}");
    assert!(stdout.contains("0 with 1 ranks\n") && stdout.contains("60 steps: "), "{stdout}");
}

#[test]
fn ranks_that_differ_are_not_restarted() {
    let Some(example) = example() else { return };
    let (status, _, stderr) = run(&example, "-n 2 --restarts 3", "shape");
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("`layers.0.weight` differs") && !stderr.contains("restart 1 of 3"), "{stderr}");
}
