use std::str::FromStr;

use crate::adapter::adapter::Adapter;
use crate::adapter::coop_shape::CoopShape;
use crate::adapter::tiles::Tiles;
use crate::error::{Error, check_supported};

/// The ways in which a matrix product is computed on a GPU.
///
/// The choice depends on adapter and shape, unless [`Adapter::matmul_family`] overrides it. A kernel or shape without a form for
/// `Coop` uses [`Tiled`](Self::Tiled).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatmulFamily {
    /// Register blocks, no barriers: for software adapters, and for results with few columns.
    Direct,
    /// Tiles of both operands in workgroup memory: for hardware. Their sizes depend on adapter and shape, and
    /// [`Adapter::f16_sum_len`] decides whether products are added in f16.
    Tiled,
    /// Tiles of the given sizes, for callers that measure which are faster.
    TiledBy(Tiles),
    /// The adapter's tensor cores, for operands stored in f16 whose sizes, in a convolution the numbers of channels, are
    /// multiples of [theirs](CoopShape); `Tiled` for others.
    Coop,
}

impl MatmulFamily {
    /// Whether a device can run it.
    pub fn runs_on(self, adapter: &Adapter) -> bool {
        match self {
            Self::Direct | Self::Tiled => true,
            Self::TiledBy(tiles) => tiles.fits(adapter),
            Self::Coop => adapter.coop.is_some_and(|shape| shape.fits(adapter)) && adapter.features.contains(CoopShape::FEATURES),
        }
    }

    pub(crate) fn check(self, kernel: &'static str, adapter: &Adapter) -> Result<(), Error> {
        let expected = match self {
            Self::TiledBy(_) => "invocations and workgroup memory within the device's limits; take smaller tiles",
            _ => {
                "an adapter whose cooperative matrices multiply f16 with sums in f32, with workgroup memory for four of them, and a device that was opened to use them"
            }
        };
        check_supported(kernel, self.runs_on(adapter), || format!("{self:?} on `{}`", adapter.name), expected)
    }
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
