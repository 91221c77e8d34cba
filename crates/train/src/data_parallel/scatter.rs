//! The reduce-scatter of a bucket of gradients: started where the backward pass has computed them, awaited where they are needed.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, STATE_LEN};
use brisk_nn::tensor::program::{HostArgs, HostStep};
use brisk_replicate::ReduceOp;

use super::feedback::Conversion;
use super::staging::InFlight;
use super::uneven::UnevenRule;
use super::{Failure, Links};

/// The reduce-scatter of one bucket.
#[derive(Debug)]
pub(crate) struct Scatter {
    pub(crate) links: Links,
    pub(crate) reduce: ReduceOp,
    /// How the bucket is sent: in pieces of equal length, as many as there are replicas.
    pub(crate) conversion: Arc<Conversion>,
    pub(crate) piece_len: usize,
    /// How many elements of this replica's piece are not padding.
    pub(crate) own_len: usize,
    /// Elements of the bucket that no kernel writes: the gaps between parameters, and parameters that the loss does not depend
    /// on.
    pub(crate) unwritten: Vec<Range<usize>>,
    pub(crate) in_flight: InFlight,
}

/// Starts sending the bucket.
#[derive(Debug)]
pub(crate) struct StartScatter {
    pub(crate) scatter: Arc<Scatter>,
    /// Whether there are gradients; false if no kernel writes any.
    pub(crate) reads: bool,
    /// Whether the run's state is checked for whether a step is due.
    pub(crate) asks_whether_due: bool,
}

impl HostStep for StartScatter {
    fn name(&self) -> &'static str {
        "start_reduce_scatter"
    }

    fn args(&self) -> Vec<Arg> {
        let state = self.asks_whether_due.then(|| Arg::read("state", DType::U32, STATE_LEN));
        let grads = self.reads.then(|| Arg::read("grads", DType::F32, self.scatter.conversion.elements().len()));
        state.into_iter().chain(grads).collect()
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
        let Scatter { links, reduce, conversion, piece_len, own_len, unwritten, in_flight } = &*self.scatter;
        let len = conversion.elements().len();
        let mut input = links.staging.take(piece_len * links.communication.world_size());
        if links.attendance.has_joined() {
            input.fill(0.0);
        } else if self.reads {
            args.read(usize::from(self.asks_whether_due), 0, &mut input[..len])?;
        }
        input[len..].fill(0.0);
        unwritten.iter().for_each(|range| input[range.clone()].fill(0.0));
        let (links, conversion, reduce, own_len) = (links.clone(), conversion.clone(), *reduce, *own_len);
        let mut piece = links.staging.take(*piece_len);
        let communication = links.communication.clone();
        in_flight.start(communication.start("reduce_scatter", move |collective| {
            let since = Instant::now();
            conversion.reduce_scatter(collective, &input, &mut piece, reduce)?;
            links.overlap.add_reduction(since.elapsed(), size_of_val(&input[..]));
            links.staging.give(input);
            piece.truncate(own_len);
            Ok(piece)
        }))
    }
}

/// Waits for all buckets, and writes this replica's own pieces.
#[derive(Debug)]
pub(crate) struct FinishScatter {
    pub(crate) links: Links,
    /// Elements of the buffer that gradients are kept in.
    pub(crate) n: usize,
    pub(crate) buckets: Vec<Arrival>,
    pub(crate) uneven: Option<UnevenRule>,
}

/// Where the sums of a bucket go.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) scatter: Arc<Scatter>,
    /// Elements of the buffer in which only these sums count: the rest is set to 0, so that a norm over all elements is the norm
    /// of this replica's own.
    pub(crate) within: Range<usize>,
    pub(crate) start: usize,
}

impl HostStep for FinishScatter {
    fn name(&self) -> &'static str {
        "await_reduce_scatter"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::write("grads", DType::F32, self.n)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        for Arrival { scatter, within, start } in &self.buckets {
            let Some(mut piece) = self.links.overlap.awaited(|| scatter.in_flight.finish())? else { continue };
            self.uneven.as_ref().map_or(Ok(()), |uneven| uneven.apply(&mut piece, scatter.reduce))?;
            if within.len() > piece.len() {
                let mut bucket = self.links.staging.take(within.len());
                bucket.fill(0.0);
                bucket[start - within.start..][..piece.len()].copy_from_slice(&piece);
                args.write(0, within.start, &bucket)?;
                self.links.staging.give(bucket);
            } else if !piece.is_empty() {
                args.write(0, *start, &piece)?;
            }
            self.links.staging.give(piece);
        }
        Ok(())
    }
}
