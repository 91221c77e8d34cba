mod decode;
mod exif;
mod folder;
mod import;
mod jpeg;
mod options;
mod png;
mod resize;
mod samples;
mod tree;

pub use import::DecodedImage;
pub use options::{Channels, ImagesOptions, Orientation};
