use std::path::PathBuf;

use brisk_examples::command_line::value::{self, MAX_COUNT, one_of, positive, precision, whole};
use brisk_examples::command_line::{DeviceOption, ServerOption};
use brisk_nn::tensor::Precision;
use brisk_table::{BadRows, Channels};
use brisk_vision_examples::images::RecipeOptions;
use clap::Parser;

/// Trains a network on images: a folder of classes, MNIST and its relatives, or CIFAR
#[derive(Debug, Parser)]
#[command(name = "images", after_help = NOTES)]
pub(crate) struct Options {
    /// Images: a folder with one folder per class, or a .tar of it; the files of MNIST, Fashion-MNIST, EMNIST or CIFAR; a table
    /// (.safetensors); or the URL of a .tar or a table
    #[arg(long, value_name = "PATH", help_heading = "Data", required_unless_present = "predict")]
    pub(crate) data: Option<PathBuf>,
    /// Resize images of a folder or archive to SIZE, a side or HEIGHTxWIDTH; the longer side of an image of another aspect ratio
    /// is cropped
    #[arg(long, value_name = "SIZE", help_heading = "Data", value_parser = value::image_size())]
    pub(crate) size: Option<[usize; 2]>,
    /// Number of channels of the images of a folder or archive; `first` for that of the first image, which all others must have
    #[arg(long, value_name = "CHANNELS", help_heading = "Data", default_value = "first", value_parser = value::channels())]
    pub(crate) channels: Channels,
    /// What to do with files that are not images or are damaged: end with an error, or skip them
    #[arg(long = "on-bad-file", value_name = "ACTION", help_heading = "Data", default_value = "fail",
        value_parser = one_of([("fail", BadRows::Error), ("skip", BadRows::Skip)]))]
    pub(crate) bad_files: BadRows,
    /// Keep the decoded images as tables in DIR, which a later `--data DIR` opens immediately
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    pub(crate) save_tables: Option<PathBuf>,

    /// Predict the class of an image, or of all PNG and JPEG files in a folder, with the model in --model, instead of training;
    /// prints a line `file,class,probability` for each. Images are resized and converted as the model needs
    #[arg(long, value_name = "PATH", help_heading = "Prediction", conflicts_with_all = OF_TRAINING)]
    pub(crate) predict: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) recipe: RecipeOptions,
    /// Images per batch [default: an eighth of the training images, from 64 to the recipe's number]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) batch: Option<usize>,
    /// Number of epochs, which may be fractional [default: about 300 steps, 3 to 40 epochs; with --full the recipe's]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = positive(1e6))]
    pub(crate) epochs: Option<f64>,
    /// Seed of the initial weights, the order of images, their augmentation, and which are held out
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "0", value_parser = whole::<u64>(0..=MAX_COUNT))]
    pub(crate) seed: u64,
    /// Precision of matrix products; parameters are always f32
    #[arg(long, value_name = "TYPE", help_heading = "Running", default_value = "f32", value_parser = precision())]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) device: DeviceOption,
    #[command(flatten)]
    pub(crate) server: ServerOption,

    /// Write the trained model to FILE; with --predict, read it from there
    #[arg(long, value_name = "FILE", help_heading = "Results", default_value = MODEL)]
    pub(crate) model: PathBuf,
    /// Write an HTML page with the curves of the run and the model's errors to FILE
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) report: Option<PathBuf>,
    /// Write the results to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) json: Option<PathBuf>,
}

/// The default path of the model.
pub(crate) const MODEL: &str = "target/images/model.safetensors";

/// The options that have no effect on predictions.
const OF_TRAINING: [&str; 17] = [
    "data",
    "size",
    "channels",
    "save_tables",
    "recipe",
    "full",
    "flip",
    "pad",
    "cutout",
    "cutmix",
    "mixup",
    "batch",
    "epochs",
    "seed",
    "report",
    "json",
    "precision",
];

const NOTES: &str = "\
The model is that of the epoch with the best accuracy on the validation images: those in a folder named val, valid or validation next to one named train, or a tenth of
the training images of each class. Test images are used once, after training: a folder named test, t10k-images-… and …-test-images-… for MNIST and its relatives, and
the test batches of CIFAR.

Examples:
  cargo run --release --example images -- --data photos/ --size 64 --report photos.html
  cargo run --release --example images -- --predict new-photos/ > classes.csv
  cargo run --release --example images -- --data mnist/
  cargo run --release --example images -- --data cifar-100-binary.tar.gz --save-tables cifar100/";
