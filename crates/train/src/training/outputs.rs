use std::sync::Arc;

use serde_json::Value;

use crate::callback::Callback;
use crate::checkpoint_store::CheckpointStore;
use crate::progress::Progress;
use crate::run_folder::RunFolder;
use crate::stop_flag::StopFlag;
use crate::warning::Warning;

/// The outputs of a run while it trains: what it shows and writes. The default shows and writes nothing.
#[derive(Default)]
pub struct Outputs<'a> {
    /// The progress bar on standard error.
    pub progress: Progress,
    /// Where checkpoints and the log are written; nowhere if `None`. The run holds the folder's [lock](RunFolder::lock).
    pub folder: Option<RunFolder>,
    /// Where checkpoints are copied to, once they are in the folder, with the log and the settings; nowhere if `None`. With
    /// replicas, all of them have it.
    pub store: Option<Arc<dyn CheckpointStore>>,
    /// The settings, for the folder's `config.json`: written once the run has started, or its checkpoint has been accepted.
    pub config: Option<Value>,
    /// Ends the run after its current steps.
    pub stop: StopFlag,
    /// Are notified of the run's progress.
    pub callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl Outputs<'_> {
    pub(super) fn notify_warning(&mut self, warning: &Warning) {
        self.callbacks.iter_mut().for_each(|callback| callback.on_warning(warning));
    }
}

impl std::fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outputs")
            .field("folder", &self.folder)
            .field("store", &self.store)
            .field("n_callbacks", &self.callbacks.len())
            .finish_non_exhaustive()
    }
}
