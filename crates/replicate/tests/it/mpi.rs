//! Replicas as processes. Starts `examples/mpi_ranks` under `mpirun`, which must be there: a test with the feature `mpi` on does not pass without.

use std::path::PathBuf;
use std::process::{Command, Output};

use brisk_replicate::{Mpi, run_replicas};

use crate::sums;

/// The example, which cargo builds before it runs tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a running program knows where it is");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests lie in a folder of the profile");
    let program = profile.join("examples").join("mpi_ranks");
    assert!(program.exists(), "{} is not built; `cargo test` without `--test` builds it", program.display());
    program
}

fn mpirun(n: usize, case: &str) -> Output {
    let mut command = Command::new("mpirun");
    command.args(["-n", &n.to_string()]);
    // What Open MPI asks of root, and of a machine with fewer cores than ranks; MPICH takes no notice.
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        // Containers that forbid reading another process's memory.
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ]);
    command.arg(program()).arg(case).output().expect("`mpirun` starts; Debian's package openmpi-bin has it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn bits(n: usize, case: &str) -> String {
    let output = mpirun(n, case);
    assert!(output.status.success(), "{case} on {n} ranks: {}", text(&output.stderr));
    let printed = text(&output.stdout);
    let (ranks, bits) = printed.trim().split_once(": bits ").unwrap_or_else(|| panic!("{printed}"));
    assert!(ranks.starts_with(&format!("{n} ranks by ")), "{printed}");
    bits.to_owned()
}

#[test]
fn processes_compute_the_bits_of_threads() {
    for n in 1..=4 {
        let threads = run_replicas(n, sums::bits).expect("nobody fails");
        assert!(threads.iter().all(|bits| *bits == threads[0]), "ranks differ: {threads:x?}");
        assert_eq!(bits(n, "sum"), format!("{:016x}", threads[0]), "{n} ranks");
    }
    // Two numbers can be added in one order alone.
    assert_eq!(bits(2, "sum"), bits(2, "sum-by-engine"));
    bits(3, "sum-by-engine");
}

#[test]
fn calls_that_differ_are_told_on_every_rank() {
    let output = mpirun(3, "mismatch");
    let printed = text(&output.stdout);
    for rank in 0..3 {
        let told = format!("rank {rank}: rank 0 called all_reduce(10 F32, Sum) where rank 2 called all_reduce(11 F32, Sum)");
        assert!(printed.contains(&told), "{printed}\n{}", text(&output.stderr));
    }
}

#[track_caller]
fn check_ends_the_job(case: &str, said: &str) {
    let output = mpirun(2, case);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(Mpi::PEER_FAILED), "{stderr}");
    assert!(stderr.contains(said), "{stderr}");
}

#[test]
fn a_rank_that_fails_ends_the_job() {
    check_ends_the_job("panic", "rank 1 failed: its thread panicked; the run ends, start again from the last checkpoint");
    check_ends_the_job("leave", "rank 1 failed: it left without `finish`");
    check_ends_the_job("hang", "rank 0 waited 1s in barrier: another rank hangs");
    check_ends_the_job("nonsense", "there is no case `nonsense`");
}
