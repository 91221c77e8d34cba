//! The state that a run has on the device at one moment, copied to the host once for all checkpoints of that moment.

use brisk_nn::tensor::program::kernels::STATE_LEN;

use super::{Outputs, Training};
use crate::checkpoint::{Checkpoint, SharedSlice};
use crate::error::Error;

/// A moment between two steps. Values that have been read from the device are kept for the next checkpoint of the same moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// The parameters that are validated, or this replica's part of them.
    values: Option<SharedSlice<f32>>,
    /// All tensors that are read from the device.
    tensors: Option<Checkpoint>,
}

impl Training<'_> {
    /// Starts a snapshot, once all earlier checkpoints are on disk, so that the host keeps at most one and the best model.
    pub(super) fn snapshot(&self, outputs: &mut Outputs) -> Result<Snapshot, Error> {
        self.finish_checkpoints(outputs)?;
        Ok(Snapshot::default())
    }

    /// The parameters that are validated, or this replica's part of them.
    pub(super) fn evaluated_values(&self, snapshot: &mut Snapshot) -> Result<SharedSlice<f32>, Error> {
        if let Some(values) = &snapshot.values {
            return Ok(values.clone());
        }
        self.average.update()?;
        let values = self.memory.borrow_mut().read(&self.device, self.evaluated.values())?;
        Ok(snapshot.values.insert(values).clone())
    }

    /// The parts of a checkpoint that are on the device: the model, the optimizer and the counters. With replicas, the part that
    /// this replica writes.
    pub(super) fn tensors(&self, snapshot: &mut Snapshot) -> Result<Checkpoint, Error> {
        if let Some(tensors) = &snapshot.tensors {
            return Ok(tensors.clone());
        }
        let mut tensors = Checkpoint::new();
        let (flat, device) = (self.flat(), &self.device);
        flat.insert_values(&mut tensors, &self.evaluated_values(snapshot)?, str::to_owned)?;
        if self.average.is_some() {
            let values = self.memory.borrow_mut().read(device, self.params.values())?;
            flat.insert_values(&mut tensors, &values, trained_name)?;
        }
        for (name, buffer) in self.optimizer.state() {
            let state = self.memory.borrow_mut().read(device, buffer)?;
            flat.insert_state(&mut tensors, &name, &state)?;
        }
        self.replicas.insert_feedback(&mut tensors, &self.step.graph, self.params.len())?;
        if flat.is_first() {
            for buffer in self.evaluated.buffers() {
                tensors.insert(buffer.name(), buffer.shape(), device.read::<f32>(buffer.values())?)?;
            }
            for buffer in self.params.buffers().iter().filter(|_| self.average.is_some()) {
                tensors.insert(trained_name(buffer.name()), buffer.shape(), device.read::<f32>(buffer.values())?)?;
            }
            tensors.insert("run.state", &[STATE_LEN], device.read::<u32>(self.step.state())?)?;
            for (name, value) in self.step.scaler.state(device)? {
                tensors.insert_metadata(format!("scaler.{name}"), value);
            }
        }
        Ok(snapshot.tensors.insert(tensors).clone())
    }
}

/// The name of a trained tensor in a checkpoint whose parameters are averages.
pub(super) fn trained_name(name: &str) -> String {
    format!("trained.{name}")
}
