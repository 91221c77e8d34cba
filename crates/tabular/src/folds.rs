use brisk_loader::{Fold, RowSource};
use brisk_nn::tensor::program::Device;

use crate::error::Error;
use crate::fitting::{Fitted, Fitting};
use crate::mean::mean_and_deviation;
use crate::preprocessing::Preprocessing;
use crate::target::Target;

/// A score of the models of all folds, each for the rows of its fold.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldScore {
    /// Its name.
    pub name: String,
    /// That of each fold.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
}

impl Fitted {
    /// The [scores of the folds](Self::fold_scores), by name; none without folds.
    pub fn scores_by_name(&self) -> Vec<FoldScore> {
        let names = self.fold_scores.first().into_iter().flat_map(|scores| &scores.values);
        let of_name = |(name, _): &(String, f64)| {
            let values: Vec<f64> = self.fold_scores.iter().filter_map(|scores| scores.get(name)).collect();
            let [mean, deviation] = mean_and_deviation(&values);
            FoldScore { name: name.clone(), values, mean, deviation }
        };
        names.map(of_name).collect()
    }
}

impl Fitting<'_> {
    /// Trains the networks for each fold of a [cross-validation](crate::Detected::folds), each time on the rows that are not
    /// those of the fold. The model predicts the mean over the folds of the networks that are kept: those that predict best
    /// together all rows, each by the networks that were not trained on it. By these predictions the model is also calibrated,
    /// and a threshold or intervals are chosen. The importance of columns is the mean over the folds.
    ///
    /// The folds share the limit of time. A run that is stopped returns the model of the folds up to then.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::NoRecipe`] without folds.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::{Rows, k_fold};
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_tabular::{Columns, Effort, Fitting, Preprocessing, Scaling, Target};
    ///
    /// let x: Vec<f32> = (0..300).map(|row| (row as f32 * 0.7549).fract()).collect();
    /// let labels: Vec<f32> = x.iter().map(|x| 3.0 * x).collect();
    /// let rows = Rows::new(x, labels, 1)?;
    /// let columns = Columns::numbers(["x"]);
    /// let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
    /// let target = Target::numbers("y", "train", &rows)?;
    /// let rows = preprocessing.over(&columns, &rows)?.with_target(&target).to_rows("train")?;
    ///
    /// let fitting = Fitting::new(Effort::Quick.recipes(&rows, &target, 7), 7);
    /// let fitted = fitting.fit_folds(&Device::best()?, preprocessing, target, &k_fold(&rows, 7, 3)?)?;
    /// assert_eq!(fitted.fold_scores.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit_folds<S: RowSource<Feature = f32>>(
        &self,
        device: &Device,
        preprocessing: Preprocessing,
        target: Target,
        folds: &[Fold<S>],
    ) -> Result<Fitted, Error> {
        let sets: Vec<_> = folds.iter().map(|fold| (&fold.train, &fold.valid)).collect();
        self.fit_sets(device, &preprocessing, &target, &sets)
    }
}
