mod decode;
mod exif;
mod folder;
mod import;
mod jpeg;
mod opened;
mod options;
mod pixels;
mod png;
mod resize;
mod samples;
mod tree;

pub use import::DecodedImage;
pub use options::{Channels, ImagesOptions, Orientation};
