use std::path::Path;

use anyhow::{Context, Result};
use brisk_table::printable;
use brisk_train::{Checkpoint, Model};
use brisk_vision::{Network, Recipe};
use clap::ValueEnum as _;
use serde_json::{Value, json};

use super::RecipeName;

/// What the file of a trained network says of it, besides its tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trained {
    /// The recipe.
    pub recipe: RecipeName,
    /// Whether the network has its full width.
    pub is_full: bool,
    /// Height, width and channels of the images.
    pub image: [usize; 3],
    /// The names of the classes.
    pub classes: Vec<String>,
}

/// The metadata of the file.
const KEY: &str = "images";

impl Trained {
    /// Writes the model and this to a file, which replaces one of that name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, model: &Model<Network>, path: &Path) -> Result<()> {
        model.save(path)?;
        let mut file = Checkpoint::load(path)?;
        let recipe = self.recipe.name();
        file.insert_metadata(
            KEY,
            json!({ "recipe": recipe, "full": self.is_full, "image": self.image, "classes": self.classes }),
        );
        Ok(file.save(path)?)
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
        let names = about["classes"].as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
        Some(Self {
            recipe: RecipeName::from_str(about["recipe"].as_str()?, false).ok()?,
            is_full: about["full"].as_bool()?,
            image: serde_json::from_value(about["image"].clone()).ok()?,
            classes: names.collect::<Option<_>>()?,
        })
    }

    /// The recipe of the network, with its width.
    ///
    /// # Errors
    /// If the images are too small for it.
    fn network(&self) -> Result<Recipe> {
        let recipe = self.recipe.recipe();
        let recipe = if self.is_full { recipe } else { recipe.narrow() };
        Ok(recipe.for_images(self.image, self.classes.len())?)
    }
}
