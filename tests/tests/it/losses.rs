//! A callback that collects the losses of a run.

use std::cell::RefCell;
use std::rc::Rc;

use brisk_train::{BatchesEnd, Callback, Error, RunView};

/// The losses of all steps.
#[derive(Clone, Default)]
pub(crate) struct Losses(pub(crate) Rc<RefCell<Vec<f32>>>);

impl Callback for Losses {
    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        self.0.borrow_mut().extend(batches.losses);
        Ok(())
    }
}
