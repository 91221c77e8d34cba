//! Code shared by `images` and `augment_gallery`: data sets of images, and a recipe that fits them.

mod costs;
mod mixing_options;
mod recipe_options;
mod same;
mod set;
mod source;
mod trained;

pub use costs::Costs;
pub use mixing_options::MixingOptions;
pub use recipe_options::{RecipeName, RecipeOptions, check_ghost_batches, check_steps, report_settings};
pub use set::{ImageRows, ImageSet, Split, standardised};
pub use source::{KEPT_TABLES, KeepTables, check_kept};
pub use trained::{Trained, WIDTHS};
