use std::str::FromStr;

use crate::adapter::tiles::Tiles;
use crate::error::Error;

/// The ways in which a matrix product is computed on a GPU.
///
/// The choice depends on adapter and shape, unless [`Adapter::matmul_family`](crate::Adapter::matmul_family) overrides it. A
/// kernel or shape without a form for `Coop` uses [`Tiled`](Self::Tiled).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatmulFamily {
    /// Register blocks, no barriers: for software adapters, and for results with few columns.
    Direct,
    /// Tiles of both operands in workgroup memory: for hardware. Their sizes depend on adapter and shape, and
    /// [`Adapter::f16_sum_len`](crate::Adapter::f16_sum_len) decides whether products are added in f16.
    Tiled,
    /// Tiles of the given sizes, for callers that measure which are faster.
    TiledBy(Tiles),
    /// The adapter's tensor cores, for operands stored in f16 whose sizes, in a convolution the numbers of channels, are
    /// multiples of [theirs](crate::CoopShape); `Tiled` for others.
    Coop,
}

impl FromStr for MatmulFamily {
    type Err = Error;

    /// `direct`, `tiled` or `coop`.
    fn from_str(word: &str) -> Result<Self, Error> {
        match word {
            "direct" => Ok(Self::Direct),
            "tiled" => Ok(Self::Tiled),
            "coop" => Ok(Self::Coop),
            _ => Err(Error::UnknownFamily { found: word.to_owned() }),
        }
    }
}
