//! A sum over replicas as two steps of a program: it is started where the values are there, and awaited where they are wanted.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, STATE_LEN};
use brisk_nn::tensor::program::{HostArgs, HostStep};
use brisk_replicate::{CommThread, Compressed, Pending, ReduceOp, Wire};

use super::{Overlap, Stop};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Some elements of a buffer, reduced in every replay.
#[derive(Debug)]
pub(crate) struct Exchange {
    communication: Arc<CommThread>,
    overlap: Arc<Overlap>,
    elements: Range<usize>,
    reduce: ReduceOp,
    stop: Option<Arc<Stop>>,
    at: Mutex<At>,
}

/// Where the values are.
#[derive(Debug)]
enum At {
    Here(Values),
    OnTheWay(Pending<Values>),
    /// With an operation that has failed.
    Lost,
}

#[derive(Debug)]
struct Values {
    values: Vec<f32>,
    compressed: Compressed,
}

impl Exchange {
    pub(crate) fn new(
        communication: Arc<CommThread>,
        overlap: Arc<Overlap>,
        elements: Range<usize>,
        reduce: ReduceOp,
        wire: Wire,
        stop: Option<Arc<Stop>>,
    ) -> Self {
        // Who wants to stop is told behind the values, in full.
        let n = elements.len() + usize::from(stop.is_some());
        let wire = if stop.is_some() { Wire::F32 } else { wire };
        let values = Values { values: vec![0.0; n], compressed: Compressed::new(wire, n) };
        Self { communication, overlap, elements, reduce, stop, at: Mutex::new(At::Here(values)) }
    }

    fn start(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let At::Here(mut values) = std::mem::replace(&mut *at, At::Lost) else {
            return Err("the reduction before was never awaited, or has failed".into());
        };
        args.read(0, 0, &mut values.values[..self.elements.len()])?;
        if let Some(stop) = &self.stop {
            values.values[self.elements.len()] = f32::from(u8::from(stop.is_wanted.load(Ordering::Relaxed)));
        }
        let (reduce, overlap) = (self.reduce, self.overlap.clone());
        *at = At::OnTheWay(self.communication.start("all_reduce", move |collective| {
            let since = Instant::now();
            values.compressed.all_reduce(collective, &mut values.values, reduce)?;
            overlap.add_reduction(since.elapsed(), size_of_val(&values.values[..]));
            Ok(values)
        }));
        Ok(())
    }

    /// Writes what came of it to `args`, if it was started.
    fn finish(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = match std::mem::replace(&mut *at, At::Lost) {
            At::OnTheWay(pending) => pending,
            here => {
                *at = here;
                return Ok(());
            }
        };
        let values = pending.wait()?;
        let (reduced, wish) = values.values.split_at(self.elements.len());
        if let (Some(stop), [wish]) = (&self.stop, wish) {
            stop.is_agreed.store(*wish > 0.0, Ordering::Relaxed);
        }
        args.write(0, self.elements.start, reduced)?;
        *at = At::Here(values);
        Ok(())
    }
}

/// Sends the values off.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) exchange: Arc<Exchange>,
    /// Whether the run's state is asked whether a step is due.
    pub(crate) asks_whether_due: bool,
}

impl HostStep for Start {
    fn name(&self) -> &'static str {
        "start_all_reduce"
    }

    fn args(&self) -> Vec<Arg> {
        let values = Arg::read("x", DType::F32, self.exchange.elements.len());
        let state = self.asks_whether_due.then(|| Arg::read("state", DType::U32, STATE_LEN));
        std::iter::once(values).chain(state).collect()
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let mut state = [0_u32; STATE_LEN];
        if self.asks_whether_due {
            args.read(1, 0, &mut state)?;
        }
        let [_, _, skip, _] = state;
        if skip == 0 { self.exchange.start(args) } else { Ok(()) }
    }
}

/// Waits for all that was started.
#[derive(Debug)]
pub(crate) struct Finish {
    /// Elements of the buffer that they are parts of.
    pub(crate) n: usize,
    pub(crate) exchanges: Vec<Arc<Exchange>>,
    pub(crate) overlap: Arc<Overlap>,
}

impl HostStep for Finish {
    fn name(&self) -> &'static str {
        "await_all_reduce"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::write("y", DType::F32, self.n)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let since = Instant::now();
        self.exchanges.iter().try_for_each(|exchange| exchange.finish(args))?;
        self.overlap.add_waiting(since.elapsed());
        Ok(())
    }
}
