//! Pictures of training data and results: a grid of images for each augmentation, the whitening filters, and a model's wrong
//! predictions.
//!
//! `cargo run --release --example augment_gallery`; `-- --data FOLDER` shows your own images.

mod batch;
mod grid;
mod wrong;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use brisk_examples::command_line::value::{self, MAX_COUNT, whole};
use brisk_examples::command_line::{self, DeviceOption};
use brisk_examples::{check_folder, check_model, letters, print};
use brisk_loader::RowSource as _;
use brisk_nn::Augment;
use brisk_nn::tensor::program::Device;
use brisk_table::{Channels, ImagesOptions, printable};
use brisk_train::{Standardisation, StopFlag};
use brisk_vision::{AugmentedImages, Border, Flip, ImageAugmentation, MixedImages, Mixing, NetworkConfig, Patches, Recipe};
use brisk_vision_examples::images::{ImageRows, ImageSet, KeepTables, RecipeOptions, Split, standardised};
use clap::Parser;

use batch::Epoch;
use grid::Grid;

/// Draws augmented batches, whitening filters and wrong predictions as PNG files
#[derive(Debug, Parser)]
#[command(name = "augment_gallery", after_help = NOTES)]
struct Options {
    /// Images: a folder of classes, the files of MNIST or CIFAR, or a table, as for the example images [default: drawn letters]
    #[arg(long, value_name = "PATH", help_heading = "Data")]
    data: Option<PathBuf>,
    /// Resize images of a folder or archive to SIZE, a side or HEIGHTxWIDTH
    #[arg(long, value_name = "SIZE", help_heading = "Data", requires = "data", value_parser = value::image_size())]
    size: Option<[usize; 2]>,
    /// Number of channels of the images of a folder or archive
    #[arg(long, value_name = "CHANNELS", help_heading = "Data", default_value = "first", value_parser = value::channels())]
    channels: Channels,
    /// Draw wrong predictions of this model, which the example images trained with the same --recipe and --full
    #[arg(long, value_name = "FILE", help_heading = "Data", requires = "data")]
    model: Option<PathBuf>,

    #[command(flatten)]
    recipe: RecipeOptions,
    /// Seed of the augmentation, and of the choice of images
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "0", value_parser = whole::<u64>(0..=MAX_COUNT))]
    seed: u64,
    #[command(flatten)]
    device: DeviceOption,

    /// Folder for the pictures
    #[arg(long, value_name = "DIR", help_heading = "Results", default_value = "target/gallery")]
    out: PathBuf,
}

const NOTES: &str = "\
The pictures: augmented.png has a row for each augmentation and a column for each image; epochs.png shows how the recipe's augmentation changes
with the epoch, one per row; whitening.png has the filters of the network's first layer, those for the largest variances first; wrong.png has the images that the model
classifies wrongly, the most confident predictions first, and wrong.txt their classes.

Examples:
  cargo run --release --example augment_gallery
  cargo run --release --example augment_gallery -- --data cifar10/ --model target/images/model.safetensors";

/// The number of columns of the pictures.
const N_COLUMNS: usize = 12;

fn main() -> ExitCode {
    command_line::run(|options| run(&options).map(|()| ExitCode::SUCCESS))
}

fn run(options: &Options) -> Result<()> {
    check_folder("--out", &options.out)?;
    options.model.as_deref().map_or(Ok(()), check_model)?;
    let stop = StopFlag::on_signals()?;
    let device = options.device.builder().open()?;
    fs::create_dir_all(&options.out).with_context(|| format!("{}: cannot create the folder", printable(&options.out)))?;
    let images = ImagesOptions { channels: options.channels, size: options.size, ..ImagesOptions::default() };
    let set = match &options.data {
        Some(data) => ImageSet::open(data, images, KeepTables::No, &stop)?,
        None => ImageSet::of_table(letters::table(&options.out.join("letters.safetensors"), 2600)?)?,
    };
    let recipe = options.recipe.recipe(set.image(), set.classes().len())?;
    let Split { train, valid, test } = set.split(options.seed)?;
    let scale = Standardisation::of("train", &train)?.per_channel(set.image()[2])?;

    save(options, "augmented.png", &augmented(&device, &train, &recipe, &scale, options.seed)?)?;
    save(options, "epochs.png", &epochs(&device, &train, &recipe, &scale, options.seed)?)?;
    save(options, "whitening.png", &whitening(&device, &train, &recipe, &scale)?)?;
    if let Some(path) = &options.model {
        let shown = test.as_ref().unwrap_or(&valid);
        let wrong = wrong::predictions(path, &recipe, shown, set.classes().len())?;
        print::result(format_args!("{} of {} predictions are wrong", wrong.n_wrong, wrong.n_images))?;
        if wrong.n_wrong == 0 {
            return Ok(());
        }
        save(options, "wrong.png", &wrong::grid(&wrong, shown, set.image(), N_COLUMNS)?)?;
        let path = options.out.join("wrong.txt");
        fs::write(&path, wrong::list(&wrong, set.classes(), N_COLUMNS))
            .with_context(|| format!("{}: cannot be written", printable(&path)))?;
        print::result(format_args!("wrote {}", printable(&path)))?;
    }
    Ok(())
}

/// A grid with a row for each augmentation of the same images.
fn augmented(device: &Device, rows: &ImageRows<'_>, recipe: &Recipe, scale: &Standardisation, seed: u64) -> Result<Grid> {
    let image = recipe.image();
    let quarter = image[0].min(image[1]) / 4;
    let none = ImageAugmentation { seed, ..ImageAugmentation::default() };
    let augmentations = [
        ("originals", none),
        ("shifted with reflected borders", ImageAugmentation { pad: quarter, border: Border::Reflect, ..none }),
        ("shifted with empty borders", ImageAugmentation { pad: quarter, border: Border::Zero, ..none }),
        ("flipped", ImageAugmentation { flip: Flip::Random, ..none }),
        ("cutout", ImageAugmentation { cutout: quarter, ..none }),
        ("brightness", ImageAugmentation { brightness: 1.0, ..none }),
        ("contrast", ImageAugmentation { contrast: 0.6, ..none }),
    ];
    let n = N_COLUMNS.min(rows.n_rows());
    let mut grid = Grid::new(image, n);
    let mut push = |caption, augment: &dyn Augment| -> Result<()> {
        grid.push_row(caption, &batch::draw(device, rows, augment, scale, Epoch(0), n)?);
        Ok(())
    };
    for (caption, augmentation) in augmentations {
        push(caption, &AugmentedImages { image, augmentation })?;
    }
    let images = AugmentedImages { image, augmentation: none };
    let mixings = [("mixup", Mixing::Mixup { alpha: 1.0 }), ("cutmix", Mixing::CutMix { alpha: 1.0 })];
    for (caption, mixing) in mixings {
        push(caption, &MixedImages { images, mixing, seed })?;
    }
    push("as in the recipe", &recipe.augment(seed))?;
    Ok(grid)
}

/// A grid with a row for each epoch, with the same images.
fn epochs(device: &Device, rows: &ImageRows<'_>, recipe: &Recipe, scale: &Standardisation, seed: u64) -> Result<Grid> {
    let augment = recipe.augment(seed);
    let n = N_COLUMNS.min(rows.n_rows());
    let mut grid = Grid::new(recipe.image(), n);
    for epoch in 0..8 {
        grid.push(&batch::draw(device, rows, &augment, scale, Epoch(epoch), n)?);
    }
    Ok(grid)
}

/// The whitening filters of the recipe, each scaled to the range of bytes.
fn whitening(device: &Device, rows: &ImageRows<'_>, recipe: &Recipe, scale: &Standardisation) -> Result<Grid> {
    let image = recipe.image();
    let side = match &recipe.network {
        NetworkConfig::ResNet9(_) => 3,
        _ => 2,
    };
    let patches = Patches { image, patch: [side, side] };
    let images = standardised(rows, recipe.whitening.n_images.min(1000), scale)?;
    let covariance = patches.covariance(device, &images)?;
    let mut grid = Grid::new([side, side, image[2]], N_COLUMNS);
    for filter in covariance.eigenvectors().chunks_exact(patches.len()) {
        let largest = filter.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        grid.push(&filter.iter().map(|value| (127.5 + 127.5 * value / largest).round() as u8).collect::<Vec<_>>());
    }
    Ok(grid)
}

fn save(options: &Options, name: &str, grid: &Grid) -> Result<()> {
    let path: &Path = &options.out.join(name);
    grid.save(path)?;
    print::result(format_args!("wrote {}", printable(path)))
}
