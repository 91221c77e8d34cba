//! Gradients that are sent in 16 bits: rounding errors are added to the gradients of the next step, and are in checkpoints.

use std::any::Any;
use std::sync::Arc;

use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::HostStep;
use brisk_replicate::Wire;

use super::conversion::Conversion;
use super::exchange::Start;
use super::{CheckpointFiles, DataParallel};
use crate::checkpoint::Checkpoint;
use crate::error::Error;

impl DataParallel {
    /// Adds the rounding errors for `len` gradients: each replica's, or this one's if each writes a file. All replicas call it.
    pub(crate) fn insert_feedback(&self, checkpoint: &mut Checkpoint, graph: &Graph, len: usize) -> Result<(), Error> {
        let conversions = conversions(graph);
        if conversions.is_empty() {
            return Ok(());
        }
        let ranks = match self.config.files {
            CheckpointFiles::OneAReplica => self.rank()..self.rank() + 1,
            CheckpointFiles::One if self.rank() == 0 => 0..self.world_size(),
            CheckpointFiles::One => 0..0,
        };
        let mut errors = vec![vec![0.0; len]; ranks.len()];
        for conversion in conversions {
            let elements = conversion.elements();
            let mine = conversion.with(|compressed| compressed.errors()[..elements.len()].to_vec());
            let found = if self.config.files == CheckpointFiles::One { self.all_gather(mine)? } else { mine };
            for (errors, found) in errors.iter_mut().zip(found.chunks_exact(elements.len())) {
                errors[elements.clone()].copy_from_slice(found);
            }
        }
        ranks.zip(errors).try_for_each(|(rank, errors)| checkpoint.insert(errors_name(rank), &[len], errors))
    }

    /// Sets the rounding errors to those of a checkpoint, or to 0. Only their sum counts. If fewer replicas wrote the checkpoint,
    /// the others start with errors of 0; if more did, replica `r` of `n` has the sum of those of ranks `r`, `r + n`, …
    pub(crate) fn restore_feedback(&self, from: Option<&Checkpoint>, graph: &Graph, len: usize) -> Result<(), Error> {
        let conversions = conversions(graph);
        if conversions.is_empty() {
            return Ok(());
        }
        let mut errors = vec![0.0_f32; len];
        // Checkpoints of earlier versions have none.
        for (rank, name) in (0..).map(|rank| (rank, errors_name(rank))) {
            let Some(checkpoint) = from.filter(|checkpoint| checkpoint.contains(&name)) else { break };
            checkpoint.check_f32(&name, &[len])?;
            if self.takes_errors_of(rank) {
                errors.iter_mut().zip(checkpoint.f32(&name, &[len])?).for_each(|(sum, error)| *sum += error);
            }
        }
        for conversion in conversions {
            let elements = conversion.elements();
            conversion.with(|compressed| compressed.errors_mut()[..elements.len()].copy_from_slice(&errors[elements.clone()]));
        }
        Ok(())
    }

    fn takes_errors_of(&self, rank: usize) -> bool {
        rank % self.world_size() == self.rank()
    }

    /// Whether this replica needs a tensor of a checkpoint, if it has the rounding errors of a replica.
    pub(super) fn needs_errors(&self, name: &str) -> Option<bool> {
        Some(self.takes_errors_of(name.strip_prefix(ERRORS)?.parse().ok()?))
    }
}

/// The conversions of a program that have rounding errors, in the order in which they are started.
fn conversions(graph: &Graph) -> Vec<Arc<Conversion>> {
    let of_step = |step: &Arc<dyn HostStep>| {
        let step: &dyn Any = step.as_ref();
        step.downcast_ref::<Start>().and_then(Start::conversion).cloned()
    };
    let all: Vec<Arc<Conversion>> = graph.with_program(|program| program.host_steps().filter_map(of_step).collect());
    all.into_iter().filter(|conversion| conversion.with(|compressed| compressed.wire() != Wire::F32)).collect()
}

const ERRORS: &str = "wire.errors.";

/// The tensor with the rounding errors of a replica.
fn errors_name(rank: usize) -> String {
    format!("{ERRORS}{rank}")
}
