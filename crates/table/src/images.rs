mod decode;
mod folder;
mod import;
mod options;

pub use import::{import_images, import_images_with_progress};
pub use options::{Channels, ImagesOptions};
