//! What `images` and `augment_gallery` share: data sets of images, and a recipe that fits them.

mod recipe_options;
mod set;
mod source;

pub use recipe_options::{RecipeName, RecipeOptions};
pub use set::{ImageRows, ImageSet, standardised};
pub use source::KeepTables;
