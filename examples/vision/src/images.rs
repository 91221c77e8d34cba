//! Code shared by `images` and `augment_gallery`: data sets of images, and a recipe that fits them.

mod costs;
mod mixing_options;
mod recipe_options;
mod set;
mod source;

pub use costs::Costs;
pub use mixing_options::MixingOptions;
pub use recipe_options::{RecipeName, RecipeOptions, check_ghost_batches};
pub use set::{ImageRows, ImageSet, standardised};
pub use source::KeepTables;
