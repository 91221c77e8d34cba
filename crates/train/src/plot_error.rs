use crate::error::phrases::count;

/// What can be wrong with a histogram or an image in a report or an event file.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlotError {
    /// None of the values of a histogram is finite.
    #[error("histogram `{tag}`: none of {} is finite; expected at least one", count(*n_values, "value"))]
    NoFiniteValue {
        /// Its tag.
        tag: String,
        /// How many values there are.
        n_values: usize,
    },
    /// An image has a wrong number of bytes.
    #[error("image `{tag}`: {found} bytes for {height} by {width} pixels, expected 1, 3 or 4 of each pixel")]
    ImagePixels {
        /// Its tag.
        tag: String,
        /// Rows of pixels.
        height: usize,
        /// Pixels of a row.
        width: usize,
        /// How many bytes there are.
        found: usize,
    },
}
