use brisk_nn::tensor::{Graph, Persistent};
use brisk_nn::{Optimizer, Parameters};
use twox_hash::XxHash3_64;

use super::DataParallel;
use crate::error::Error;
use crate::host_memory;

/// Bytes of training state on a device, and of the transients of one replay.
///
/// # Examples
/// ```
/// use brisk_nn::{Adam, Init, ParametersBuilder};
/// use brisk_train::StateMemory;
///
/// let mut builder = ParametersBuilder::new();
/// builder.add("w", &[1024], Init::Constant(0.0));
/// let params = builder.build(0);
/// let memory = StateMemory::of(&params, &Adam::new(&params), &[])?;
/// assert_eq!((memory.values, memory.gradients, memory.optimizer), (4096, 4096, 8192));
/// # Ok::<(), brisk_train::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateMemory {
    /// Of parameters.
    pub values: usize,
    /// Of their gradients.
    pub gradients: usize,
    /// Of the optimizer's state.
    pub optimizer: usize,
    /// Of an [average of the parameters](brisk_nn::Ema), if there is one.
    pub averages: usize,
    /// Of the transients of the programs, as they are planned: activations, and buckets that are gathered or reduced. Those of
    /// several programs are added up.
    pub transients: usize,
}

impl StateMemory {
    /// What a device keeps of these parameters, this optimizer and these programs, without [averages](Self::averages).
    ///
    /// # Errors
    /// [`Error::Tensor`] if a program reads a transient before it is written.
    pub fn of(params: &Parameters, optimizer: &dyn Optimizer, graphs: &[&Graph]) -> Result<Self, Error> {
        let planned = graphs.iter().map(|graph| Ok(graph.fused().plan()?.transient_bytes()));
        Ok(Self {
            values: params.values().len_bytes(),
            gradients: params.grads().len_bytes(),
            optimizer: optimizer.state().into_iter().map(|(_, buffer)| Persistent::len_bytes(buffer)).sum(),
            averages: 0,
            transients: planned.sum::<Result<usize, Error>>()?,
        })
    }

    /// Of parameters, gradients, optimizer and averages together; without averages, what
    /// [`ZeroStage::bytes_per_rank`](crate::ZeroStage::bytes_per_rank) says.
    pub fn state(&self) -> usize {
        self.values.saturating_add(self.gradients).saturating_add(self.optimizer).saturating_add(self.averages)
    }
}

/// What replicas on one host need together, and what the host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostShare {
    pub(crate) needed_bytes: usize,
    pub(crate) available_bytes: Option<usize>,
    pub(crate) n_replicas: usize,
}

impl DataParallel {
    /// What the replicas on this replica's host need together, given what each needs; all replicas call this. Of the amounts of
    /// available memory that the replicas have found, the least counts, since some of them may already have allocated theirs.
    pub(crate) fn on_this_host(&self, mine: HostShare) -> Result<HostShare, Error> {
        if self.is_single() {
            return Ok(mine);
        }
        let host = host_memory::host_id().map_or(0, |id| XxHash3_64::oneshot(id.as_bytes()));
        let available_bytes = mine.available_bytes.map_or(u64::MAX, |bytes| bytes as u64);
        let all = self.gathered_lists(&[[host, mine.needed_bytes as u64, available_bytes]])?.concat();
        let here = || all.iter().filter(|[other, ..]| *other == host);
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Ok(HostShare {
            needed_bytes: here().fold(0, |sum, &[_, needed, _]| sum.saturating_add(bytes(needed))),
            available_bytes: here().map(|&[.., available]| bytes(available)).min().filter(|&n| n != usize::MAX),
            n_replicas: here().count(),
        })
    }
}
