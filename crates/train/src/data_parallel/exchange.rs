//! An all-reduce as two steps of a program: it is started when its input is ready, and awaited where its result is needed.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, STATE_LEN};
use brisk_nn::tensor::program::{HostArgs, HostStep};
use brisk_replicate::{CollectiveExt, CommThread, Compressed, Pending, ReduceOp, Wire};

use super::{Failure, Overlap, Stop, UnevenInputs};

/// Some elements of a buffer, reduced in every replay.
#[derive(Debug)]
pub(crate) struct Exchange {
    communication: Arc<CommThread>,
    overlap: Arc<Overlap>,
    elements: Range<usize>,
    reduce: ReduceOp,
    stop: Option<Arc<Stop>>,
    /// Where the first exchange of a step stores how many replicas have a batch.
    active: Option<Arc<AtomicUsize>>,
    at: Mutex<At>,
}

/// Where the values are.
#[derive(Debug)]
enum At {
    Here(Values),
    OnTheWay(Pending<Values>),
    /// Lost with an operation that has failed.
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
        active: Option<Arc<AtomicUsize>>,
    ) -> Self {
        // The stop request follows the values, in full precision.
        let n = elements.len() + usize::from(stop.is_some());
        let wire = if stop.is_some() { Wire::F32 } else { wire };
        let values = Values { values: vec![0.0; n], compressed: Compressed::new(wire, n) };
        Self { communication, overlap, elements, reduce, stop, active, at: Mutex::new(At::Here(values)) }
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
        *at = At::OnTheWay(self.send(values, 1));
        Ok(())
    }

    /// Takes part in the reduction with zeros, and returns how many replicas have a batch, if this exchange counts them.
    pub(crate) fn join(&self) -> Result<Option<usize>, brisk_replicate::Error> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let At::Here(mut values) = std::mem::replace(&mut *at, At::Lost) else {
            return Err(brisk_replicate::Error::Closed { op: "join" });
        };
        values.values.fill(0.0);
        *at = At::Here(self.send(values, 0).wait()?);
        Ok(self.active.as_ref().map(|active| active.load(Ordering::Relaxed)))
    }

    /// Starts the reduction; `n_active` is 1 for a replica that has a batch.
    fn send(&self, mut values: Values, n_active: u32) -> Pending<Values> {
        let (reduce, overlap, active) = (self.reduce, self.overlap.clone(), self.active.clone());
        self.communication.start("all_reduce", move |collective| {
            let since = Instant::now();
            if let Some(active) = active {
                let mut count = [n_active];
                collective.all_reduce(&mut count, ReduceOp::Sum)?;
                active.store(count[0] as usize, Ordering::Relaxed);
            }
            values.compressed.all_reduce(collective, &mut values.values, reduce)?;
            overlap.add_reduction(since.elapsed(), size_of_val(&values.values[..]));
            Ok(values)
        })
    }

    /// Writes the result to `args`, if the reduction was started.
    fn finish(&self, args: &mut HostArgs<'_>, uneven: Option<&UnevenRule>) -> Result<(), Failure> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = match std::mem::replace(&mut *at, At::Lost) {
            At::OnTheWay(pending) => pending,
            here => {
                *at = here;
                return Ok(());
            }
        };
        let mut values = self.overlap.awaited(|| pending.wait())?;
        let scale = uneven.map_or(Ok(1.0), |uneven| uneven.scale(self.reduce))?;
        if scale != 1.0 {
            values.values[..self.elements.len()].iter_mut().for_each(|value| *value *= scale);
        }
        let (reduced, wish) = values.values.split_at(self.elements.len());
        if let (Some(stop), [wish]) = (&self.stop, wish) {
            stop.is_agreed.store(*wish > 0.0, Ordering::Relaxed);
        }
        args.write(0, self.elements.start, reduced)?;
        *at = At::Here(values);
        Ok(())
    }
}

/// Starts sending the values.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) exchange: Arc<Exchange>,
    /// Whether the run's state is checked for whether a step is due.
    pub(crate) asks_whether_due: bool,
}

impl Start {
    /// The exchange that a host step starts, if it starts one.
    pub(crate) fn exchange_of(step: &dyn HostStep) -> Option<Arc<Exchange>> {
        let step: &dyn Any = step;
        step.downcast_ref::<Self>().map(|start| start.exchange.clone())
    }
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

/// Waits for all exchanges that were started.
#[derive(Debug)]
pub(crate) struct Finish {
    /// Elements of the buffer that the exchanges are parts of.
    pub(crate) n: usize,
    pub(crate) exchanges: Vec<Arc<Exchange>>,
    pub(crate) uneven: Option<UnevenRule>,
}

/// What happens when some replicas have a batch and others have none left.
#[derive(Debug)]
pub(crate) struct UnevenRule {
    pub(crate) uneven: UnevenInputs,
    pub(crate) active: Arc<AtomicUsize>,
    pub(crate) world_size: usize,
}

impl UnevenRule {
    fn scale(&self, reduce: ReduceOp) -> Result<f32, brisk_replicate::Error> {
        let (n, of) = (self.active.load(Ordering::Relaxed), self.world_size);
        match self.uneven {
            UnevenInputs::Refused if n < of => Err(ran_out(n, of)),
            UnevenInputs::DividedByActive if n > 0 && reduce == ReduceOp::Mean => Ok(of as f32 / n as f32),
            UnevenInputs::Refused | UnevenInputs::DividedByActive | UnevenInputs::DividedByAll => Ok(1.0),
        }
    }
}

/// The error on all replicas when one has no batch left and that is refused.
pub(crate) fn ran_out(n_active: usize, world_size: usize) -> brisk_replicate::Error {
    let of = |n: usize| format!("{n} of {world_size} replicas");
    brisk_replicate::Error::Uneven { has: of(n_active), lacks: of(world_size - n_active) }
}

impl HostStep for Finish {
    fn name(&self) -> &'static str {
        "await_all_reduce"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::write("y", DType::F32, self.n)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        self.exchanges.iter().try_for_each(|exchange| exchange.finish(args, self.uneven.as_ref()))
    }
}
