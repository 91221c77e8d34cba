//! The state that a run starts with or resumes from: on the device, and in checkpoints.

use std::path::{Path, PathBuf};

use brisk_nn::Parameters;
use brisk_nn::tensor::program::kernels::STATE_LEN;

use super::checkpoint_writer::{DueCheckpoint, WrittenCheckpoint};
use super::fit::Fit;
use super::snapshot::trained_name;
use super::{Outputs, Training};
use crate::checkpoint::Checkpoint;
use crate::checkpoint::source::Source;
use crate::checkpoint_store::CheckpointStore;
use crate::error::Error;
use crate::flat;
use crate::model::describe;
use crate::run_folder::RunFolder;
use crate::run_state::best_name;

impl Training<'_> {
    /// Sets parameters, optimizer, scaler and counters to their initial values, whatever an earlier run left on the device.
    pub(super) fn start_over(&self) -> Result<(), Error> {
        self.params.write_initial(&self.device)?;
        self.average.ema().map_or(Ok(()), |ema| ema.write_initial(self.params, &self.device))?;
        for (_, buffer) in self.optimizer.state() {
            self.device.write(buffer, &vec![0.0_f32; buffer.len()])?;
        }
        self.step.scaler.write_initial(&self.device)?;
        self.device.write(self.step.state(), &[0_u32; STATE_LEN])?;
        self.replicas.restore_feedback(None, &self.step.graph, self.params.len())?;
        self.replicas.broadcast_model(&self.device, self.params)
    }

    /// Writes the values that [`checkpoint`](Self::checkpoint) read back to the device.
    pub(super) fn restore(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.restore_model(checkpoint, &self.evaluated, str::to_owned)?;
        if self.average.is_some() || has_trained(checkpoint, self.params) {
            let name = if has_trained(checkpoint, self.params) { trained_name } else { |name: &str| name.to_owned() };
            self.restore_model(checkpoint, self.params, name)?;
        }
        for (name, buffer) in self.optimizer.state() {
            self.device.write(buffer, &flat::state_of(checkpoint, self.params, &name)?)?;
        }
        self.replicas.restore_feedback(Some(checkpoint), &self.step.graph, self.params.len())?;
        self.device.write(self.step.state(), checkpoint.u32("run.state", &[STATE_LEN])?)?;
        let kept = checkpoint.all_metadata().filter_map(|(name, _)| name.strip_prefix("scaler."));
        let config = self.step.scaler.config();
        let kept = kept.map(|name| {
            // The step has this run's factors, which are those of the checkpoint unless a difference was allowed.
            let value = match name {
                "growth_factor" => config.growth_factor,
                "backoff_factor" => config.backoff_factor,
                "growth_interval" => config.growth_interval.into(),
                _ => checkpoint.metadata(&format!("scaler.{name}"), "a number")?,
            };
            Ok((name, value))
        });
        let kept = kept.collect::<Result<Vec<(&str, f64)>, Error>>()?;
        // Runs in f32 and bf16 have no scale; in that case it starts with its initial value.
        if !kept.is_empty() {
            self.step.scaler.load_state(&self.device, &kept)?;
        }
        Ok(())
    }

    /// Writes the values of parameters and buffers that have these names to the device.
    fn restore_model(&self, checkpoint: &Checkpoint, params: &Parameters, name: fn(&str) -> String) -> Result<(), Error> {
        let values = flat::values_of(checkpoint, params, name)?;
        self.device.write(params.values(), &values)?;
        for buffer in params.buffers() {
            self.device.write(buffer.values(), checkpoint.f32(&name(buffer.name()), buffer.shape())?)?;
        }
        Ok(())
    }

    /// Loads what this replica needs to [resume](Self::resume) from a checkpoint. Of one of [several
    /// files](crate::CheckpointFiles::OneAReplica), replicas read each byte once, whatever number of replicas wrote it: each
    /// reads its own part of sharded state, and its share of what all of them need, which they then exchange. They check the
    /// files together. A single file is loaded as by [`DataParallel::load_checkpoint`](crate::DataParallel::load_checkpoint).
    ///
    /// All replicas call it, with a path of the same name, in a folder that all of them can read. The result cannot be saved.
    ///
    /// # Cost
    /// The memory of the part, and once more that of the part of the largest file.
    /// # Errors
    /// Those of [`Checkpoint::load`], on all replicas; [`Error::Replica`].
    pub fn load_checkpoint(&self, path: impl AsRef<Path>) -> Result<Checkpoint, Error> {
        self.load_part(Source::Folder, path.as_ref())
    }

    /// The same of the object `NAME.safetensors` of a store, or of its index: each replica reads from the store what
    /// [`load_checkpoint`](Self::load_checkpoint) reads from a folder. All replicas call it.
    ///
    /// # Errors
    /// Those of [`load_checkpoint`](Self::load_checkpoint).
    pub fn load_checkpoint_from(&self, store: &dyn CheckpointStore, object: &str) -> Result<Checkpoint, Error> {
        self.load_part(Source::Store(store), Path::new(object))
    }

    fn load_part(&self, source: Source<'_>, path: &Path) -> Result<Checkpoint, Error> {
        let states: Vec<String> = self.optimizer.state().into_iter().map(|(name, _)| name).collect();
        let parts = flat::needed_parts(self.params, &states, &[str::to_owned, trained_name, best_name]);
        self.replicas.load_part(source, path, &parts)
    }

    /// Writes the checkpoint to resume from, with the best model so far.
    pub(super) fn save_last(&self, fit: &mut Fit) -> Result<(), Error> {
        fit.snapshot = self.snapshot(fit.outputs)?;
        self.save_last_of_moment(fit)
    }

    /// The same, for the moment of which other checkpoints have just been written.
    pub(super) fn save_last_of_moment(&self, fit: &mut Fit) -> Result<(), Error> {
        let Some(path) = self.path(fit.outputs, RunFolder::last)? else { return Ok(()) };
        let mut last = self.checkpoint(fit, fit.run.last_value.unwrap_or(f64::NAN))?;
        fit.run.insert_best_into(&mut last, &self.flat())?;
        self.save(last, path, Vec::new(), fit)
    }

    /// Everything needed to use the weights or to resume; with replicas, the part that this replica writes.
    pub(super) fn checkpoint(&self, fit: &mut Fit, watched: f64) -> Result<Checkpoint, Error> {
        let mut checkpoint = self.tensors(&mut fit.snapshot)?;
        if !self.flat().is_first() {
            return Ok(checkpoint);
        }
        self.scale.insert_into(&mut checkpoint)?;
        fit.run.insert_into(&mut checkpoint)?;
        describe(&mut checkpoint, self.params, &self.names, self.config.precision)?;
        checkpoint.insert_metadata(&self.validation.watched, watched);
        self.record_into(&mut checkpoint, &fit.run);
        fit.outputs.callbacks.iter().try_for_each(|callback| callback.on_save_checkpoint(&mut checkpoint))?;
        Ok(checkpoint)
    }

    /// The path of a checkpoint, if this replica takes part in writing it.
    pub(super) fn path(&self, outputs: &Outputs, of: impl FnOnce(&RunFolder) -> PathBuf) -> Result<Option<PathBuf>, Error> {
        let path = self.folder(outputs).map(of);
        self.replicas.path_for_all(path, self.params)
    }

    /// Writes a checkpoint, then removes those that it replaces: on the writer's thread, or, with replicas, which write together,
    /// before this returns.
    pub(super) fn save(&self, checkpoint: Checkpoint, path: PathBuf, replaced: Vec<PathBuf>, fit: &mut Fit) -> Result<(), Error> {
        let (copies, n_epochs, n_steps) = (self.copy_queue(), fit.run.n_epochs, fit.run.n_steps);
        let due = DueCheckpoint { checkpoint, path, replaced, copies, n_epochs, n_steps };
        if self.replicas.is_single() {
            return self.writer.borrow_mut().write(due);
        }
        self.notify_written(&self.save_together(due)?, fit.outputs)
    }

    /// Notifies the callbacks of checkpoints that have been written.
    pub(super) fn notify_written_checkpoints(&self, outputs: &mut Outputs) -> Result<(), Error> {
        let next = || self.writer.borrow_mut().written();
        while let Some(written) = next()? {
            self.notify_written(&written, outputs)?;
        }
        Ok(())
    }

    /// The same for all checkpoints, waiting until they are on disk.
    pub(super) fn finish_checkpoints(&self, outputs: &mut Outputs) -> Result<(), Error> {
        let next = || self.writer.borrow_mut().wait();
        while let Some(written) = next()? {
            self.notify_written(&written, outputs)?;
        }
        Ok(())
    }

    fn notify_written(&self, written: &WrittenCheckpoint, outputs: &mut Outputs) -> Result<(), Error> {
        let view = self.view_at(written.n_epochs, written.n_steps);
        outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_checkpoint(&view, &written.path))
    }

    /// The run's folder, on the replica that writes to it; `None` on others.
    pub(super) fn folder<'o>(&self, outputs: &'o Outputs) -> Option<&'o RunFolder> {
        outputs.folder.as_ref().filter(|_| self.flat().is_first())
    }
}

/// Whether the checkpoint has averaged parameters, and the trained ones in addition.
fn has_trained(checkpoint: &Checkpoint, params: &Parameters) -> bool {
    params.entries().first().is_some_and(|entry| checkpoint.contains(&trained_name(&entry.name)))
}
