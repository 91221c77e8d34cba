//! The pixels of an image.

/// Height, width and channels, and the pixels in this order.
#[derive(Debug)]
pub(super) struct Pixels {
    pub(super) shape: Shape,
    pub(super) values: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) n_channels: usize,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} × {} pixels of {} channels", self.height, self.width, self.n_channels)
    }
}
