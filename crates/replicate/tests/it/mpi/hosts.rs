//! Ranks on two hosts, over TCP.

use brisk_replicate::run_replicas;

use super::two_hosts::two_hosts;
use super::{Ended, program, settle};
use crate::sums;

/// Runs the example on two hosts; `None` where the machine allows none, which has been reported.
fn run(hosts: &str, n: usize, line: &str) -> Option<Ended> {
    let mut command = two_hosts()?;
    settle(&mut command);
    command.args(["mpirun", "-n", &n.to_string(), "--host", hosts]).arg(program()).args(line.split(' '));
    Some(Ended::of(&mut command))
}

#[test]
fn hosts_compute_the_bits_of_threads() {
    for (hosts, n) in [("host0:1,host1:1", 2), ("host0:2,host1:2", 4)] {
        let Some(ended) = run(hosts, n, "sum") else { return };
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let bits = run_replicas(n, sums::bits).expect("no replica fails")[0];
        assert!(ended.stdout.contains(&format!(": bits {bits:016x}\n")), "{bits:016x}, {}", ended.stdout);
        // Each sends half of its values to the other: the bytes show that there are two hosts.
        let sent = ended
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("the second host sent ")?.strip_suffix(" bytes")?.parse().ok());
        assert!(sent.is_some_and(|n_bytes: u64| n_bytes > 600_000), "{}", ended.stdout);
    }
}

#[test]
fn a_rank_that_is_killed_on_another_host() {
    let Some(ended) = run("host0:1,host1:1", 2, "steps --kill 1@7") else { return };
    assert_eq!(ended.status, Some(128 + 9), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("process rank 1 with PID") && ended.stderr.contains("on node host1 exited on signal 9"),
        "{}",
        ended.stderr
    );
}
