//! The bounded ring between workers that fill batches and the consumer that takes them in order.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::buffers::{Buffers, Fill};
use crate::error::Error;
use crate::hints::{Due, Hints};
use crate::make::{Job, Make, make};
use crate::plan::Plan;
use crate::source::{Feature, RowSource};
use crate::timer::{CurrentStage, Stages};
use crate::timer::{Stage, StageTimer};

/// The state shared by workers and consumer: a window of `depth` batches that moves as batches are taken.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    state: Mutex<State<T>>,
    /// Signalled when a batch has been made; the consumer waits for it.
    made: Condvar,
    /// Signalled when there is room, a new epoch, or the end; workers wait for it.
    room: Condvar,
    /// What each worker is doing.
    stages: Vec<CurrentStage>,
    timer: Option<Arc<StageTimer>>,
}

#[derive(Debug)]
struct State<T> {
    /// The current plan; `None` between epochs.
    plan: Option<Plan>,
    n_batches: usize,
    /// Counts plans, so that a worker knows whether the batch that it has made is still wanted.
    generation: u64,
    n_claimed: usize,
    n_taken: usize,
    /// Batch `nth` waits in slot `nth % depth`.
    slots: Vec<Option<Result<Buffers<T>, Error>>>,
    spare: Vec<Buffers<T>>,
    /// The batch that each worker is making.
    making: Vec<Option<usize>>,
    hints: Hints,
    /// Windows of past epochs, which the next free worker releases.
    leftover: Vec<(Plan, Due)>,
    closed: bool,
}

/// A batch for a worker to make, and the hints to give to the source first.
#[derive(Debug)]
struct Claim<T> {
    plan: Plan,
    nth: usize,
    due: Due,
    buffers: Buffers<T>,
}

/// Why there is no batch for the consumer.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// It could not be made.
    Failed(Error),
    /// It is not ready yet.
    TimedOut { waited: Duration, stage: Option<Stage> },
}

impl<T: Feature> Ring<T> {
    pub(crate) fn new(
        depth: usize,
        n_workers: usize,
        timer: Option<Arc<StageTimer>>,
        buffers: impl FnMut() -> Buffers<T>,
    ) -> Self {
        let mut spare = Vec::with_capacity(depth + 1);
        spare.resize_with(depth + 1, buffers);
        let state = State {
            plan: None,
            n_batches: 0,
            generation: 0,
            n_claimed: 0,
            n_taken: 0,
            slots: (0..depth).map(|_| None).collect(),
            spare,
            making: vec![None; n_workers],
            hints: Hints::default(),
            leftover: Vec::with_capacity(4),
            closed: false,
        };
        let stages = (0..n_workers).map(|_| CurrentStage::default()).collect();
        Self { state: Mutex::new(state), made: Condvar::new(), room: Condvar::new(), stages, timer }
    }

    /// Only code of this module runs under the lock, so the state would be valid even if the lock were poisoned.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the batches in progress and starts a plan with one of its batches, if there is one. `returned` is the batch that the
    /// consumer had.
    pub(crate) fn start(&self, plan: Option<(&Plan, usize)>, returned: Option<Buffers<T>>) {
        let mut state = self.lock();
        let state = &mut *state;
        state.generation += 1;
        state.making.fill(None);
        let due = state.hints.finish();
        if let Some(plan) = state.plan.take().filter(|_| !due.is_empty()) {
            state.leftover.push((plan, due));
        }
        state.spare.extend(returned);
        state.spare.extend(state.slots.iter_mut().filter_map(Option::take).filter_map(Result::ok));
        let first = plan.map_or(0, |(_, first)| first);
        (state.n_claimed, state.n_taken) = (first, first);
        state.n_batches = plan.map_or(0, |(plan, _)| plan.n_batches());
        state.plan = plan.map(|(plan, _)| plan.clone());
        self.room.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room.notify_all();
    }

    /// Waits for the next batch, at most for `at_most`, and gives back the previous one. Called by the consumer.
    pub(crate) fn take(&self, returned: Option<Buffers<T>>, at_most: Option<Duration>) -> Result<Buffers<T>, NotTaken> {
        let mut state = self.lock();
        state.spare.extend(returned);
        let slot = state.n_taken % state.slots.len();
        let mut since = None;
        loop {
            if let Some(made) = state.slots[slot].take() {
                state.n_taken += 1;
                self.room.notify_one();
                drop(state);
                if let Some(timer) = &self.timer {
                    since.into_iter().for_each(|since| timer.add_wait_for_producer(since));
                    timer.count_batch();
                }
                return made.map_err(NotTaken::Failed);
            }
            // The clock is only read if the time is needed.
            if since.is_none() && (self.timer.is_some() || at_most.is_some()) {
                since = Some(Instant::now());
            }
            state = match at_most.zip(since) {
                None => self.made.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some((at_most, since)) => {
                    let waited = since.elapsed();
                    let Some(left) = at_most.checked_sub(waited).filter(|left| !left.is_zero()) else {
                        let worker = state.making.iter().position(|&making| making == Some(state.n_taken));
                        return Err(NotTaken::TimedOut { waited, stage: worker.map(|worker| self.stages[worker].stage()) });
                    };
                    self.made.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// The loop of a worker. Every thread that makes room either wakes a worker or is one: buffers that are no longer wanted are
    /// returned by a worker, which then looks for the next batch itself.
    pub(crate) fn work<S: RowSource, M: Make<S, Out = T>>(&self, worker: usize, source: &S, maker: &M, scratch: &mut M::Scratch) {
        let mut state = self.lock();
        loop {
            if let Some((plan, due)) = state.leftover.pop() {
                drop(state);
                due.tell(source, &plan);
                state = self.lock();
                continue;
            }
            if state.closed {
                return;
            }
            let Some(Claim { plan, nth, due, mut buffers }) = state.claim(worker) else {
                let since = self.timer.as_ref().filter(|_| state.is_full()).map(|timer| (timer, Instant::now()));
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
                if let Some((timer, since)) = since {
                    timer.add_wait_for_consumer(since);
                }
                continue;
            };
            let generation = state.generation;
            drop(state);
            due.tell(source, &plan);
            let stages = Stages { timer: self.timer.as_deref(), current: Some(&self.stages[worker]) };
            let made = make(maker, source, &Job { plan: &plan, nth, fill: Fill::Alone, stages }, scratch, &mut buffers);
            state = self.lock();
            state.put(worker, generation, nth, made, buffers);
            self.made.notify_one();
        }
    }
}

impl<T: Feature> State<T> {
    /// Whether there are batches left to make but no room for them; called by a worker that has found nothing to do.
    fn is_full(&self) -> bool {
        self.n_claimed < self.n_batches
    }

    /// The next batch to make, if there is one and room for it.
    fn claim(&mut self, worker: usize) -> Option<Claim<T>> {
        let nth = self.n_claimed;
        if nth >= self.n_batches || nth >= self.n_taken + self.slots.len() {
            return None;
        }
        let plan = self.plan.clone()?;
        let buffers = self.spare.pop()?;
        self.n_claimed += 1;
        self.making[worker] = Some(nth);
        let due = self.hints.advance(&plan, nth, self.n_taken);
        Some(Claim { plan, nth, due, buffers })
    }

    fn put(&mut self, worker: usize, generation: u64, nth: usize, made: Result<(), Error>, buffers: Buffers<T>) {
        if generation != self.generation {
            self.spare.push(buffers);
            return;
        }
        self.making[worker] = None;
        let slot = nth % self.slots.len();
        self.slots[slot] = Some(match made {
            Ok(()) => Ok(buffers),
            Err(error) => {
                self.spare.push(buffers);
                Err(error)
            }
        });
    }
}
