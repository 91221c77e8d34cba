//! An all-reduce as two steps of a program: it is started when its input is ready, and awaited where its result is needed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, STATE_LEN};
use brisk_nn::tensor::program::{HostArgs, HostStep};
use brisk_replicate::{ReduceOp, Wire};

use super::feedback::Conversion;
use super::staging::InFlight;
use super::uneven::UnevenRule;
use super::{Failure, Links, Stop};

/// Some elements of a buffer, reduced in every replay.
#[derive(Debug)]
pub(crate) struct Exchange {
    links: Links,
    conversion: Arc<Conversion>,
    reduce: ReduceOp,
    stop: Option<Arc<Stop>>,
    in_flight: InFlight,
}

impl Exchange {
    pub(crate) fn new(links: Links, elements: Range<usize>, reduce: ReduceOp, wire: Wire, stop: Option<Arc<Stop>>) -> Self {
        // The stop request follows the values, in full precision.
        let n_sent = elements.len() + usize::from(stop.is_some());
        let wire = if stop.is_some() { Wire::F32 } else { wire };
        Self { links, conversion: Conversion::new(wire, elements, n_sent), reduce, stop, in_flight: InFlight::default() }
    }

    fn n_values(&self) -> usize {
        self.conversion.elements().len()
    }

    fn start(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let n = self.n_values();
        let mut values = self.links.staging.take(n + usize::from(self.stop.is_some()));
        if self.links.attendance.has_joined() {
            values.fill(0.0);
        } else {
            args.read(0, 0, &mut values[..n])?;
        }
        if let Some(stop) = &self.stop {
            values[n] = f32::from(u8::from(stop.is_wanted.load(Ordering::Relaxed)));
        }
        let (reduce, overlap, conversion) = (self.reduce, self.links.overlap.clone(), self.conversion.clone());
        self.in_flight.start(self.links.communication.start("all_reduce", move |collective| {
            let since = Instant::now();
            conversion.all_reduce(collective, &mut values, reduce)?;
            overlap.add_reduction(since.elapsed(), size_of_val(&values[..]));
            Ok(values)
        }))
    }

    /// Writes the result to `args`, if the reduction was started.
    fn finish(&self, args: &mut HostArgs<'_>, uneven: Option<&UnevenRule>) -> Result<(), Failure> {
        let Some(mut values) = self.links.overlap.awaited(|| self.in_flight.finish())? else { return Ok(()) };
        let (reduced, wish) = values.split_at_mut(self.n_values());
        uneven.map_or(Ok(()), |uneven| uneven.apply(reduced, self.reduce))?;
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
