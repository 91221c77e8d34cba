use std::sync::{Arc, Mutex, PoisonError};

use brisk_loader::{Layout, RowMemory, RowSource};
use brisk_train::{Cell, Error as TrainError, FeedElement, Predictor};

use crate::calibration::Calibration;
use crate::columns::Columns;
use crate::error::{Error, failed};
use crate::intervals::Intervals;
use crate::predictions::Predictions;
use crate::preprocessing::{Matched, Preprocessed, Preprocessing};
use crate::target::Target;
use crate::threshold::Threshold;

/// Predicts the target of rows: [`TabularModel::predictor`](crate::TabularModel::predictor). `Send` and `Sync`.
#[derive(Debug)]
pub struct TabularPredictor {
    pub(super) predictor: Predictor,
    pub(super) preprocessing: Preprocessing,
    /// The columns of the last rows: looking up all values of their categories may take longer than predicting a few rows.
    pub(super) matched: Mutex<Option<Arc<Matched>>>,
    pub(super) target: Target,
    pub(super) calibration: Option<Calibration>,
    pub(super) threshold: Option<Threshold>,
    pub(super) intervals: Option<Intervals>,
}

/// Rows that are gathered at a time.
const CHUNK_ROWS: usize = 4096;

impl TabularPredictor {
    /// The predictions for all of `rows`, whose columns are `columns`. Labels are ignored.
    ///
    /// # Errors
    /// As [`Preprocessing::over`]; [`Error::Infinite`]; [`Error::Rows`](brisk_train::Error::Rows) if the source fails;
    /// [`Error::Tensor`](brisk_train::Error::Tensor) if the device does.
    pub fn predict<S: RowSource<Feature: FeedElement>>(&self, columns: &Columns, rows: &S) -> Result<Predictions, Error> {
        let rows = Preprocessed::new(self.matched(columns, rows)?, rows);
        let layout @ Layout { n_rows, .. } = rows.layout();
        let mut memory = RowMemory::new(layout, CHUNK_ROWS.min(n_rows));
        let mut outputs = Vec::new();
        for first in (0..n_rows).step_by(CHUNK_ROWS) {
            let read = memory.read(&rows, first..n_rows.min(first + CHUNK_ROWS)).map_err(failed("predicted"))?;
            let named = |error| match error {
                TrainError::Value { row, cell: Cell::Column(column), .. } => {
                    let column = self.preprocessing.feature_names().swap_remove(column);
                    Error::Infinite { row: first + row, column }
                }
                error => error.into(),
            };
            outputs.extend(self.predictor.predict(read.features, read.categories).map_err(named)?);
        }
        Ok(Predictions::new(&self.target, self.calibration.as_ref(), self.threshold, self.intervals, outputs))
    }

    fn matched<S: RowSource<Feature: FeedElement>>(&self, columns: &Columns, rows: &S) -> Result<Arc<Matched>, Error> {
        let last = self.matched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let matched = self.preprocessing.matched(columns, rows, last.as_ref())?;
        *self.matched.lock().unwrap_or_else(PoisonError::into_inner) = Some(matched.clone());
        Ok(matched)
    }

    /// The columns that rows must have.
    pub fn columns(&self) -> Columns {
        self.preprocessing.columns()
    }

    /// What is predicted.
    pub fn target(&self) -> &Target {
        &self.target
    }
}
