use brisk_report::StepLog;

use crate::callback::{BatchesEnd, Callback, RunView};
use crate::error::Error;

/// The first replica writes the file.
impl Callback for StepLog {
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        if run.is_first { Ok(self.start(run.first_batch())?) } else { Ok(()) }
    }

    fn on_batches_end(&mut self, run: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        if !run.is_first {
            return Ok(());
        }
        let first = run.first_batch() + batches.first_batch as u64;
        Ok(self.append(first, run.epoch, batches.losses, batches.learning_rates, batches.waits)?)
    }
}
