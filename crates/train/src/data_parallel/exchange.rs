//! An all-reduce as two steps of a program: it is started when its input is ready, and awaited where its result is needed.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, STATE_LEN};
use brisk_nn::tensor::program::{HostArgs, HostStep};
use brisk_replicate::{CollectiveExt, Pending, ReduceOp, Wire};

use super::feedback::Conversion;
use super::staging::InFlight;
use super::{Failure, Links, Stop, UnevenInputs};

/// Some elements of a buffer, reduced in every replay.
#[derive(Debug)]
pub(crate) struct Exchange {
    links: Links,
    conversion: Arc<Conversion>,
    reduce: ReduceOp,
    stop: Option<Arc<Stop>>,
    /// Where the first exchange of a step stores how many replicas have a batch.
    active: Option<Arc<AtomicUsize>>,
    in_flight: InFlight,
}

impl Exchange {
    pub(crate) fn new(
        links: Links,
        elements: Range<usize>,
        reduce: ReduceOp,
        wire: Wire,
        stop: Option<Arc<Stop>>,
        active: Option<Arc<AtomicUsize>>,
    ) -> Self {
        // The stop request follows the values, in full precision.
        let n_sent = elements.len() + usize::from(stop.is_some());
        let wire = if stop.is_some() { Wire::F32 } else { wire };
        Self { links, conversion: Conversion::new(wire, elements, n_sent), reduce, stop, active, in_flight: InFlight::default() }
    }

    fn n_values(&self) -> usize {
        self.conversion.elements().len()
    }

    fn start(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let n = self.n_values();
        let mut values = self.links.staging.take(n + usize::from(self.stop.is_some()));
        args.read(0, 0, &mut values[..n])?;
        if let Some(stop) = &self.stop {
            values[n] = f32::from(u8::from(stop.is_wanted.load(Ordering::Relaxed)));
        }
        self.in_flight.start(self.send(values, 1))
    }

    /// Takes part in the reduction with zeros, and returns how many replicas have a batch, if this exchange counts them.
    pub(crate) fn join(&self) -> Result<Option<usize>, brisk_replicate::Error> {
        let values = vec![0.0; self.n_values() + usize::from(self.stop.is_some())];
        self.send(values, 0).wait()?;
        Ok(self.active.as_ref().map(|active| active.load(Ordering::Relaxed)))
    }

    /// Starts the reduction; `n_active` is 1 for a replica that has a batch.
    fn send(&self, mut values: Vec<f32>, n_active: u32) -> Pending<Vec<f32>> {
        let (reduce, overlap, active) = (self.reduce, self.links.overlap.clone(), self.active.clone());
        let conversion = self.conversion.clone();
        self.links.communication.start("all_reduce", move |collective| {
            let since = Instant::now();
            if let Some(active) = active {
                let mut count = [n_active];
                collective.all_reduce(&mut count, ReduceOp::Sum)?;
                active.store(count[0] as usize, Ordering::Relaxed);
            }
            conversion.all_reduce(collective, &mut values, reduce)?;
            overlap.add_reduction(since.elapsed(), size_of_val(&values[..]));
            Ok(values)
        })
    }

    /// Writes the result to `args`, if the reduction was started.
    fn finish(&self, args: &mut HostArgs<'_>, uneven: Option<&UnevenRule>) -> Result<(), Failure> {
        let Some(mut values) = self.links.overlap.awaited(|| self.in_flight.finish())? else { return Ok(()) };
        let scale = uneven.map_or(Ok(1.0), |uneven| uneven.scale(self.reduce))?;
        let (reduced, wish) = values.split_at_mut(self.n_values());
        if scale != 1.0 {
            reduced.iter_mut().for_each(|value| *value *= scale);
        }
        if let (Some(stop), [wish]) = (&self.stop, wish) {
            stop.is_agreed.store(*wish > 0.0, Ordering::Relaxed);
        }
        args.write(0, self.conversion.elements().start, reduced)?;
        self.links.staging.give(values);
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
    /// How its values are sent.
    pub(crate) fn conversion(&self) -> &Arc<Conversion> {
        &self.exchange.conversion
    }

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
        let values = Arg::read("x", DType::F32, self.exchange.n_values());
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
