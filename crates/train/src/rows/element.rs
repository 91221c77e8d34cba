use brisk_loader::{Feature, RowSource};
use brisk_nn::tensor::DType;
use bytemuck::Pod;

use super::Features;

/// The type of a feature that a device gathers: `f32`, or `u8`, which stays a byte there and becomes 0 to 255 when gathered.
///
/// Sealed: these are the types that the kernel reads.
pub trait FeedElement: Feature + Pod + Into<f32> + Sealed {
    /// The same as a `DType`.
    const DTYPE: DType;
}

/// A [`RowSource`] whose features can be gathered on a device. Every one with features of these types is.
pub trait FeedRows: RowSource<Feature: FeedElement> {}

impl<S: RowSource<Feature: FeedElement>> FeedRows for S {}

pub trait Sealed: Sized {
    fn features(values: &[Self]) -> Features<'_>;
}

impl FeedElement for f32 {
    const DTYPE: DType = DType::F32;
}

impl Sealed for f32 {
    fn features(values: &[Self]) -> Features<'_> {
        Features::F32(values)
    }
}

impl FeedElement for u8 {
    const DTYPE: DType = DType::U8;
}

impl Sealed for u8 {
    fn features(values: &[Self]) -> Features<'_> {
        Features::U8(values)
    }
}
