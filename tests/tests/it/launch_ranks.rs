//! The example `launch` with a real mpirun, and ranks that are lost.

use std::process::{Command, Output};

use crate::data_parallel_ranks::two_hosts::two_hosts;
use crate::example::built;

fn run(options: &str, args: &str) -> (Option<i32>, String, String) {
    end(&mut Command::new(built("launch")), options, args)
}

/// Status, standard output and standard error of `launch OPTIONS mpi_ranks ARGS`, the example of brisk-replicate.
fn end(launch: &mut Command, options: &str, args: &str) -> (Option<i32>, String, String) {
    launch.args(options.split(' ')).arg(built("mpi_ranks")).args(args.split(' '));
    let Output { status, stdout, stderr } = launch.output().expect("launch starts");
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
    let (status, stdout, stderr) = run("-n 1", "steps");
    assert_eq!(status, Some(0), "{stderr}");
    let undisturbed = result(&stdout).to_owned();

    for options in ["-n 4 --restarts 1", "-n 4 --restart-ranks 2"] {
        let kept = tempfile::tempdir().expect("a temporary folder");
        let (status, stdout, stderr) = run(options, &format!("steps --out {} --kill 2@37", kept.path().display()));
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
    let (status, _, stderr) = run("-n 4", "steps --stop 1@3");
    assert_eq!(status, Some(75), "{stderr}");
    assert!(stderr.contains("ranks 0, 2, 3 waited 4s in all_reduce, step 3 for rank 1, which said nothing"), "{stderr}");
}

/// A run on two hosts, the second of which has a fault after the first checkpoint, while its rank hangs. `None` if two hosts
/// cannot be made.
fn run_with_fault(fault: &str, options: &str) -> Option<(Option<i32>, String, String)> {
    let mut command = two_hosts()?;
    let kept = tempfile::tempdir().expect("a temporary folder");
    command.env("FAULT", fault).env("WHEN", kept.path().join("kept")).arg(built("launch"));
    let options = format!("-n 2 --hosts host0:1,host1:1 --grace 2 {options}");
    Some(end(&mut command, &options, &format!("steps --out {} --stop 1@30", kept.path().display())))
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
    let (status, _, stderr) = run("-n 2 --restarts 3", "shape");
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("`layers.0.weight` differs") && !stderr.contains("restart 1 of 3"), "{stderr}");
}
