//! A bucket of values, assembled from the pieces of all replicas: the gather is started early, and awaited where the values are
//! needed.

use std::sync::Arc;
use std::time::Instant;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, STATE_LEN};
use brisk_nn::tensor::program::{Error as ProgramError, HostArgs, HostStep, Program, Slice};
use brisk_replicate::CollectiveExt;

use super::staging::InFlight;
use super::{Failure, Links};

/// The gathering of one bucket.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) links: Links,
    pub(crate) len: usize,
    pub(crate) piece_len: usize,
    pub(crate) own_len: usize,
    pub(crate) in_flight: InFlight,
}

/// Starts sending this replica's own piece.
#[derive(Debug)]
struct StartGather {
    gather: Arc<Gather>,
    /// Whether the run's state is checked for whether a step was taken.
    asks_whether_due: bool,
}

impl HostStep for StartGather {
    fn name(&self) -> &'static str {
        "start_all_gather"
    }

    fn args(&self) -> Vec<Arg> {
        let state = self.asks_whether_due.then(|| Arg::read("state", DType::U32, STATE_LEN));
        let own = (self.gather.own_len > 0).then(|| Arg::read("own values", DType::F32, self.gather.own_len));
        state.into_iter().chain(own).collect()
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
        let Gather { links, len, piece_len, own_len, in_flight } = &*self.gather;
        let mut piece = links.staging.take(*piece_len);
        if *own_len > 0 {
            args.read(usize::from(self.asks_whether_due), 0, &mut piece[..*own_len])?;
        }
        piece[*own_len..].fill(0.0);
        let (links, len) = (links.clone(), *len);
        let mut all = links.staging.take(piece_len * links.communication.world_size());
        let communication = links.communication.clone();
        in_flight.start(communication.start("all_gather", move |collective| {
            let since = Instant::now();
            collective.all_gather(&piece, &mut all)?;
            links.overlap.add_reduction(since.elapsed(), size_of_val(&piece[..]));
            links.staging.give(piece);
            all.truncate(len);
            Ok(all)
        }))
    }
}

/// Waits for all pieces, if they were sent, and writes them.
#[derive(Debug)]
struct FinishGather {
    gather: Arc<Gather>,
}

impl HostStep for FinishGather {
    fn name(&self) -> &'static str {
        "await_all_gather"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::write("values", DType::F32, self.gather.len)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let Gather { in_flight, links, .. } = &*self.gather;
        if let Some(all) = links.overlap.awaited(|| in_flight.finish())? {
            args.write(0, 0, &all)?;
            links.staging.give(all);
        }
        Ok(())
    }
}

/// A bucket that the kernels from `at` on need.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) at: usize,
    pub(crate) gather: Gather,
    /// This replica's own values, if it has any.
    pub(crate) own: Option<Slice>,
    pub(crate) to: Slice,
}

/// Records the gathering of buckets, in the order in which they are needed. Each is started when the previous one has arrived, so
/// that two are on the host at once. With `state`, nothing is sent in steps that are skipped.
pub(crate) fn record(program: &mut Program, wanted: Vec<Wanted>, state: Option<Slice>) -> Result<(), ProgramError> {
    let mut next: Option<(Arc<Gather>, Option<Slice>)> = None;
    let start = |program: &mut Program, at, (gather, own): (Arc<Gather>, Option<Slice>)| {
        let step = StartGather { gather, asks_whether_due: state.is_some() };
        program.insert_host(at, Arc::new(step), &state.into_iter().chain(own).collect::<Vec<_>>())
    };
    let mut first = 0;
    // From the last to the first, so that insertions do not move earlier positions.
    for Wanted { at, gather, own, to } in wanted.into_iter().rev() {
        let gather = Arc::new(gather);
        if let Some(next) = next.take() {
            start(program, at, next)?;
        }
        program.insert_host(at, Arc::new(FinishGather { gather: gather.clone() }), &[to])?;
        next = Some((gather, own));
        first = at;
    }
    next.map_or(Ok(()), |next| start(program, first, next))
}
