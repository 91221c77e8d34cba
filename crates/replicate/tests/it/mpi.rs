//! Replicas as processes. Starts `examples/mpi_ranks` under `mpirun`, which must be installed: with the feature `mpi` these tests
//! fail without it.

mod differences;
mod faults;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod two_hosts;

use std::path::PathBuf;
use std::process::{Command, Output};

use brisk_replicate::run_replicas;

use crate::sums;

/// The example, which cargo builds before it runs tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a running program knows where it is");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests lie in a folder of the profile");
    let program = profile.join("examples").join("mpi_ranks");
    assert!(program.exists(), "{} is not built; `cargo test` without `--test` builds it", program.display());
    program
}

fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    settle(&mut command);
    command
}

/// Settings that Open MPI requires from root, and on a machine with fewer cores than ranks; MPICH ignores them.
fn settle(command: &mut Command) {
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        // For containers that forbid reading another process's memory.
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ]);
}

/// The example on `n` ranks; `line` is its arguments.
fn run(n: usize, line: &str) -> Ended {
    Ended::of(mpirun().args(["-n", &n.to_string()]).arg(program()).args(line.split(' ')))
}

/// How a job ended.
#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    #[track_caller]
    fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("`mpirun` starts; Debian's package openmpi-bin has it");
        let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Self { status: status.code(), stdout, stderr }
    }
}

#[track_caller]
fn bits(n: usize, case: &str) -> String {
    let ended = run(n, case);
    assert_eq!(ended.status, Some(0), "{case} on {n} ranks: {}", ended.stderr);
    let (ranks, bits) = ended.stdout.trim().split_once(": bits ").unwrap_or_else(|| panic!("{}", ended.stdout));
    assert!(ranks.starts_with(&format!("{n} ranks by ")), "{}", ended.stdout);
    bits.to_owned()
}

#[test]
fn processes_compute_the_bits_of_threads() {
    for n in [1, 2, 3, 4, 5, 8] {
        let threads = run_replicas(n, sums::bits).expect("no replica fails");
        assert!(threads.iter().all(|bits| *bits == threads[0]), "ranks differ: {threads:x?}");
        assert_eq!(bits(n, "sum"), format!("{:016x}", threads[0]), "{n} ranks");
    }
    // With two ranks there is only one summation order.
    assert_eq!(bits(2, "sum"), bits(2, "sum-by-engine"));
    bits(3, "sum-by-engine");
}

#[test]
fn a_late_rank_is_known_to_all() {
    for n in 2..=3 {
        let ended = run(n, "late");
        assert_eq!(ended.status, Some(0), "{n} ranks: {}", ended.stderr);
    }
}
