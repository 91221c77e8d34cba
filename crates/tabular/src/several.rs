//! Models of several targets of the same table, in one folder.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use brisk_atomic_file::printable;
use brisk_nn::tensor::program::Device;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::TabularModel;
use crate::model_folder::{DESCRIPTION, PARAMETERS, TARGETS, n_models, parsed, read, remove, remove_models, write};
use crate::predicted_rows::PredictedRows;
use crate::read_rows::TabularRows;
use crate::text_options::TextOptions;

/// A model for each of several targets, such as columns of the same table. Their folder has the folder of each model, `0`, `1`
/// and so on, and `targets.json`, which is written last and names them.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let houses = folder.path().join("houses");
/// # let path = folder.path().join("new_houses.csv");
/// use brisk_loader::Rows;
/// use brisk_nn::tensor::program::Device;
/// use brisk_tabular::{Columns, Network, Preprocessing, Scaling, TabularModel, TabularModels, Target};
///
/// # let columns = Columns::numbers(["rooms"]);
/// # let model = |name: &str| -> Result<TabularModel, Box<dyn std::error::Error>> {
/// #     let rows = Rows::new(vec![1.0_f32, 2.0, 3.0, 4.0], vec![100.0, 210.0, 290.0, 400.0], 1)?;
/// #     let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
/// #     let target = Target::numbers(name, "train", &rows)?;
/// #     Ok(TabularModel::new(7, preprocessing, target, Network::Mlp { hidden: vec![8] }))
/// # };
/// TabularModels::new(vec![model("price")?, model("rent")?])?.save(&houses)?;
/// std::fs::write(&path, "rooms\n3\n2\n")?;
/// let predicted = TabularModels::load(&houses)?.predict_file(&Device::best()?, &path)?;
/// assert_eq!(predicted.iter().map(|target| target.predictions.n_rows()).collect::<Vec<_>>(), [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TabularModels {
    models: Vec<TabularModel>,
}

/// The version of the format of `targets.json`.
const FORMAT: u64 = 1;

/// `targets.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    format: u64,
    brisk_version: String,
    targets: Vec<IndexedTarget>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexedTarget {
    name: String,
    folder: String,
    /// The CRC-32 of its `model.json`, which has that of the parameters.
    description_crc32: u32,
}

impl fmt::Display for IndexedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, folder, description_crc32 } = self;
        write!(f, "the model `{}` in `{}` with checksum {description_crc32:08x}", printable(name), printable(folder))
    }
}

impl TabularModels {
    /// These models.
    ///
    /// # Errors
    /// [`Error::Targets`] unless there is at least one, each of a different target.
    pub fn new(models: Vec<TabularModel>) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        if models.is_empty() || !models.iter().all(|model| seen.insert(model.target().name())) {
            return Err(Error::Targets { names: models.iter().map(|model| model.target().name().to_owned()).collect() });
        }
        Ok(Self { models })
    }

    /// The models, in the order of their targets.
    pub fn models(&self) -> &[TabularModel] {
        &self.models
    }

    /// Writes all models to a folder, which is created. Those that are in it are replaced, or removed if there were more; if that
    /// is interrupted, [`load`](Self::load) returns an error instead of models of different runs.
    ///
    /// # Errors
    /// As [`TabularModel::save`].
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        for (i, model) in self.models.iter().enumerate() {
            model.save(folder.join(i.to_string()))?;
        }
        let (targets, former) = (self.indexed(folder)?, n_models(folder));
        let index = Index { format: FORMAT, brisk_version: env!("CARGO_PKG_VERSION").to_owned(), targets };
        write(&folder.join(TARGETS), serde_json::to_string_pretty(&index).map(|text| text + "\n"))?;
        // From now on, the folder is that of several models.
        remove(&folder.join(DESCRIPTION))?;
        remove(&folder.join(PARAMETERS))?;
        remove_models(folder, self.models.len()..former)
    }

    /// Reads the models of a folder: those of `targets.json`, or the only one of a folder that [`TabularModel::save`] wrote.
    ///
    /// # Errors
    /// As [`TabularModel::load`].
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let path = folder.join(TARGETS);
        if !path.is_file() {
            return Self::new(vec![TabularModel::load(folder)?]);
        }
        let damaged = |problem: String| Error::ModelFile { path: path.clone(), problem };
        let value = parsed(&path, &read(&path)?, FORMAT)?;
        let index: Index = serde_json::from_value(value).map_err(|error| damaged(error.to_string()))?;
        let models = (0..index.targets.len()).map(|i| TabularModel::load(folder.join(i.to_string())));
        let models = Self::new(models.collect::<Result<_, _>>()?).map_err(|error| damaged(error.to_string()))?;
        for (expected, found) in index.targets.iter().zip(models.indexed(folder)?) {
            if *expected != found {
                return Err(damaged(format!("names {expected}, but the folder has {found}")));
            }
        }
        Ok(models)
    }

    /// What the index of a folder with these models says about them.
    fn indexed(&self, folder: &Path) -> Result<Vec<IndexedTarget>, Error> {
        let of_model = |(i, model): (usize, &TabularModel)| {
            let text = read(&folder.join(i.to_string()).join(DESCRIPTION))?;
            let (name, folder) = (model.target().name().to_owned(), i.to_string());
            Ok(IndexedTarget { name, folder, description_crc32: crc32fast::hash(&text) })
        };
        self.models.iter().enumerate().map(of_model).collect()
    }

    /// Predicts all targets of the rows of a file of any format, as [`TabularModel::predict_file`] predicts one.
    ///
    /// # Errors
    /// As [`TabularModel::predict_file`].
    pub fn predict_file(&self, device: &Device, file: impl AsRef<Path>) -> Result<Vec<PredictedRows>, Error> {
        let rows = self.read(file.as_ref(), None, &mut || ())?;
        let predicted = self.models.iter().zip(rows).map(|(model, TabularRows { table, columns, unfamiliar })| {
            Ok(PredictedRows { predictions: model.predictor(device)?.predict(&columns, &table)?, unfamiliar })
        });
        predicted.collect()
    }

    /// The rows of a file for each model, as [`TabularModel::read_rows_with`] reads them: once for all models that have the same
    /// columns.
    ///
    /// # Errors
    /// As [`TabularModel::read_rows_with`].
    pub fn read_rows_with(
        &self,
        file: impl AsRef<Path>,
        text: &TextOptions,
        mut progress: impl FnMut(),
    ) -> Result<Vec<TabularRows>, Error> {
        self.read(file.as_ref(), Some(text), &mut progress)
    }

    fn read(&self, file: &Path, text: Option<&TextOptions>, progress: &mut dyn FnMut()) -> Result<Vec<TabularRows>, Error> {
        let mut read: Vec<TabularRows> = Vec::with_capacity(self.models.len());
        for model in &self.models {
            let like = self.models.iter().zip(&read).find(|(other, _)| other.reads_like(model));
            let rows = match like {
                Some((_, rows)) => model.known_rows(rows)?,
                None => model.read_rows_with(file, text.unwrap_or(model.text_options()), &mut *progress)?,
            };
            read.push(rows);
        }
        Ok(read)
    }
}
