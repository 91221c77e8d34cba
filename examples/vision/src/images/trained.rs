use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use brisk_examples::print;
use brisk_table::printable;
use brisk_train::{Checkpoint, Model};
use brisk_vision::{Network, Recipe};
use clap::ValueEnum as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::RecipeName;

/// What the file of a trained network says of it, besides its tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trained {
    /// The recipe.
    pub recipe: RecipeName,
    /// The [rung](Recipe::page_rung) of the recipe, if it is not the last.
    pub rung: Option<u8>,
    /// Whether the network has its full width.
    pub is_full: bool,
    /// The [widths](Recipe::narrowed) of the network, if they are others.
    pub widths: Option<Vec<usize>>,
    /// Height, width and channels of the images.
    pub image: [usize; 3],
    /// The names of the classes.
    pub classes: Vec<String>,
}

/// The widths that a network may have.
pub const WIDTHS: RangeInclusive<u64> = 1..=4096;

/// The metadata of the file.
const KEY: &str = "images";

impl Trained {
    /// Writes the model and this to a file, which replaces one of that name. Weights of convolutions are
    /// `[out, in, height, width]`, as in PyTorch.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, model: &Model<Network>, path: &Path) -> Result<()> {
        model.save(path)?;
        let mut file = Checkpoint::load(path)?;
        let Self { recipe, rung, is_full, widths, image, classes } = self;
        let about = json!({
            "recipe": recipe.name(), "rung": rung, "full": is_full, "widths": widths, "image": image, "classes": classes,
        });
        file.insert_metadata(KEY, about);
        Ok(file.ohwi_to_oihw().save(path)?)
    }

    /// Writes both to `path`, or, if that fails, to a temporary folder: the model has taken time to train. Returns where they
    /// are.
    ///
    /// # Errors
    /// If they cannot be written to either.
    pub fn save_somewhere(&self, model: &Model<Network>, path: &Path) -> Result<PathBuf> {
        let Err(error) = self.save(model, path) else { return Ok(path.to_owned()) };
        let Ok(other) = tempfile::tempdir().map(|folder| folder.keep().join("model.safetensors")) else { return Err(error) };
        self.save(model, &other).with_context(|| format!("{error:#}"))?;
        print::error(&error);
        print::note(format_args!("the model was written to {} instead", printable(&other)));
        Ok(other)
    }

    /// Reads what [`save`](Self::save) has written.
    ///
    /// # Errors
    /// If the file cannot be read, or is not of the example `images`.
    pub fn load(path: &Path) -> Result<(Self, Model<Network>)> {
        let about: Value = Checkpoint::load(path)?.metadata(KEY, "of a model that the example images has trained")?;
        let trained = Self::of_json(&about)
            .with_context(|| format!("{}: `{KEY}` is {about}, which this version does not know", printable(path)))?;
        let recipe = trained.network().with_context(|| printable(path).to_string())?;
        let model = Model::load(path, |params| recipe.build(params))?;
        Ok((trained, model))
    }

    fn of_json(about: &Value) -> Option<Self> {
        fn part<T: DeserializeOwned>(about: &Value, name: &str) -> Option<T> {
            serde_json::from_value(about[name].clone()).ok()
        }
        let trained = Self {
            recipe: RecipeName::from_str(about["recipe"].as_str()?, false).ok()?,
            rung: part(about, "rung")?,
            is_full: part(about, "full")?,
            widths: part(about, "widths")?,
            image: part(about, "image")?,
            classes: part(about, "classes")?,
        };
        let are_usual = trained.widths.iter().flatten().all(|&width| WIDTHS.contains(&(width as u64)));
        are_usual.then_some(trained)
    }

    /// The recipe of the network, with its width.
    ///
    /// # Errors
    /// If the images are too small for it.
    fn network(&self) -> Result<Recipe> {
        let recipe = self.rung.map_or_else(|| self.recipe.recipe(), |rung| Recipe::page_rung(rung.into()));
        let batch_rows = recipe.batch_rows;
        let recipe = match &self.widths {
            Some(widths) => recipe.narrowed(widths, batch_rows),
            None if self.is_full => recipe,
            None => recipe.narrow(),
        };
        Ok(recipe.for_images(self.image, self.classes.len())?)
    }
}
