mod decode;
mod folder;
mod import;
mod jpeg;
mod options;
mod png;
mod resize;
mod samples;

pub use import::{import_images, import_images_with_progress};
pub use options::{Channels, ImagesOptions};
