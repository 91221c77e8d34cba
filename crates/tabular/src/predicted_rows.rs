use std::path::Path;

use brisk_loader::RowSource;
use brisk_nn::tensor::program::Device;
use brisk_train::FeedElement;

use crate::columns::Columns;
use crate::error::Error;
use crate::model::TabularModel;
use crate::predictions::Predictions;
use crate::preprocessing::{FarValues, MissingValues, Preprocessed, UnseenValues};

/// The predictions of rows, and what of these rows the model does not know: [`TabularModel::predict_file`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PredictedRows {
    /// The predictions.
    pub predictions: Predictions,
    /// What the model does not know.
    pub unfamiliar: UnfamiliarValues,
}

/// What of some rows did not occur in the training of the model that reads or predicts them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UnfamiliarValues {
    /// The columns with values that did not occur in training, which count as missing.
    pub unseen: Vec<UnseenValues>,
    /// The columns with numbers that are far from those of training: what is predicted from them is arbitrary.
    pub far: Vec<FarValues>,
    /// The columns with missing values of which training had none, or without any value.
    pub missing: Vec<MissingValues>,
    /// The blank lines between the rows of a text file of one column, which are no rows, and are not predicted.
    pub n_blank_lines: u64,
}

impl UnfamiliarValues {
    pub(super) fn of<S: RowSource<Feature: FeedElement>>(rows: &Preprocessed<S>) -> Result<Self, Error> {
        Ok(Self { unseen: rows.unseen_values()?, far: rows.far_values()?, missing: rows.missing_values()?, n_blank_lines: 0 })
    }
}

impl TabularModel {
    /// Predicts the rows of a file of any format, which is read as by [`read_rows`](Self::read_rows). For several files, a
    /// [`predictor`](Self::predictor) is prepared once.
    ///
    /// # Errors
    /// As [`read_rows`](Self::read_rows), [`predictor`](Self::predictor) and
    /// [`TabularPredictor::predict`](crate::TabularPredictor::predict).
    ///
    /// # Examples
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("new_houses.csv");
    /// use brisk_loader::Rows;
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_tabular::{Columns, Network, Preprocessing, Scaling, TabularModel, Target};
    ///
    /// # let columns = Columns::numbers(["rooms"]);
    /// # let rows = Rows::new(vec![1.0_f32, 2.0, 3.0, 4.0], vec![100.0, 210.0, 290.0, 400.0], 1)?;
    /// # let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
    /// # let target = Target::numbers("price", "train", &rows)?;
    /// # let prices = folder.path().join("prices");
    /// # TabularModel::new(7, preprocessing, target, Network::Mlp { hidden: vec![8] }).save(&prices)?;
    /// std::fs::write(&path, "id,rooms\nA1,3\nA2,3000\n")?;
    /// let predicted = TabularModel::load(&prices)?.predict_file(&Device::best()?, &path)?;
    /// assert_eq!(predicted.predictions.n_rows(), 2);
    /// assert_eq!((predicted.unfamiliar.far[0].column.as_str(), predicted.unfamiliar.far[0].n_rows), ("rooms", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn predict_file(&self, device: &Device, file: impl AsRef<Path>) -> Result<PredictedRows, Error> {
        let rows = self.read_rows(file)?;
        let predictions = self.predictor(device)?.predict(&rows.columns, &rows.table)?;
        Ok(PredictedRows { predictions, unfamiliar: rows.unfamiliar })
    }

    /// The same for rows whose columns are `columns`. Labels are ignored.
    ///
    /// # Errors
    /// As [`Preprocessing::over`](crate::Preprocessing::over), [`predictor`](Self::predictor) and
    /// [`TabularPredictor::predict`](crate::TabularPredictor::predict).
    pub fn predict_rows<S: RowSource<Feature: FeedElement>>(
        &self,
        device: &Device,
        columns: &Columns,
        rows: &S,
    ) -> Result<PredictedRows, Error> {
        let unfamiliar = UnfamiliarValues::of(&self.preprocessing().over(columns, rows)?)?;
        Ok(PredictedRows { predictions: self.predictor(device)?.predict(columns, rows)?, unfamiliar })
    }
}
