//! A collective operation as two steps of a program: started when its input is ready, and awaited where its result is needed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, STATE_LEN};
use brisk_nn::tensor::program::{Error as ProgramError, HostArgs, HostStep, Program, Slice};
use brisk_replicate::{CollectiveExt, ReduceOp, Wire};

use super::attendance::UnevenRule;
use super::conversion::Conversion;
use super::failure::Failure;
use super::links::{Links, Stop};
use super::staging::InFlight;

/// What replicas do with the values of a bucket. Pieces have equal lengths, and are in the order of ranks.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// All get the reduced values.
    AllReduce(ReduceOp, Arc<Conversion>),
    /// Each gets its piece of the reduced values.
    ReduceScatter(ReduceOp, Arc<Conversion>),
    /// All get the pieces of all.
    AllGather,
}

impl Operation {
    /// Its name, and those of its two steps.
    fn names(&self) -> [&'static str; 3] {
        match self {
            Self::AllReduce(..) => ["all_reduce", "start_all_reduce", "await_all_reduce"],
            Self::ReduceScatter(..) => ["reduce_scatter", "start_reduce_scatter", "await_reduce_scatter"],
            Self::AllGather => ["all_gather", "start_all_gather", "await_all_gather"],
        }
    }

    /// How values are reduced, and in what format they are sent for that.
    fn reduction(&self) -> Option<(ReduceOp, &Arc<Conversion>)> {
        match self {
            Self::AllReduce(reduce, conversion) | Self::ReduceScatter(reduce, conversion) => Some((*reduce, conversion)),
            Self::AllGather => None,
        }
    }
}

/// Some elements of a buffer, exchanged in every replay.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) links: Links,
    pub(crate) operation: Operation,
    /// Elements that are read from the buffer; 0 if no kernel writes any.
    pub(crate) n_read: usize,
    /// Elements that are sent: those that are read, then zeros.
    pub(crate) n_sent: usize,
    /// Elements of the result that count.
    pub(crate) n_kept: usize,
    /// Elements that no kernel writes, sent as 0: gaps between parameters, and parameters that the loss does not depend on.
    pub(crate) unwritten: Vec<Range<usize>>,
    /// A request to stop that is sent after the values.
    pub(crate) stop: Option<Arc<Stop>>,
    pub(crate) in_flight: InFlight,
}

impl Exchange {
    /// The all-reduce of `elements` of a buffer.
    pub(crate) fn all_reduce(
        links: Links,
        elements: Range<usize>,
        reduce: ReduceOp,
        wire: Wire,
        stop: Option<Arc<Stop>>,
    ) -> Self {
        let n_read = elements.len();
        let n_sent = n_read + usize::from(stop.is_some());
        // The request follows the values in full precision.
        let wire = if stop.is_some() { Wire::F32 } else { wire };
        let operation = Operation::AllReduce(reduce, Conversion::new(wire, elements, n_sent));
        Self { links, operation, n_read, n_sent, n_kept: n_sent, unwritten: Vec::new(), stop, in_flight: InFlight::default() }
    }

    /// What is read from a buffer whose values are from argument `at` on, if any are read.
    fn input(&self, args: &mut HostArgs<'_>, at: usize) -> Result<Vec<f32>, Failure> {
        let mut input = self.links.staging.take(self.n_sent);
        let has_joined = self.operation.reduction().is_some() && self.links.attendance.has_joined();
        let n_read = if has_joined { 0 } else { self.n_read };
        if n_read > 0 {
            args.read(at, 0, &mut input[..n_read])?;
        }
        input[n_read..].fill(0.0);
        self.unwritten.iter().for_each(|range| input[range.clone()].fill(0.0));
        if let Some(stop) = &self.stop {
            input[self.n_read] = f32::from(u8::from(stop.is_wanted.load(Ordering::Relaxed)));
        }
        Ok(input)
    }

    fn start(&self, mut input: Vec<f32>) -> Result<(), Failure> {
        let (links, operation, n_kept) = (self.links.clone(), self.operation.clone(), self.n_kept);
        let [name, ..] = operation.names();
        self.in_flight.start(self.links.communication.start(name, move |collective| {
            let Links { communication, overlap, staging, .. } = &links;
            let (since, n_bytes) = (Instant::now(), size_of_val(&input[..]));
            let mut output = match &operation {
                Operation::AllReduce(reduce, conversion) => {
                    conversion.with(|compressed| compressed.all_reduce(collective, &mut input, *reduce))?;
                    input
                }
                Operation::ReduceScatter(reduce, conversion) => {
                    let mut piece = staging.take(input.len() / communication.world_size());
                    conversion.with(|compressed| compressed.reduce_scatter(collective, &input, &mut piece, *reduce))?;
                    staging.give(input);
                    piece
                }
                Operation::AllGather => {
                    let mut all = staging.take(input.len() * communication.world_size());
                    collective.all_gather(&input, &mut all)?;
                    staging.give(input);
                    all
                }
            };
            overlap.add_reduction(since.elapsed(), n_bytes);
            output.truncate(n_kept);
            Ok(output)
        }))
    }
}

/// Starts sending the values.
#[derive(Debug)]
pub(crate) struct Start {
    exchange: Arc<Exchange>,
    /// Whether the run's state is checked for whether a step is due, or was taken.
    asks_whether_due: bool,
}

impl Start {
    /// Records the start before kernel `at`, from the values of `input`; with `state`, only in steps that are due.
    pub(crate) fn record(
        exchange: Arc<Exchange>,
        program: &mut Program,
        at: usize,
        input: Slice,
        state: Option<Slice>,
    ) -> Result<(), ProgramError> {
        let args: Vec<Slice> = state.into_iter().chain((exchange.n_read > 0).then_some(input)).collect();
        program.insert_host(at, Arc::new(Self { exchange, asks_whether_due: state.is_some() }), &args)
    }

    /// How its values are sent, if they are reduced.
    pub(crate) fn conversion(&self) -> Option<&Arc<Conversion>> {
        self.exchange.operation.reduction().map(|(_, conversion)| conversion)
    }
}

impl HostStep for Start {
    fn name(&self) -> &'static str {
        self.exchange.operation.names()[1]
    }

    fn args(&self) -> Vec<Arg> {
        let n_read = self.exchange.n_read;
        let state = self.asks_whether_due.then(|| Arg::read("state", DType::U32, STATE_LEN));
        state.into_iter().chain((n_read > 0).then(|| Arg::read("x", DType::F32, n_read))).collect()
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let mut state = [0_u32; STATE_LEN];
        if self.asks_whether_due {
            args.read(0, 0, &mut state)?;
        }
        let [_, _, skip, _] = state;
        if skip != 0 {
            return Ok(());
        }
        self.exchange.start(self.exchange.input(args, self.asks_whether_due.into())?)
    }
}

/// Waits for all exchanges that were started, and writes their results.
#[derive(Debug)]
pub(crate) struct Finish {
    /// Elements of the buffer that the results are parts of.
    pub(crate) n: usize,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) uneven: Option<UnevenRule>,
}

/// Where the result of an exchange goes.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) exchange: Arc<Exchange>,
    /// Elements of the buffer in which only these values count: the rest is set to 0, so that a norm over all elements is the
    /// norm of this replica's own.
    pub(crate) within: Range<usize>,
    pub(crate) start: usize,
}

impl HostStep for Finish {
    fn name(&self) -> &'static str {
        self.arrivals.first().map_or("await_none", |arrival| arrival.exchange.operation.names()[2])
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::write("y", DType::F32, self.n)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        for Arrival { exchange, within, start } in &self.arrivals {
            let Exchange { links, operation, stop, in_flight, .. } = &**exchange;
            let Some(mut values) = links.overlap.awaited(|| in_flight.finish())? else { continue };
            if let Some(stop) = stop {
                stop.is_agreed.store(values.pop().is_some_and(|wish| wish > 0.0), Ordering::Relaxed);
            }
            if let (Some(uneven), Some((reduce, _))) = (&self.uneven, operation.reduction()) {
                uneven.apply(&mut values, reduce)?;
            }
            if within.len() > values.len() {
                let mut bucket = links.staging.take(within.len());
                bucket.fill(0.0);
                bucket[start - within.start..][..values.len()].copy_from_slice(&values);
                args.write(0, within.start, &bucket)?;
                links.staging.give(bucket);
            } else if !values.is_empty() {
                args.write(0, *start, &values)?;
            }
            links.staging.give(values);
        }
        Ok(())
    }
}
