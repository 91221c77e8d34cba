//! The bounded ring between workers that fill batches and the consumer that takes them in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::buffers::{Buffers, Fill};
use crate::plan::Plan;
use crate::{Error, Feature, RowSource};

/// What workers and consumer share: a window of `depth` batches that moves as batches are taken.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    state: Mutex<State<T>>,
    /// A batch has been made: the consumer looks again.
    made: Condvar,
    /// There is room, another epoch, or an end: workers look again.
    room: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// What is being made; `None` between epochs.
    plan: Option<Plan>,
    n_batches: usize,
    /// Counts plans, so that a worker knows whether what it has made is still wanted.
    generation: u64,
    n_claimed: usize,
    n_taken: usize,
    /// Batch `nth` waits in slot `nth % depth`.
    slots: Vec<Option<Result<Buffers<T>, Error>>>,
    spare: Vec<Buffers<T>>,
    closed: bool,
}

impl<T: Feature> Ring<T> {
    pub(crate) fn new(depth: usize, buffers: impl FnMut() -> Buffers<T>) -> Self {
        let mut spare = Vec::with_capacity(depth + 1);
        spare.resize_with(depth + 1, buffers);
        let slots = (0..depth).map(|_| None).collect();
        let state = State { plan: None, n_batches: 0, generation: 0, n_claimed: 0, n_taken: 0, slots, spare, closed: false };
        Self { state: Mutex::new(state), made: Condvar::new(), room: Condvar::new() }
    }

    /// No code of others runs under the lock, so a poisoned one would still be whole.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what was being made and begins with `plan`, if there is one. `returned` is what the consumer had in hand.
    pub(crate) fn start(&self, plan: Option<&Plan>, returned: Option<Buffers<T>>) {
        let mut state = self.lock();
        let state = &mut *state;
        state.generation += 1;
        state.spare.extend(returned);
        state.spare.extend(state.slots.iter_mut().filter_map(Option::take).filter_map(Result::ok));
        (state.n_claimed, state.n_taken) = (0, 0);
        state.n_batches = plan.map_or(0, Plan::n_batches);
        state.plan = plan.cloned();
        self.room.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room.notify_all();
    }

    /// The consumer's side: waits for the next batch, and gives back the one before.
    pub(crate) fn take(&self, returned: Option<Buffers<T>>) -> Result<Buffers<T>, Error> {
        let mut state = self.lock();
        state.spare.extend(returned);
        loop {
            let slot = state.n_taken % state.slots.len();
            if let Some(made) = state.slots[slot].take() {
                state.n_taken += 1;
                self.room.notify_one();
                return made;
            }
            state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A worker's life. Whoever makes room wakes a worker, or is one: buffers that are no longer wanted come back with the worker that
    /// looks for the next batch.
    pub(crate) fn work<S: RowSource<Feature = T>>(&self, source: &S) {
        let mut state = self.lock();
        while !state.closed {
            let Some((plan, nth, mut buffers)) = state.claim() else {
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let generation = state.generation;
            drop(state);
            // Half-filled buffers are whole all the same: they are numbers that the next batch writes over.
            let filled = catch_unwind(AssertUnwindSafe(|| buffers.fill(source, &plan, nth, Fill::Alone)));
            let filled = filled.unwrap_or_else(|thrown| {
                let message = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let message = message.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_default();
                Err(Error::WorkerPanicked { batch: plan.index(nth), message })
            });
            state = self.lock();
            state.put(generation, nth, filled, buffers);
            self.made.notify_one();
        }
    }
}

impl<T: Feature> State<T> {
    /// The next batch to make, if there is one and room for it.
    fn claim(&mut self) -> Option<(Plan, usize, Buffers<T>)> {
        let nth = self.n_claimed;
        if nth >= self.n_batches || nth >= self.n_taken + self.slots.len() {
            return None;
        }
        let plan = self.plan.clone()?;
        let buffers = self.spare.pop()?;
        self.n_claimed += 1;
        Some((plan, nth, buffers))
    }

    fn put(&mut self, generation: u64, nth: usize, filled: Result<(), Error>, buffers: Buffers<T>) {
        if generation != self.generation {
            self.spare.push(buffers);
            return;
        }
        let slot = nth % self.slots.len();
        self.slots[slot] = Some(match filled {
            Ok(()) => Ok(buffers),
            Err(error) => {
                self.spare.push(buffers);
                Err(error)
            }
        });
    }
}
