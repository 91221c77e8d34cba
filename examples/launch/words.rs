//! Reads the output of mpirun and of the ranks, and finds out which rank failed.

use std::time::Instant;

/// The end of the last line that a rank prints when it gives up.
const LAST_WORDS: &str = "; the run ends, start again from the last checkpoint";

/// What Open MPI and MPICH print when a rank has failed, apart from the lines that are parsed below.
const SIGNS: [&str; 4] = ["MPI_ABORT was invoked", "non-zero exit code", "non-zero status", "BAD TERMINATION"];

/// The information in the lines read so far.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// When the first sign of a failed rank was read.
    pub(crate) failing_since: Option<Instant>,
    killed: Option<Killed>,
    lost_host: Option<String>,
    /// Whether a host could not be reached, or has no Open MPI.
    is_unreachable: bool,
    /// Ranks that gave up waiting, and where: `1s in barrier`.
    waited: Vec<(usize, String)>,
    /// `rank 1 failed: its thread panicked`.
    failed: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Killed {
    rank: usize,
    host: String,
    signal: String,
}

impl Words {
    pub(crate) fn hear(&mut self, line: &str) {
        let line = line.trim();
        if let Some(said) = line.strip_suffix(LAST_WORDS) {
            self.hear_rank(said);
        } else if let Some(killed) = killed(line) {
            self.killed.get_or_insert(killed);
        } else if let Some((_, host)) = line.strip_prefix("Remote daemon:").and_then(|line| line.split_once("on node ")) {
            self.lost_host = Some(host.to_owned());
        } else if line.starts_with("ORTE was unable to reliably start one or more daemons") {
            self.is_unreachable = true;
        } else if !SIGNS.iter().any(|sign| line.contains(sign)) {
            return;
        }
        self.failing_since.get_or_insert_with(Instant::now);
    }

    fn hear_rank(&mut self, said: &str) {
        match waited(said) {
            Some(waited) => self.waited.push(waited),
            None => drop(self.failed.get_or_insert(said.to_owned())),
        }
    }

    /// Which of `n_ranks` ranks failed and how; `None` if no line says so.
    pub(crate) fn verdict(&self, n_ranks: usize) -> Option<String> {
        let mut parts = Vec::new();
        parts.extend(
            self.killed.as_ref().map(|Killed { rank, host, signal }| format!("rank {rank} on {host} was killed by {signal}")),
        );
        parts.extend(self.lost_host.as_ref().map(|host| format!("the connection to {host} was lost")));
        parts.extend(self.is_unreachable.then(|| "mpirun could not start its daemon on one of the hosts".to_owned()));
        parts.extend(self.failed.clone());
        if let Some((_, place)) = self.waited.first() {
            let said = |rank: &usize| self.waited.iter().any(|(waited, _)| waited == rank);
            let (waiting, silent): (Vec<_>, Vec<_>) = (0..n_ranks).partition(said);
            // If the failed rank is known, the silent ones were ended before they could report.
            let culprit = if parts.is_empty() { format!(" for {}, which said nothing", listed(&silent)) } else { String::new() };
            let culprit = if silent.is_empty() { " for each other".to_owned() } else { culprit };
            parts.push(format!("{} waited {place}{culprit}", listed(&waiting)));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// `mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).`
fn killed(line: &str) -> Option<Killed> {
    let (_, line) = line.split_once("process rank ")?;
    let (who, signal) = line.split_once(" exited on ")?;
    let (rank, host) = (who.split(' ').next()?.parse().ok()?, who.split_once("on node ")?.1.to_owned());
    Some(Killed { rank, host, signal: signal.trim_end_matches('.').to_owned() })
}

/// `rank 0 waited 1s in barrier: another rank hangs, …`
fn waited(said: &str) -> Option<(usize, String)> {
    let (rank, place) = said.strip_prefix("rank ")?.split_once(" waited ")?;
    Some((rank.parse().ok()?, place.split_once(": ")?.0.to_owned()))
}

/// `rank 1`, `ranks 0, 2`.
fn listed(ranks: &[usize]) -> String {
    let numbers = ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    format!("rank{} {numbers}", if ranks.len() == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(heard: &[&str], n_ranks: usize, expected: Option<&str>) {
        let mut words = Words::default();
        heard.iter().for_each(|line| words.hear(line));
        assert_eq!(words.verdict(n_ranks).as_deref(), expected, "{heard:?}");
        assert_eq!(words.failing_since.is_some(), expected.is_some(), "{heard:?}");
    }

    const WAITED: &str = "waited 1s in all_reduce, step 57: another rank hangs, is far behind, or ended without a word; the run ends, start again from the last checkpoint";
    const KILLED: &str = "mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).";

    #[test]
    fn the_rank_to_blame_is_named() {
        check(&["epoch 3: loss 0.1", "rank 0 failed to be quick"], 2, None);
        check(&["-----", KILLED], 4, Some("rank 2 on vm was killed by signal 9 (Killed)"));
        let panicked = "rank 1 failed: its thread panicked; the run ends, start again from the last checkpoint";
        check(&["on purpose", panicked], 2, Some("rank 1 failed: its thread panicked"));
        let daemons = [
            "ORTE has lost communication with a remote daemon.",
            "  HNP daemon   : [[1,0],0] on node a",
            "  Remote daemon: [[1,0],1] on node b",
        ];
        check(&daemons, 2, Some("the connection to b was lost"));
        let unreachable = ["ssh: Could not resolve hostname b", "ORTE was unable to reliably start one or more daemons."];
        check(&unreachable, 2, Some("mpirun could not start its daemon on one of the hosts"));
    }

    #[test]
    fn the_silent_one_hangs_where_nothing_else_is_known() {
        let [zero, one, three] = [0, 1, 3].map(|rank| format!("rank {rank} {WAITED}"));
        check(&[&zero, &three, &one], 4, Some("ranks 0, 1, 3 waited 1s in all_reduce, step 57 for rank 2, which said nothing"));
        check(&[&zero], 1, Some("rank 0 waited 1s in all_reduce, step 57 for each other"));
        let both = "rank 2 on vm was killed by signal 9 (Killed); rank 0 waited 1s in all_reduce, step 57";
        check(&[KILLED, &zero], 4, Some(both));
    }

    #[test]
    fn a_status_alone_is_a_sign_and_no_verdict() {
        let mut words = Words::default();
        words.hear("mpirun detected that one or more processes exited with non-zero status, thus causing");
        assert!(words.failing_since.is_some(), "the clock runs");
        assert_eq!(words.verdict(2), None);
    }
}
