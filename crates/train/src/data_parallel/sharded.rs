//! Training state that is sharded across replicas (ZeRO).

use std::ops::Range;
use std::sync::Arc;

use brisk_nn::tensor::program::{Program, Slice};
use brisk_nn::tensor::{DType, Graph, Persistent, Tensor};
use brisk_nn::{Bound, GradScaler, Optimizer, Parameters, Placement, ShardedBucket, Sharding};
use brisk_replicate::{CommThread, ReduceOp, ZeroStage, buckets};

use super::agreement::{AgreeOnSkip, NormOfAll};
use super::conversion::Conversion;
use super::exchange::{Arrival, Exchange, Operation};
use super::gather::{Wanted, record};
use super::links::Links;
use super::staging::InFlight;
use super::{DataParallel, OnThread};
use crate::error::Error;
use crate::settings::by_name;

/// Pieces are cut at multiples of this: 256 bytes of f32, the binding alignment that every adapter supports.
const ALIGN: usize = 64;

impl DataParallel {
    /// Shards parameters across replicas, as [`DataParallelConfig::zero`](super::DataParallelConfig::zero) says, with the initial
    /// values of replica 0. Create the optimizer for the result: it then keeps the state of this replica's own pieces.
    ///
    /// # Errors
    /// [`Error::Replica`] if replicas have different parameters.
    pub fn shard_parameters(&self, mut params: Parameters) -> Result<Parameters, Error> {
        let Some(communication) = &self.communication else { return Ok(params) };
        // Replicas of another stage make other calls from here on.
        self.agree(by_name(&self.config)?)?;
        let Some(sharding) = self.sharding(&params) else { return Ok(params) };
        let entries = params.entries().iter().map(|entry| (entry.name.clone(), format!("{:?} f32", entry.shape)));
        self.agree(entries.collect())?;
        // Replicas with the same seed draw the same values, so they need not be sent.
        let mine = [params.initial_fingerprint()];
        if self.gathered_lists(&mine)?.iter().any(|other| *other != mine) {
            for id in params.ids_where(|_| true) {
                let initial = communication.broadcast(params.initial_of(id), 0).wait()?;
                params.set_initial(id, &initial)?;
            }
        }
        Ok(params.sharded(sharding, Arc::new(OnThread(communication.clone())))?)
    }

    /// How parameters are sharded here; `None` if each replica keeps all.
    fn sharding(&self, params: &Parameters) -> Option<Sharding> {
        let stage = self.config.zero;
        let kept = |since| if stage >= since { Placement::Sharded } else { Placement::Replicated };
        (stage != ZeroStage::Replicated).then(|| {
            let cut = self.cut_whole(params).into_iter();
            let bucket = |elements: Range<usize>| {
                let piece_len = self.piece_len(&elements);
                ShardedBucket { own: self.piece(&elements, self.rank()), elements, piece_len }
            };
            Sharding {
                buckets: cut.map(bucket).collect(),
                gradients: kept(ZeroStage::Gradients),
                values: kept(ZeroStage::Parameters),
            }
        })
    }

    /// The elements of each bucket.
    pub(super) fn cut(&self, params: &Parameters) -> Vec<Range<usize>> {
        let ranges: Vec<Range<usize>> = params.entries().iter().map(|entry| entry.range.clone()).collect();
        buckets(&ranges, DType::F32.size_bytes(), self.config.buckets).into_iter().map(|bucket| bucket.elements).collect()
    }

    /// The same with the padding after the last parameter: the whole flat layout.
    pub(crate) fn cut_whole(&self, params: &Parameters) -> Vec<Range<usize>> {
        let mut cut = self.cut(params);
        cut.iter_mut().take(1).for_each(|last_parameters| last_parameters.end = params.len());
        cut
    }

    fn piece_len(&self, bucket: &Range<usize>) -> usize {
        bucket.len().div_ceil(self.world_size()).next_multiple_of(ALIGN)
    }

    /// The elements of a bucket that belong to a replica: equal pieces in the order of ranks, until no elements are left.
    fn piece(&self, bucket: &Range<usize>, rank: usize) -> Range<usize> {
        let cut = |rank: usize| (bucket.start + rank * self.piece_len(bucket)).min(bucket.end);
        cut(rank)..cut(rank + 1)
    }

    /// Checks that the rest of sharded parameters is on other replicas.
    pub(crate) fn check_shards(&self, params: &Parameters) -> Result<(), Error> {
        if params.sharding().is_none() || !self.is_single() {
            return Ok(());
        }
        let found = "parameters that are sharded across replicas";
        Err(Error::refused("bind", found, "parameters that are whole, or replicas (`with_replicas`) that have the rest"))
    }

    /// Checks that parameters and optimizer are for the configured stage.
    pub(super) fn check_sharding(&self, params: &Parameters, optimizer: &dyn Optimizer) -> Result<(), Error> {
        let refused = |found: String, expected| Err(Error::refused("shard", found, expected));
        if params.sharding() != self.sharding(params).as_ref() {
            let stage = self.config.zero as usize;
            let found = match params.sharding() {
                None => format!("parameters that are not sharded, in ZeRO stage {stage}"),
                Some(_) => format!("parameters that are not sharded for ZeRO stage {stage}"),
            };
            return refused(found, "the parameters that `DataParallel::shard_parameters` of this replica returned");
        }
        if params.sharding().is_some() && !optimizer.can_shard() {
            let found = "an optimizer that cannot be sharded (`Optimizer::can_shard`)".to_owned();
            return refused(found, "SGD, Adam, AdamW or Muon if state is sharded; or ZeRO stage 0");
        }
        Ok(())
    }

    /// The buckets of gradients, of whose sums this replica keeps its own pieces.
    pub(super) fn scattered(
        &self,
        communication: &Arc<CommThread>,
        program: &mut Program,
        (params, sharding): (&Parameters, &Sharding),
        bound: &Bound,
        reduce: ReduceOp,
    ) -> Vec<(Slice, Arrival)> {
        let grads = program.persistent(params.grads());
        let buckets = sharding.own().zip(bound.buckets()).map(|((ShardedBucket { elements, own, piece_len }, state), bound)| {
            let bucket = bound.grads.unwrap_or_else(|| grads.slice(elements.clone()));
            let ranges = params.entries().iter().map(|entry| &entry.range);
            let ranges = ranges.filter(|range| elements.start <= range.start && range.end <= elements.end);
            let ranges = ranges.map(|range| range.start - elements.start..range.end - elements.start);
            let written: Vec<_> = ranges.filter(|range| program.last_write(bucket.slice(range.clone())).is_some()).collect();
            let n_sent = piece_len * self.world_size();
            let exchange = Arc::new(Exchange {
                links: self.links(communication),
                operation: Operation::ReduceScatter(reduce, Conversion::new(self.config.wire, elements.clone(), n_sent)),
                n_read: if written.is_empty() { 0 } else { elements.len() },
                n_sent,
                n_kept: own.len(),
                unwritten: between(&written, elements.len()),
                stop: None,
                in_flight: InFlight::default(),
            });
            let (within, start) = match sharding.gradients {
                Placement::Replicated => (elements.clone(), own.start),
                Placement::Sharded => (state.clone(), state.start),
            };
            (bucket, Arrival { exchange, within, start })
        });
        buckets.collect()
    }

    /// Records that all replicas skip a step for which one of them has found a gradient that is not finite; after
    /// [`GradScaler::unscale`].
    ///
    /// # Errors
    /// [`Program`](brisk_nn::Error::Program) if `state` is not that of a run.
    #[track_caller]
    pub fn agree_on_skip(&self, graph: &Graph, params: &Parameters, scaler: &GradScaler, state: &Persistent) {
        let (Some(_), Some(communication), true) = (params.sharding(), &self.communication, scaler.config().enabled) else {
            return;
        };
        graph.record(|program| {
            let args = [program.persistent(state), program.persistent(scaler.found())];
            program.push_host(Arc::new(AgreeOnSkip(communication.clone())), &args)
        });
    }

    /// Records the norm of all gradients, of which each replica may have a shard; on one device, this is
    /// [`Parameters::grad_norm`].
    #[track_caller]
    pub fn grad_norm(&self, graph: &Graph, params: &Parameters) -> Tensor {
        let norm = params.grad_norm(graph);
        if let (Some(_), Some(communication)) = (params.sharding(), &self.communication) {
            let step = Arc::new(NormOfAll(communication.clone()));
            graph.record(|program| program.push_host(step, &[norm.slice()]));
        }
        norm
    }

    /// Records that the values each replica has updated are sent to all, after the optimizer, if parameters are whole between
    /// steps; otherwise records nothing. With the optimizer's `state`, nothing is sent after skipped steps.
    ///
    /// # Errors
    /// [`Program`](brisk_nn::Error::Program) if `state` is not that of a run.
    #[track_caller]
    pub fn gather_stepped(&self, graph: &Graph, params: &Parameters, state: Option<&Persistent>) {
        let sharding = params.sharding().filter(|sharding| sharding.values == Placement::Replicated);
        let (Some(sharding), Some(communication)) = (sharding, &self.communication) else { return };
        graph.record(|program| {
            let values = program.persistent(params.values());
            let state = state.map(|state| program.persistent(state));
            let at = program.n_kernels();
            let wanted = sharding.buckets.iter().map(|bucket| Wanted {
                at,
                gather: self.gather(communication, bucket),
                own: values.slice(bucket.own.clone()),
                to: values.slice(bucket.elements.clone()),
            });
            record(program, wanted.collect(), state)
        });
    }

    /// Records that buckets of values are gathered for the kernels that read them, if replicas keep only their own; after the
    /// backward pass, or the forward pass without one, and before [`reduce_gradients`](Self::reduce_gradients). `bound` is the
    /// model in `graph`.
    ///
    /// Each bucket is requested one bucket in advance, and its memory is reused once two others have arrived; if it is read again
    /// later, as in the backward pass, it is gathered again.
    ///
    #[track_caller]
    pub fn gather_parameters(&self, graph: &Graph, params: &Parameters, bound: &Bound) {
        let sharding = params.sharding().filter(|sharding| sharding.values == Placement::Sharded);
        let (Some(sharding), Some(communication)) = (sharding, &self.communication) else { return };
        graph.record(|program| {
            let values = program.persistent(params.values());
            let slices: Vec<Slice> = bound.buckets().iter().filter_map(|bucket| bucket.values).collect();
            let readers: Vec<Vec<usize>> = slices.iter().map(|&slice| program.readers(slice)).collect();
            let own: Vec<_> = sharding.own().collect();
            let mut to = vec![None; slices.len()];
            let mut wanted = Vec::new();
            for (at, bucket) in arrivals(&readers) {
                // An earlier copy is for earlier kernels.
                let slice = to[bucket].map_or(slices[bucket], |before| program.renewed(before, at));
                to[bucket] = Some(slice);
                let (sharded, state) = &own[bucket];
                let (gather, own) = (self.gather(communication, sharded), values.slice(state.clone()));
                wanted.push(Wanted { at, gather, own, to: slice });
            }
            record(program, wanted, None)
        });
    }

    fn gather(&self, communication: &Arc<CommThread>, ShardedBucket { elements, own, piece_len }: &ShardedBucket) -> Exchange {
        Exchange {
            links: self.links(communication),
            operation: Operation::AllGather,
            n_read: own.len(),
            n_sent: *piece_len,
            n_kept: elements.len(),
            unwritten: Vec::new(),
            stop: None,
            in_flight: InFlight::default(),
        }
    }

    pub(super) fn links(&self, communication: &Arc<CommThread>) -> Links {
        let (communication, attendance) = (communication.clone(), self.attendance.clone());
        Links { communication, overlap: self.overlap.clone(), staging: self.staging.clone(), attendance }
    }
}

/// When each bucket is gathered, given the kernels that read it: before its first reader, and again before a reader if two other
/// buckets have arrived since the last one.
fn arrivals(readers: &[Vec<usize>]) -> Vec<(usize, usize)> {
    const KEPT: usize = 2;
    let mut reads: Vec<(usize, usize)> =
        readers.iter().enumerate().flat_map(|(bucket, kernels)| kernels.iter().map(move |&kernel| (kernel, bucket))).collect();
    reads.sort_unstable();
    let mut arrived: Vec<(usize, usize)> = Vec::new();
    let mut n_at_last_read = vec![None; readers.len()];
    for of_kernel in reads.chunk_by(|a, b| a.0 == b.0) {
        for &(kernel, bucket) in of_kernel {
            if n_at_last_read[bucket].is_none_or(|n: usize| arrived.len() - n >= KEPT) {
                arrived.push((kernel, bucket));
            }
        }
        of_kernel.iter().for_each(|&(_, bucket)| n_at_last_read[bucket] = Some(arrived.len()));
    }
    arrived
}

/// The parts of `0..n` that are in none of the ranges, which are in ascending order.
fn between(ranges: &[Range<usize>], n: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(ranges.iter().map(|range| range.end));
    let ends = ranges.iter().map(|range| range.start).chain([n]);
    starts.zip(ends).map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{arrivals, between};

    #[test]
    fn a_bucket_is_gathered_again_after_two_others() {
        // Forward through four layers and back; the last two are still in memory when the backward pass begins.
        let readers = [vec![0, 7], vec![1, 6], vec![2, 5], vec![3, 4]];
        assert_eq!(arrivals(&readers), [(0, 0), (1, 1), (2, 2), (3, 3), (6, 1), (7, 0)]);
        // A kernel that reads two of them.
        assert_eq!(arrivals(&[vec![0, 1, 2], vec![1, 2], vec![]]), [(0, 0), (1, 1)]);
    }

    #[test]
    fn the_gaps_between_ranges() {
        assert_eq!(between(&[0..3, 4..6], 8), [3..4, 6..8]);
        assert_eq!(between(&[0..2, 2..8], 8), []);
        assert_eq!(between(&[], 8), vec![0..8]);
    }
}
