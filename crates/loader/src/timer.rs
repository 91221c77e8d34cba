use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a thread does for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The source reads rows, and decodes them.
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

/// Where the time of a loader goes. Give it to [`Loader::timed`](crate::Loader::timed), ask it for a [`report`](Self::report) whenever you like.
///
/// Costs two looks at the clock a stage and batch. Threads that work at once add up their times.
#[derive(Debug, Default)]
pub struct StageTimer {
    gather: AtomicU64,
    transform: AtomicU64,
    for_consumer: AtomicU64,
    for_producer: AtomicU64,
    n_batches: AtomicU64,
}

/// What a [`StageTimer`] has seen; its `Display` is one line that names the bottleneck.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageReport {
    /// Batches taken.
    pub n_batches: u64,
    /// Time in which rows were gathered, of all threads together.
    pub gather: Duration,
    /// Time in which batches were transformed, of all threads together.
    pub transform: Duration,
    /// Time in which workers had made all batches that there was room for, and waited for the consumer to take one; of all workers together.
    pub waited_for_consumer: Duration,
    /// Time in which the consumer waited for a batch that was not ready. Without workers that is all of the making.
    pub waited_for_producer: Duration,
}

/// What holds a run up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// Whoever takes the batches: they are ready before they are wanted.
    Consumer,
    /// Batches are waited for, and most of their making is this stage.
    Producer(Stage),
}

impl StageTimer {
    /// What it has seen so far.
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
    // 2^64 nanoseconds are five hundred years.
    ns.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
}

impl StageReport {
    /// What holds the run up.
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

/// Where a thread notes what it is doing: for the timer if there is one, for whoever waits too long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stages<'a> {
    pub(crate) timer: Option<&'a StageTimer>,
    pub(crate) current: Option<&'a CurrentStage>,
}

/// The stage that a worker is in.
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
