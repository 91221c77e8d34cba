use anyhow::Result;
use brisk_vision::{Flip, Mixing, Rates, Recipe, View};
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
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Airbench => "airbench",
            Self::Muon => "muon",
        }
    }

    /// The recipe at its full width.
    pub fn recipe(self) -> Recipe {
        match self {
            Self::Page => Recipe::page(),
            Self::Airbench => Recipe::airbench(),
            Self::Muon => Recipe::muon(),
        }
    }
}

/// What a report says of `recipe`: what it is called, and its settings.
pub fn report_settings(name: String, recipe: &Recipe) -> Vec<(String, String)> {
    let optimizer = match &recipe.rates {
        Rates::Page { peak, .. } => format!("SGD with Nesterov momentum, rate up to {peak:.4}"),
        Rates::Airbench { peak, .. } => format!("SGD with Nesterov momentum and Lookahead, rate up to {peak:.4}"),
        Rates::Muon { filters, head, biases, .. } => format!(
            "Muon for the filters, rate {filters:.4}; SGD with Nesterov momentum for the head, rate {head:.4}, and biases, rate {biases:.4}; the learning rate is a factor of these"
        ),
        other => format!("{other:?}"),
    };
    let [height, width, n_channels] = recipe.image();
    let augmentation = &recipe.augmentation;
    let flip = match augmentation.flip {
        Flip::Never => "not mirrored".to_owned(),
        Flip::Random => "mirrored at random".to_owned(),
        Flip::Alternating => "mirrored in every second epoch".to_owned(),
        other => format!("{other:?}"),
    };
    let mixing = match recipe.mixing {
        None => String::new(),
        Some(Mixing::CutMix { alpha }) => format!(", CutMix {alpha}"),
        Some(Mixing::Mixup { alpha }) => format!(", Mixup {alpha}"),
        Some(other) => format!(", {other:?}"),
    };
    let settings = [
        ("recipe", name),
        ("optimizer", optimizer),
        ("images", format!("{height} x {width} pixels of {n_channels} channels")),
        ("augmentation", format!("{flip}, shifted by up to {} pixels, cutout {}{mixing}", augmentation.pad, augmentation.cutout)),
        ("label smoothing", recipe.label_smoothing.to_string()),
        ("epochs", recipe.n_epochs.to_string()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).into()
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

/// Checks that `n_epochs` of the recipe over `n_rows` images, as `--epochs` says, are at least a step.
///
/// # Errors
/// If they are less.
pub fn check_steps(recipe: &Recipe, n_epochs: f64, n_rows: usize) -> Result<()> {
    let epoch_steps = recipe.epoch_steps(n_rows);
    anyhow::ensure!(
        n_epochs * epoch_steps as f64 >= 0.999,
        "--epochs {n_epochs}: an epoch has {epoch_steps} steps, and this is less than one; pass {:.3} or more",
        1.0 / epoch_steps as f64
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
        let recipe = recipe.for_images(image, n_classes);
        let mut recipe = recipe.map_err(|error| anyhow::anyhow!("{error} (`--size`)"))?;
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

    /// The name of the recipe.
    pub fn name(&self) -> RecipeName {
        self.recipe
    }

    /// Whether the network has its full width.
    pub fn is_full(&self) -> bool {
        self.full
    }
}
