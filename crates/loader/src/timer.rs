use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a thread is doing for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The source reads and decodes rows.
    Gather,
    /// The function of [`Loader::map`](crate::Loader::map) or [`Loader::map_rows`](crate::Loader::map_rows) runs.
    Transform,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gather => "gather",
            Self::Transform => "transform",
        })
    }
}

/// Measures where the time of a loader goes. Pass it to [`Loader::timed`](crate::Loader::timed), and call
/// [`report`](Self::report) at any time.
///
/// Costs two clock reads per stage and batch. The times of concurrent threads are added up.
#[derive(Debug, Default)]
pub struct StageTimer {
    gather: AtomicU64,
    transform: AtomicU64,
    for_consumer: AtomicU64,
    for_producer: AtomicU64,
    n_batches: AtomicU64,
}

/// The measurements of a [`StageTimer`]; its `Display` is one line that names the bottleneck.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageReport {
    /// The number of batches taken.
    pub n_batches: u64,
    /// The time spent gathering rows, summed over all threads.
    pub gather: Duration,
    /// The time spent transforming batches, summed over all threads.
    pub transform: Duration,
    /// The time that workers waited for the consumer to take a batch because there was no room for more, summed over all workers.
    pub waited_for_consumer: Duration,
    /// The time that the consumer waited for batches that were not ready. Without workers, this is all the time spent making
    /// batches.
    pub waited_for_producer: Duration,
}

/// What limits the speed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// The consumer of the batches: they are ready before they are wanted.
    Consumer,
    /// The consumer waits for batches, and this stage takes the most time.
    Producer(Stage),
}

impl StageTimer {
    /// The measurements so far.
    pub fn report(&self) -> StageReport {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Ordering::Relaxed));
        StageReport {
            n_batches: self.n_batches.load(Ordering::Relaxed),
            gather: time(&self.gather),
            transform: time(&self.transform),
            waited_for_consumer: time(&self.for_consumer),
            waited_for_producer: time(&self.for_producer),
        }
    }

    pub(crate) fn count_batch(&self) {
        self.n_batches.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_wait_for_consumer(&self, since: Instant) {
        add(&self.for_consumer, since);
    }

    pub(crate) fn add_wait_for_producer(&self, since: Instant) {
        add(&self.for_producer, since);
    }
}

fn add(ns: &AtomicU64, since: Instant) {
    // 2^64 nanoseconds are more than five hundred years.
    ns.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
}

impl StageReport {
    /// What limits the speed of the run.
    pub fn bottleneck(&self) -> Bottleneck {
        if self.waited_for_consumer > self.waited_for_producer {
            Bottleneck::Consumer
        } else if self.transform > self.gather {
            Bottleneck::Producer(Stage::Transform)
        } else {
            Bottleneck::Producer(Stage::Gather)
        }
    }
}

impl fmt::Display for StageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_batches, gather, transform, waited_for_consumer, waited_for_producer } = self;
        match self.bottleneck() {
            Bottleneck::Consumer => write!(f, "bottleneck: the consumer; batches are ready before they are wanted")?,
            Bottleneck::Producer(stage) => write!(f, "bottleneck: {stage}; batches are waited for")?,
        }
        write!(
            f,
            " ({n_batches} batches: gather {gather:.1?}, transform {transform:.1?}, workers waited {waited_for_consumer:.1?} for the consumer, \
             the consumer {waited_for_producer:.1?} for batches)"
        )
    }
}

/// Where a thread records its current stage: for the timer if there is one, and for the error of a consumer that waits too long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stages<'a> {
    pub(crate) timer: Option<&'a StageTimer>,
    pub(crate) current: Option<&'a CurrentStage>,
}

/// The current stage of a worker.
#[derive(Debug, Default)]
pub(crate) struct CurrentStage(AtomicU8);

impl CurrentStage {
    pub(crate) fn stage(&self) -> Stage {
        if self.0.load(Ordering::Relaxed) == Stage::Transform as u8 { Stage::Transform } else { Stage::Gather }
    }
}

impl Stages<'_> {
    pub(crate) fn run<R>(self, stage: Stage, f: impl FnOnce() -> R) -> R {
        if let Some(current) = self.current {
            current.0.store(stage as u8, Ordering::Relaxed);
        }
        let Some(timer) = self.timer else { return f() };
        let since = Instant::now();
        let result = f();
        let ns = match stage {
            Stage::Gather => &timer.gather,
            Stage::Transform => &timer.transform,
        };
        add(ns, since);
        result
    }
}
