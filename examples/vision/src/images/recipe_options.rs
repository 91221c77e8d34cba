use anyhow::Result;
use brisk_vision::{Flip, Recipe, View};
use clap::{Args, ValueEnum};

use super::MixingOptions;

/// The recipe that trains the network, and the size of the network.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct RecipeOptions {
    /// Network, optimizer and schedule
    #[arg(long, value_enum, help_heading = "Training", default_value_t = RecipeName::Muon)]
    recipe: RecipeName,
    /// Train the network at its full width, which is meant for a GPU [default: a narrow one, which a CPU trains in minutes]
    #[arg(long, help_heading = "Training")]
    full: bool,
    /// Whether images are mirrored, left to right
    /// [default: alternating for images in colour, never for grey ones, which are often characters]
    #[arg(long, value_enum, help_heading = "Training")]
    flip: Option<FlipName>,
    /// Maximum number of pixels by which images are shifted [default: the recipe's]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pad: Option<usize>,
    /// Side length of the square that is cut out of each image [default: the recipe's, which is mostly 0]
    #[arg(long, value_name = "N", help_heading = "Training")]
    cutout: Option<usize>,
    #[command(flatten)]
    mixing: MixingOptions,
}

/// A recipe of brisk-vision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecipeName {
    /// Page 2019, "How to train your ResNet 8: Bag of tricks"
    Page,
    /// Jordan 2024, airbench94
    Airbench,
    /// airbench94 with the Muon optimizer
    Muon,
}

impl RecipeName {
    /// The recipe at its full width.
    pub fn recipe(self) -> Recipe {
        match self {
            Self::Page => Recipe::page(),
            Self::Airbench => Recipe::airbench(),
            Self::Muon => Recipe::muon(),
        }
    }
}

/// Checks that batches of `batch_rows` images consist of whole ghost batches of the recipe.
///
/// # Errors
/// If they do not; the message names `option`, which set the batch size.
pub fn check_ghost_batches(recipe: &Recipe, option: &str, batch_rows: usize) -> Result<()> {
    let ghost_rows = recipe.ghost_rows().unwrap_or(1);
    anyhow::ensure!(
        batch_rows.is_multiple_of(ghost_rows),
        "{option} {batch_rows}: the recipe `page` normalises ghost batches of {ghost_rows} images; pass a multiple of {ghost_rows}, or choose another recipe"
    );
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FlipName {
    /// Never
    Never,
    /// Every image with probability 1/2
    Random,
    /// Every image in every second epoch
    Alternating,
}

impl RecipeOptions {
    /// The recipe for images of a shape, with the batch size and the number of epochs of its authors.
    ///
    /// # Errors
    /// If the images are too small for the network, or for the augmentation.
    pub fn recipe(&self, image: [usize; 3], n_classes: usize) -> Result<Recipe> {
        let recipe = self.recipe.recipe();
        let recipe = if self.full { recipe } else { recipe.narrow() };
        let mut recipe = recipe.for_images(image, n_classes)?;
        let augmentation = &mut recipe.augmentation;
        augmentation.flip = match self.flip {
            Some(FlipName::Never) => Flip::Never,
            Some(FlipName::Random) => Flip::Random,
            Some(FlipName::Alternating) => Flip::Alternating,
            None if image[2] == 1 => Flip::Never,
            None => augmentation.flip,
        };
        augmentation.pad = self.pad.unwrap_or(augmentation.pad);
        augmentation.cutout = self.cutout.unwrap_or(augmentation.cutout);
        recipe.mixing = self.mixing.mixing();
        if recipe.augmentation.flip == Flip::Never {
            recipe.views = View::plain();
        }
        let [height, width, _] = image;
        let shortest = height.min(width);
        anyhow::ensure!(
            recipe.augmentation.pad < shortest,
            "--pad {}: images of {height} x {width} pixels can be shifted by at most {} pixels",
            recipe.augmentation.pad,
            shortest - 1
        );
        anyhow::ensure!(
            recipe.augmentation.cutout <= shortest,
            "--cutout {}: a square of this size does not fit into images of {height} x {width} pixels; pass {shortest} or less",
            recipe.augmentation.cutout
        );
        Ok(recipe)
    }

    /// Whether the weights after the last step are replaced by the slow weights of lookahead, so that the weights of earlier
    /// epochs are worse.
    pub fn ends_with_average(&self) -> bool {
        self.recipe == RecipeName::Airbench
    }

    /// Whether the network has its full width.
    pub fn is_full(&self) -> bool {
        self.full
    }
}
