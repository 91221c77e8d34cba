use std::fmt::Debug;
use std::io::Write as _;
use std::process::exit;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The exit status of a process whose peer has failed.
pub(crate) const PEER_FAILED: i32 = 75;

/// A thread that ends the process when an operation takes too long. Nothing else notices a rank that hangs: the others wait.
///
/// It first asks the other ranks for their state. A rank that does not answer has stopped; one that answers that it is outside
/// any operation is the one that the others wait for.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// An operation is watched while this exists.
#[derive(Debug)]
pub(crate) struct Watching {
    /// When it began.
    pub(crate) since: Instant,
    shared: Arc<Shared>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.shared.lock().inside = None;
    }
}

/// Short messages between the watching threads of all ranks, independent of the operations.
pub(crate) trait Peers: Debug + Send {
    /// How many ranks there are.
    fn world_size(&self) -> usize;

    /// Sends a message and does not wait until it is received.
    fn send(&self, to: usize, message: Message);

    /// A message that has arrived, and its sender.
    fn receive(&self) -> Option<(usize, Message)>;
}

/// A message between watching threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// The sender has waited too long, and is about to end.
    Ask,
    /// The sender still runs.
    Answer {
        /// Whether it is in an operation, waiting as the others do.
        is_inside: bool,
        /// Its step, if it was set.
        step: Option<u64>,
    },
}

#[derive(Debug)]
struct Shared {
    rank: usize,
    limit: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    inside: Option<(&'static str, Instant)>,
    step: Option<u64>,
    is_over: bool,
}

/// How long the process still runs after it has reported which rank it waited for: during that time it answers other ranks, which
/// are about to ask the same.
const FAREWELL: Duration = Duration::from_secs(1);

impl Watch {
    /// Watches the operations of this rank. Without `peers` a rank that hangs is noticed, but not named.
    pub(crate) fn start(rank: usize, limit: Duration, peers: Option<Box<dyn Peers>>) -> Self {
        let shared = Arc::new(Shared { rank, limit, state: Mutex::default(), changed: Condvar::new() });
        let watched = shared.clone();
        let thread = std::thread::spawn(move || watched.watch(peers.as_deref()));
        Self { shared, thread: Some(thread) }
    }

    /// An operation begins, and lasts until what is returned is dropped.
    pub(crate) fn enter(&self, op: &'static str) -> Watching {
        let since = Instant::now();
        self.shared.lock().inside = Some((op, since));
        Watching { since, shared: self.shared.clone() }
    }

    pub(crate) fn at_step(&self, step: u64) {
        self.shared.lock().step = Some(step);
    }

    /// Ends the thread; no message is sent or received after this returns.
    pub(crate) fn stop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the watching thread is ignored.
            drop(thread.join());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn watch(&self, peers: Option<&dyn Peers>) {
        // Operations are many and short: the thread polls now and then instead of being notified of each.
        let between = (self.limit / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        loop {
            if self.changed.wait_timeout(self.lock(), between).unwrap_or_else(PoisonError::into_inner).0.is_over {
                return;
            }
            let mut was_asked = false;
            while let Some((from, message)) = peers.and_then(Peers::receive) {
                was_asked |= self.answer(peers, from, message);
            }
            let State { inside, step, .. } = *self.lock();
            if let Some((op, since)) = inside
                && (was_asked || since.elapsed() > self.limit)
            {
                self.end(peers, op, since, step, between);
            }
        }
    }

    /// Answers `message` if it asks for this rank's state; returns whether it did.
    fn answer(&self, peers: Option<&dyn Peers>, from: usize, message: Message) -> bool {
        let State { inside, step, .. } = *self.lock();
        let (Some(peers), Message::Ask) = (peers, message) else { return false };
        peers.send(from, Message::Answer { is_inside: inside.is_some(), step });
        true
    }

    /// Finds out which rank this one waits for, reports it, and ends the process.
    fn end(&self, peers: Option<&dyn Peers>, op: &str, since: Instant, step: Option<u64>, between: Duration) -> ! {
        let waited = since.elapsed();
        // The other ranks poll for messages as often as this one; a busy machine gets some extra time.
        let patience = 2 * between + (self.limit / 4).clamp(Duration::from_millis(100), Duration::from_secs(10));
        let culprit = match peers {
            Some(peers) => culprit(&self.ask_all(peers, patience)),
            None => "another rank stopped responding, or is far behind".to_owned(),
        };
        let step = step.map_or(String::new(), |step| format!(", step {step}"));
        let rank = self.rank;
        say(&format!(
            "rank {rank} waited {waited:.0?} in {op}{step}: {culprit}; the run ends, start again from the last checkpoint"
        ));
        let said = Instant::now();
        while said.elapsed() < FAREWELL.min(self.limit) {
            while let Some((from, message)) = peers.and_then(Peers::receive) {
                self.answer(peers, from, message);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        exit(PEER_FAILED)
    }

    /// The answers of all other ranks; `None` for one that does not answer within `patience`.
    fn ask_all(&self, peers: &dyn Peers, patience: Duration) -> Vec<(usize, Option<Message>)> {
        let others = (0..peers.world_size()).filter(|&rank| rank != self.rank);
        let mut answers: Vec<(usize, Option<Message>)> = others.map(|rank| (rank, None)).collect();
        answers.iter().for_each(|&(rank, _)| peers.send(rank, Message::Ask));
        let asked = Instant::now();
        while asked.elapsed() < patience && answers.iter().any(|(_, answer)| answer.is_none()) {
            match peers.receive() {
                None => std::thread::sleep(Duration::from_millis(1)),
                Some((from, message)) => {
                    if !self.answer(Some(peers), from, message)
                        && let Some((_, answer)) = answers.iter_mut().find(|(rank, _)| *rank == from)
                    {
                        *answer = Some(message);
                    }
                }
            }
        }
        answers
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rank that the others wait for, according to their answers.
fn culprit(answers: &[(usize, Option<Message>)]) -> String {
    let silent: Vec<usize> = answers.iter().filter(|(_, answer)| answer.is_none()).map(|(rank, _)| *rank).collect();
    if !silent.is_empty() {
        return format!("{} stopped responding", crate::error::ranks(&silent));
    }
    let outside = answers.iter().filter_map(|(rank, answer)| match answer {
        Some(Message::Answer { is_inside: false, step }) => Some((*rank, *step)),
        _ => None,
    });
    let (late, steps): (Vec<usize>, Vec<Option<u64>>) = outside.unzip();
    let at = match steps[..] {
        [Some(step)] => format!(", at step {step}"),
        _ => String::new(),
    };
    match late.len() {
        0 => "all ranks wait for each other; the connection between them may be lost".to_owned(),
        1 => format!("{} is still running{at}, but did not join", crate::error::ranks(&late)),
        _ => format!("{} are still running, but did not join", crate::error::ranks(&late)),
    }
}

/// Writes the final message of a process in one piece, so that those of several ranks do not mix. If even standard error is
/// closed, the message is lost.
pub(crate) fn say(words: &str) {
    drop(std::io::stderr().write_all(format!("{words}\n").as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: Option<Message> = Some(Message::Answer { is_inside: true, step: Some(3) });
    const OUTSIDE: Option<Message> = Some(Message::Answer { is_inside: false, step: Some(2) });

    #[test]
    fn the_culprit_is_named_and_not_those_who_wait() {
        assert_eq!(culprit(&[(1, INSIDE), (2, None), (3, INSIDE)]), "rank 2 stopped responding");
        assert_eq!(culprit(&[(0, None), (2, OUTSIDE), (3, None)]), "ranks 0, 3 stopped responding");
        assert_eq!(culprit(&[(0, INSIDE), (1, OUTSIDE)]), "rank 1 is still running, at step 2, but did not join");
        assert_eq!(culprit(&[(0, OUTSIDE), (1, OUTSIDE)]), "ranks 0, 1 are still running, but did not join");
        let all = "all ranks wait for each other; the connection between them may be lost";
        assert_eq!(culprit(&[(0, INSIDE), (1, INSIDE)]), all);
    }
}
