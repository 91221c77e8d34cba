//! `cargo xtask mpi` over the mpirun that is there, and ranks that are lost.
//!
//! `BRISK_TEST_MPI`: `auto` (the default) runs these where there is an mpirun and the example is built, as a test of the workspace with
//! all features does; `require` fails without; `off` runs none.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::two_hosts::two_hosts;

/// The example of brisk-replicate, beside the program that is tested; `None` where these tests do not run, which has been said.
fn example() -> Option<PathBuf> {
    let wish = std::env::var("BRISK_TEST_MPI").unwrap_or_else(|_| "auto".to_owned());
    assert!(["off", "auto", "require"].contains(&wish.as_str()), "BRISK_TEST_MPI is `{wish}`, expected off, auto or require");
    let example = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("examples").join("mpi_ranks");
    let why = if wish == "off" {
        "BRISK_TEST_MPI=off"
    } else if Command::new("mpirun").arg("--version").output().is_err() {
        "there is no mpirun"
    } else if !example.exists() {
        "the example mpi_ranks is not built; `cargo test --workspace --all-features` builds it"
    } else {
        return Some(example);
    };
    assert!(wish != "require", "BRISK_TEST_MPI=require: {why}");
    // Past the harness's capture of passing tests.
    drop(writeln!(std::io::stderr(), "\nNO JOB OF SEVERAL PROCESSES IS TESTED: {why}"));
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

/// What a run of the example's steps comes to.
#[track_caller]
fn result(stdout: &str) -> &str {
    stdout.lines().find(|line| line.starts_with("60 steps: ")).unwrap_or_else(|| panic!("{stdout}"))
}

#[test]
fn a_run_that_lost_a_rank_comes_to_what_an_undisturbed_one_does() {
    let Some(example) = example() else { return };
    let (status, stdout, stderr) = run(&example, "-n 1", "steps");
    assert_eq!(status, Some(0), "{stderr}");
    let undisturbed = result(&stdout).to_owned();

    for options in ["-n 4 --restarts 1", "-n 4 --restart-ranks 2"] {
        let kept = tempfile::tempdir().expect("a folder for a while");
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
fn a_rank_that_hangs_is_named_although_it_says_nothing() {
    let Some(example) = example() else { return };
    let (status, _, stderr) = run(&example, "-n 4", "steps --stop 1@3");
    assert_eq!(status, Some(75), "{stderr}");
    assert!(stderr.contains("ranks 0, 2, 3 waited 4s in all_reduce, step 3 for rank 1, which said nothing"), "{stderr}");
}

/// A run on two hosts, the second of which has a fault once something has been kept, while its rank hangs. `None` where there are no two hosts.
fn run_with_fault(fault: &str, options: &str) -> Option<(Option<i32>, String, String)> {
    let (example, mut command) = (example()?, two_hosts()?);
    let kept = tempfile::tempdir().expect("a folder for a while");
    command.env("FAULT", fault).env("WHEN", kept.path().join("kept")).arg(env!("CARGO_BIN_EXE_xtask"));
    let options = format!("-n 2 --hosts host0:1,host1:1 --grace 2 {options}");
    Some(end(&mut command, &example, &options, &format!("steps --out {} --stop 1@30", kept.path().display())))
}

/// mpirun itself waits for ever for a host that it cannot reach: what ends the job is that a rank has said so.
#[test]
fn a_network_that_goes_silent() {
    let Some((status, _, stderr)) = run_with_fault("silent", "--restarts 0") else { return };
    assert_eq!(status, Some(75), "{stderr}");
    assert!(stderr.contains("rank 0 waited 4s in all_reduce, step "), "{stderr}");
    assert!(stderr.contains(" for rank 1, which said nothing"), "{stderr}");
}

#[test]
fn a_host_that_is_lost_leaves_the_run_to_the_others() {
    let Some((status, stdout, stderr)) = run_with_fault("lost", "--restart-ranks 1") else { return };
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("the connection to host1 was lost"), "{stderr}");
    assert!(stdout.contains("0 with 1 ranks\n") && stdout.contains("60 steps: "), "{stdout}");
}

#[test]
fn ranks_that_differ_are_not_started_again() {
    let Some(example) = example() else { return };
    let (status, _, stderr) = run(&example, "-n 2 --restarts 3", "shape");
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("`layers.0.weight` differs") && !stderr.contains("restart 1 of 3"), "{stderr}");
}
