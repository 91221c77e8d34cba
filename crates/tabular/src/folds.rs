use std::time::Instant;

use brisk_loader::{Fold, RowSource};
use brisk_nn::tensor::program::Device;
use brisk_train::Ended;

use crate::error::Error;
use crate::fitting::{Fitted, Fitting};
use crate::importance::Importance;
use crate::mean::mean_and_deviation;
use crate::model::TabularModel;
use crate::preprocessing::Preprocessing;
use crate::target::Target;
use crate::validated::Validated;

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
    /// Trains a model for each fold of a [cross-validation](crate::Detected::folds), each on the rows that are not those of the
    /// fold, by which it is validated; the returned model predicts their mean. Predictions are calibrated, and a threshold or
    /// intervals are chosen, by the predictions for the rows of each fold of the model that was not trained on them. The
    /// importance of columns is the mean over the models.
    ///
    /// The folds share the limit of time. A run that is stopped returns the mean of the models up to then.
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
        let started = Instant::now();
        self.check(&target)?;
        self.check_interval_rows(&target, folds.iter().map(|fold| fold.valid.n_rows()).sum())?;
        let (mut models, mut importances): (Vec<TabularModel>, Vec<Importance>) = (Vec::new(), Vec::new());
        let (mut reports, mut weights, mut fold_scores, mut all) = (Vec::new(), Vec::new(), Vec::new(), Validated::default());
        let mut linear = None;
        for (i, fold) in folds.iter().enumerate() {
            let first_network = i * self.recipes.len();
            let left = |time: std::time::Duration| time.saturating_sub(started.elapsed()) / (folds.len() - i) as u32;
            let fitting = Fitting {
                recipes: self.recipes.clone(),
                seed: self.seed + first_network as u64,
                max_time: self.max_time.map(left),
                precision: self.precision,
                class_weights: self.class_weights,
                threshold: None,
                intervals: None,
                importance: self.importance.clone(),
                configure: Box::new(|trainer, network| (self.configure)(trainer, first_network + network)),
            };
            let fitted = fitting.fit(device, preprocessing.clone(), target.clone(), &fold.train, &fold.valid)?;
            let is_stopped = fitted.reports.iter().any(|report| report.ended == Ended::Stopped);
            fold_scores.push(fitted.model.evaluate(&fold.valid)?);
            all.add(fitted.model.validated("valid", &fold.valid)?);
            importances.extend(fitted.model.importance().cloned());
            reports.extend(fitted.reports);
            weights.extend(fitted.weights);
            linear = linear.or(fitted.linear);
            models.push(fitted.model);
            if is_stopped {
                break;
            }
        }
        let n_folds = models.len();
        weights.iter_mut().for_each(|weight| *weight /= n_folds as f32);
        let share = 1.0 / n_folds as f32;
        let mut model = TabularModel::mean_of(&models.iter().map(|model| (share, model)).collect::<Vec<_>>())?;
        let of_rows = all.weights.as_deref();
        let classes = self.class_weights.of(&target, &all.labels, of_rows)?;
        model.calibrate_to(&all, &target.constant_of(&all.labels, of_rows), classes.as_deref());
        if let Some(metric) = self.threshold {
            model.choose_threshold_on(metric, all)?;
        } else if let Some(coverage) = self.intervals {
            model.choose_intervals_on(coverage, all)?;
        }
        model.set_importance(Importance::mean_of(importances.as_slice()).filter(|_| importances.len() == n_folds));
        Ok(Fitted { model, reports, weights, linear, fold_scores })
    }
}
