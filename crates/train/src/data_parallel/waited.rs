use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brisk_report::{BatchWait, seconds};

/// How long replicas waited for the last one in the steps of a run, on average over those that waited. No clocks of different
/// machines are compared.
///
/// A step lasts until the next one begins, so what comes between two steps, such as a validation, counts. The first step of each
/// run does not: it may wait for shaders that are compiled. [`BatchesEnd::waits`](crate::BatchesEnd::waits), which a
/// [`StepLog`](crate::StepLog) writes, has the waits of each batch by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Waited {
    /// By rank, the share of the time for which the others waited for it.
    pub shares: Vec<f64>,
    /// The wait of a step, for all replicas that came last in it: the median over the steps, within 5 %.
    pub median: Duration,
    /// The longest.
    pub worst: Duration,
    /// The step of the longest wait, from 0, as in [`DataParallel::at_step`](crate::DataParallel::at_step).
    pub worst_step: u64,
    /// The replica that was waited for the longest in that step.
    pub worst_rank: usize,
}

impl Waited {
    /// The replica that the others waited for the longest.
    pub fn rank(&self) -> usize {
        largest(&self.shares)
    }
}

/// `waited for rank 3: 12 % of the time; in a step 4 ms (median), at most 210 ms for rank 3 at step 1801`.
impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank();
        let percent = 100.0 * self.shares.get(rank).copied().unwrap_or(0.0);
        let [median, worst] = [self.median, self.worst].map(|wait| seconds(wait.as_secs_f64()));
        let (worst_rank, worst_step) = (self.worst_rank, self.worst_step);
        write!(
            f,
            "waited for rank {rank}: {percent:.0} % of the time; in a step {median} (median), at most {worst} for rank {worst_rank} at step {worst_step}"
        )
    }
}

/// Adds up waits step by step.
#[derive(Debug, Default)]
pub(super) struct StepWaits(Mutex<Tally>);

#[derive(Debug, Default)]
struct Tally {
    step: Option<Step>,
    by_rank: Vec<Duration>,
    time: Duration,
    medians: Median,
    worst: Option<(Duration, u64, usize)>,
    /// How many batches have begun and not ended.
    running: Option<usize>,
    /// Batches that have ended since they were taken; `None` until then.
    ended: Option<Vec<Option<BatchWait>>>,
}

/// The step that has begun last.
#[derive(Debug)]
struct Step {
    number: u64,
    since: Instant,
    by_rank: Vec<Duration>,
    is_first: bool,
}

impl StepWaits {
    /// Batches of a step begin together, after these waits by rank since the ones before them began.
    pub(super) fn begin(&self, number: u64, n_batches: usize, now: Instant, by_rank: &[Duration]) {
        if by_rank.is_empty() {
            return;
        }
        let tally = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.end_batches(by_rank);
        tally.running = Some(n_batches);
        if let Some(step) = &mut tally.step {
            add(&mut step.by_rank, by_rank);
            // A step may take several batches.
            if step.number == number {
                return;
            }
        }
        let before = tally.step.take().filter(|before| before.number + 1 == number);
        let is_first = before.is_none();
        if let Some(before) = before.filter(|before| !before.is_first) {
            let wait = before.by_rank.iter().sum();
            tally.time += now - before.since;
            tally.medians.add(wait);
            if tally.worst.is_none_or(|(worst, ..)| wait > worst) {
                tally.worst = Some((wait, before.number, largest(&before.by_rank)));
            }
            add(&mut tally.by_rank, &before.by_rank);
        }
        tally.step = Some(Step { number, since: now, by_rank: vec![Duration::ZERO; by_rank.len()], is_first });
    }

    /// The batches have ended, with these waits by rank. Returns the waits of the batches since the last call, from the first on.
    pub(super) fn take_batches(&self, by_rank: &[Duration]) -> Vec<Option<BatchWait>> {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = &mut tally.step {
            add(&mut step.by_rank, by_rank);
        }
        tally.end_batches(by_rank);
        tally.ended.replace(Vec::new()).unwrap_or_default()
    }

    /// The waits so far; `None` before the end of the second step.
    pub(super) fn waited(&self) -> Option<Waited> {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (worst, worst_step, worst_rank) = tally.worst?;
        let share = |wait: &Duration| wait.as_secs_f64() / tally.time.as_secs_f64().max(f64::MIN_POSITIVE);
        let shares = tally.by_rank.iter().map(share).collect();
        Some(Waited { shares, median: tally.medians.get(), worst, worst_step, worst_rank })
    }
}

impl Tally {
    /// The running batches end, after these waits in them. Waits between batches are those of none.
    fn end_batches(&mut self, by_rank: &[Duration]) {
        let (Some(n_batches), Some(ended)) = (self.running.take(), &mut self.ended) else { return };
        let wait = BatchWait { time: by_rank.iter().sum(), rank: largest(by_rank) };
        // How much of it is that of each of several batches is not known.
        ended.extend(std::iter::repeat_n((n_batches == 1).then_some(wait), n_batches));
    }
}

fn add(sums: &mut Vec<Duration>, by_rank: &[Duration]) {
    sums.resize(by_rank.len(), Duration::ZERO);
    sums.iter_mut().zip(by_rank).for_each(|(sum, &wait)| *sum += wait);
}

/// The first rank of the largest value.
fn largest<T: PartialOrd>(by_rank: &[T]) -> usize {
    (1..by_rank.len()).fold(0, |most, rank| if by_rank[rank] > by_rank[most] { rank } else { most })
}

/// How many durations are in each of the intervals between powers of 2^(1/8) ns.
#[derive(Debug, Default)]
struct Median {
    counts: Vec<u64>,
}

impl Median {
    const PER_OCTAVE: f64 = 8.0;

    fn add(&mut self, duration: Duration) {
        let at = ((duration.as_nanos() as f64 + 1.0).log2() * Self::PER_OCTAVE) as usize;
        self.counts.resize(self.counts.len().max(at + 1), 0);
        self.counts[at] += 1;
    }

    fn get(&self) -> Duration {
        let n: u64 = self.counts.iter().sum();
        let mut n_below = 0;
        let at = self.counts.iter().position(|count| {
            n_below += count;
            2 * n_below >= n
        });
        // The middle of the interval; below 1 ns there is nothing.
        let ns = at.filter(|&at| at > 0).map_or(0.0, |at| ((at as f64 + 0.5) / Self::PER_OCTAVE).exp2() - 1.0);
        Duration::from_nanos(ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Steps of 10 ms that begin with `first`; the last of these waits are those of the step before.
    fn waits_of(waits: &StepWaits, first: u64, steps: &[[u32; 2]]) {
        let began = Instant::now();
        for (i, by_rank) in (0..).zip(steps) {
            waits.begin(first + i, 1, began + 10 * MS * i as u32, &by_rank.map(|wait| wait * MS));
        }
    }

    #[test]
    fn the_wait_of_each_step_is_that_until_the_next() {
        let waits = StepWaits::default();
        // Before the first step, in the first step, and in steps 1 to 4.
        waits_of(&waits, 0, &[[900, 0], [0, 800], [1, 0], [0, 6], [1, 0], [1, 0]]);
        let waited = waits.waited().expect("four steps have ended");
        assert_eq!((waited.rank(), waited.worst, waited.worst_step, waited.worst_rank), (1, 6 * MS, 2, 1));
        assert!((waited.shares[0] - 0.075).abs() < 1e-9 && (waited.shares[1] - 0.15).abs() < 1e-9, "{waited:?}");
        assert!(waited.median.abs_diff(MS) < MS / 20, "{waited:?}");
        let said = "waited for rank 1: 15 % of the time; in a step 1 ms (median), at most 6 ms for rank 1 at step 2";
        assert_eq!(waited.to_string(), said);
    }

    #[test]
    fn a_run_that_begins_again_counts_from_its_second_step() {
        let waits = StepWaits::default();
        waits_of(&waits, 7, &[[0, 0], [0, 0]]);
        assert_eq!(waits.waited(), None);
        waits_of(&waits, 3, &[[500, 0], [500, 0], [2, 0], [0, 3]]);
        let waited = waits.waited().expect("two steps have ended");
        assert_eq!((waited.worst, waited.worst_step), (3 * MS, 5));
    }

    /// Of a validation between two batches, the wait counts for the step, and for no batch.
    #[test]
    fn the_wait_of_each_batch_is_that_until_its_end() {
        let waits = StepWaits::default();
        let began = Instant::now();
        let by_rank = |first, second| [first * MS, second * MS];
        waits.begin(0, 1, began, &by_rank(9, 9));
        assert_eq!(waits.take_batches(&by_rank(9, 9)), [], "none was recorded");
        for (number, waited) in [(1, by_rank(9, 9)), (2, by_rank(1, 3)), (3, by_rank(2, 0))] {
            waits.begin(number, 1, began, &waited);
        }
        let wait = |ms, rank| Some(BatchWait { time: ms * MS, rank });
        assert_eq!(waits.take_batches(&by_rank(0, 5)), [wait(4, 1), wait(2, 0), wait(5, 1)]);
        assert_eq!(waits.take_batches(&by_rank(0, 7)), [], "between batches");
        waits.begin(4, 2, began, &by_rank(0, 8));
        assert_eq!(waits.waited().map(|waited| (waited.worst, waited.worst_step)), Some((20 * MS, 3)), "5, 7 and 8");
        assert_eq!(waits.take_batches(&by_rank(6, 0)), [None; 2], "of two together it is not known");
    }

    #[test]
    fn batches_of_one_step_are_added() {
        let waits = StepWaits::default();
        let began = Instant::now();
        for (number, wait) in [(0, 9), (1, 9), (1, 2), (1, 2), (2, 2)] {
            waits.begin(number, 1, began, &[Duration::ZERO, wait * MS]);
        }
        assert_eq!(waits.waited().map(|waited| (waited.worst, waited.worst_step)), Some((6 * MS, 1)));
        waits.begin(3, 1, began, &[]);
        assert_eq!(waits.waited().map(|waited| waited.worst_step), Some(1), "an engine that measures nothing");
    }
}
