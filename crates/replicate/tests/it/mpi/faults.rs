//! A lost rank ends the job in time, with an exit status that says that a restart may help, and no process is left behind.

use std::path::Path;
use std::time::{Duration, Instant};

use brisk_replicate::Mpi;

use super::{Ended, mpirun, program, run};

#[track_caller]
fn check_ends_the_job(case: &str, said: &str) {
    let ended = run(2, case);
    assert_eq!(ended.status, Some(Mpi::PEER_FAILED), "{}", ended.stderr);
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn one_that_fails() {
    check_ends_the_job("panic", "rank 1 failed: its thread panicked; the run ends, start again from the last checkpoint");
    check_ends_the_job("leave", "rank 1 failed: it left without `finish`");
    check_ends_the_job("hang", "rank 0 waited 1s in barrier: rank 1 is still running, but did not join; the run ends");
}

/// Checks that all four processes end shortly after the job. (A process that has ended but was not waited for has an empty
/// command line.)
#[track_caller]
fn check_gone(ended: &Ended) {
    let pids: Vec<_> = ended.stdout.lines().filter_map(|line| Some(line.split_once(" is process ")?.1)).collect();
    assert_eq!(pids.len(), 4, "{}", ended.stdout);
    let runs = |pid: &str| std::fs::read(Path::new("/proc").join(pid).join("cmdline")).is_ok_and(|line| !line.is_empty());
    let begin = Instant::now();
    while pids.iter().any(|pid| runs(pid)) {
        assert!(begin.elapsed() < Duration::from_secs(5), "one of {pids:?} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_that_is_killed() {
    let begin = Instant::now();
    let ended = run(4, "steps --kill 2@7");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!(ended.status, Some(128 + 9), "{}", ended.stderr);
    let blamed = ended.stderr.lines().any(|line| line.contains("process rank 2 with PID") && line.contains("exited on signal 9"));
    assert!(blamed, "{}", ended.stderr);
    check_gone(&ended);
}

#[test]
fn one_that_is_killed_under_a_launcher_that_leaves_the_others_alone() {
    let begin = Instant::now();
    let rank = ["sh", "-c", r#""$0" steps --kill 2@7; echo "rank $OMPI_COMM_WORLD_RANK ended with $?""#];
    let ended = Ended::of(mpirun().args(["--enable-recovery", "-n", "4"]).args(rank).arg(program()));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    for (rank, status) in [(0, 75), (1, 75), (2, 128 + 9), (3, 75)] {
        assert!(ended.stdout.contains(&format!("rank {rank} ended with {status}")), "{}", ended.stdout);
    }
    for rank in [0, 1, 3] {
        let said = format!("rank {rank} waited 4s in all_reduce, step 7: rank 2 stopped responding");
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    }
    check_gone(&ended);
}

#[test]
fn one_that_hangs() {
    let ended = run(4, "steps --stop 1@3");
    assert_eq!(ended.status, Some(Mpi::PEER_FAILED), "{}", ended.stderr);
    // Each reports it before the first of them ends the job.
    for rank in [0, 2, 3] {
        // On a busy machine it may notice a second or two late.
        let says = |line: &&str| {
            line.starts_with(&format!("rank {rank} waited "))
                && line.contains("s in all_reduce, step 3: rank 1 stopped responding; the run ends")
        };
        assert!(ended.stderr.lines().any(|line| says(&line)), "{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("rank 1 waited"), "{}", ended.stderr);
    check_gone(&ended);
}
