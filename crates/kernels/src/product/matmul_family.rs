use std::sync::OnceLock;

use super::matmul_gpu::NARROW_COLS;
use crate::{Adapter, AdapterKind, CoopShape, Error, Tiles};

/// The ways in which a matrix product is computed on a GPU.
///
/// `BRISK_FAMILY=direct|subgroup|tiled|coop` in the environment, read once, is taken instead of the choice by adapter and shape; it is there to
/// compare them. A kernel or shape that has no such form takes the one before: [`Direct`](Self::Direct) for `Subgroup`, [`Tiled`](Self::Tiled) for `Coop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatmulFamily {
    /// Register blocks, no barriers: for software adapters, and for results of few columns.
    Direct,
    /// Register blocks whose lanes read for one another: for software adapters, where the device has [`wgpu::Features::SUBGROUP`] and
    /// subgroups of at least 8. With [`wgpu::Features::SHADER_INT64`] as well, f32 is read in pairs.
    Subgroup,
    /// Tiles of both operands in workgroup memory: for hardware. How they are cut goes by adapter and shape, and whether products are added in f16 by
    /// [`Adapter::f16_places`].
    Tiled,
    /// The same by a cut of one's own, which holds where operands are read by vectors: for callers who measure which is faster.
    TiledBy(Tiles),
    /// The adapter's matrix units, for operands stored in f16 whose sizes, in a convolution the numbers of channels, are multiples of
    /// [theirs](CoopShape); `Tiled` for others.
    Coop,
}

impl MatmulFamily {
    /// The family for a product of `n_cols` columns on `adapter`.
    pub fn choose(adapter: &Adapter, n_cols: usize) -> Self {
        static WISH: OnceLock<Option<MatmulFamily>> = OnceLock::new();
        let wish = WISH.get_or_init(|| match std::env::var("BRISK_FAMILY").as_deref() {
            Ok("direct") => Some(Self::Direct),
            Ok("subgroup") => Some(Self::Subgroup),
            Ok("tiled") => Some(Self::Tiled),
            Ok("coop") => Some(Self::Coop),
            _ => None,
        });
        match (wish, adapter.kind) {
            (Some(wish), _) => *wish,
            (None, AdapterKind::Hardware) if n_cols > NARROW_COLS && Self::Coop.runs_on(adapter) => Self::Coop,
            (None, AdapterKind::Hardware) if n_cols > NARROW_COLS => Self::Tiled,
            (None, AdapterKind::Software) if Self::has_subgroups(adapter) => Self::Subgroup,
            _ => Self::Direct,
        }
    }

    fn has_subgroups(adapter: &Adapter) -> bool {
        adapter.features.contains(wgpu::Features::SUBGROUP) && adapter.subgroup_min_size >= 8
    }

    /// Whether a device can run it.
    pub fn runs_on(self, adapter: &Adapter) -> bool {
        match self {
            Self::Direct | Self::Tiled => true,
            Self::Subgroup => Self::has_subgroups(adapter),
            Self::TiledBy(tiles) => tiles.fits(adapter),
            Self::Coop => adapter.coop.is_some_and(|shape| shape.fits(adapter)) && adapter.features.contains(CoopShape::FEATURES),
        }
    }

    pub(crate) fn check(self, kernel: &'static str, adapter: &Adapter) -> Result<(), Error> {
        if self.runs_on(adapter) {
            return Ok(());
        }
        let found = format!("{self:?} on `{}`", adapter.name);
        let expected = match self {
            Self::TiledBy(_) => "lanes and workgroup memory within the device's limits; take smaller tiles",
            Self::Coop => {
                "an adapter that lists matrices of f16 with sums in f32 and has memory for one a subgroup, and the feature `coop`"
            }
            _ => "a device made with `Features::SUBGROUP`, whose subgroups have at least 8 lanes",
        };
        Err(Error::Unsupported { kernel, found, expected })
    }

    /// The cut of `n_slices` products of `m` by `n` results, where the family has tiles.
    pub(crate) fn tiles(self, adapter: &Adapter, m: usize, n: usize, n_slices: usize) -> Option<Tiles> {
        match self {
            Self::Direct | Self::Subgroup => None,
            Self::Tiled | Self::Coop => Some(Tiles::choose(adapter, m, n, n_slices)),
            Self::TiledBy(tiles) => Some(tiles),
        }
    }
}
