use brisk_nn::tensor::{Graph, Persistent};
use brisk_nn::{Optimizer, Parameters};

use crate::Error;

/// Bytes of training state on a device, and of what lives within one replay.
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
    /// Of what the optimizer keeps.
    pub optimizer: usize,
    /// Of the transients of the programs, as they are planned: activations, and what is gathered or reduced bucket by bucket. What programs have side by side is added up.
    pub transients: usize,
}

impl StateMemory {
    /// What a device keeps of these parameters, this optimizer and these programs.
    ///
    /// # Errors
    /// [`Error::Tensor`] if a program reads a transient before it is written.
    pub fn of(params: &Parameters, optimizer: &dyn Optimizer, graphs: &[&Graph]) -> Result<Self, Error> {
        let planned = graphs.iter().map(|graph| Ok(graph.fused().plan()?.transient_bytes()));
        Ok(Self {
            values: params.values().len_bytes(),
            gradients: params.grads().len_bytes(),
            optimizer: optimizer.state().into_iter().map(|(_, buffer)| Persistent::len_bytes(buffer)).sum(),
            transients: planned.sum::<Result<usize, Error>>()?,
        })
    }

    /// Of parameters, gradients and optimizer together: what [`ZeroStage::bytes_per_rank`](crate::ZeroStage::bytes_per_rank) says.
    pub fn state(&self) -> usize {
        self.values + self.gradients + self.optimizer
    }
}
