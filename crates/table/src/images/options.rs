use crate::BadRows;

/// How to read a folder of images; the default: channels as the files have them, and every file is an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ImagesOptions {
    /// Which channels rows have.
    pub channels: Channels,
    /// What becomes of files that are no PNG or JPEG, that are damaged, or that lie in no folder of a class. Images of another size
    /// than the first are errors either way.
    pub bad_files: BadRows,
    /// How many threads decode; 0 for one a core. The table is the same for any number.
    pub n_threads: usize,
}

/// The channels of an image, 8 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Channels {
    /// Those of the first image. Others must have the same, and 8 bits.
    #[default]
    AsStored,
    /// One: `0.2126 R + 0.7152 G + 0.0722 B` where there are colours.
    Grey,
    /// Red, green, blue. Transparency is left out.
    Rgb,
    /// Red, green, blue, and how opaque.
    Rgba,
}
