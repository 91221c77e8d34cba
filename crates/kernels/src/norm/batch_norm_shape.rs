//! The sizes of a batch normalisation, and the normalisation itself, which is an expression.

use crate::dtype::DType;
use crate::error::Error;
use crate::expr::{Activation, Expr};
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::Kernel;
use crate::map::map::{Map, MapOutput};
use crate::map::map_input::MapInput;
use crate::sizes::check_size;

/// The sizes of a batch normalisation: rows of channels, in one or several groups.
///
/// Images are rows of pixels: `n_rows = n_images * height * width`. With `n_groups > 1` it is *ghost* batch normalisation: each
/// of the groups, equal numbers of consecutive rows, is normalised by its own statistics, as by replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchNormShape {
    /// Rows, over which the statistics of a channel are taken.
    pub n_rows: usize,
    /// Channels.
    pub n_channels: usize,
    /// The number of groups of consecutive rows with separate statistics.
    pub n_groups: usize,
}

/// The maximum number of parts that all groups are divided into.
const MAX_PARTS: usize = 512;
/// The minimum number of rows of a part.
const PART_ROWS: usize = 64;
/// The maximum number of parts of a group that one invocation merges without intermediate blocks.
const FEW_PARTS: usize = 32;

impl BatchNormShape {
    /// Elements of the rows.
    pub const fn len(&self) -> usize {
        self.n_rows.saturating_mul(self.n_channels)
    }

    /// Whether there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements of the statistics: `[n_groups, 2, n_channels]`, the means and `1 / √(var + ε)`.
    pub const fn n_stats(&self) -> usize {
        2 * self.n_groups.saturating_mul(self.n_channels)
    }

    /// Rows of a group.
    pub(crate) const fn group_rows(&self) -> usize {
        self.n_rows / if self.n_groups == 0 { 1 } else { self.n_groups }
    }

    /// Rows that are summed sequentially. The last part of a group may have fewer.
    pub(crate) fn part_rows(&self) -> usize {
        let max_parts = (MAX_PARTS / self.n_groups.max(1)).max(1);
        self.group_rows().div_ceil(max_parts).max(PART_ROWS)
    }

    /// Parts of a group.
    pub(crate) fn group_parts(&self) -> usize {
        self.group_rows().div_ceil(self.part_rows()).max(1)
    }

    /// The number of parts that are merged into one block: about the square root of the number of a group's parts, so that for up
    /// to 512 parts a chain has at most 23.
    pub(super) fn block_parts(&self) -> usize {
        let parts = self.group_parts();
        let root = parts.isqrt();
        root + usize::from(root * root < parts)
    }

    /// The number of such blocks in a group.
    pub(super) fn group_blocks(&self) -> usize {
        self.group_parts().div_ceil(self.block_parts())
    }

    /// Whether parts are first merged in blocks. Few parts are merged directly.
    pub(super) fn has_blocks(&self) -> bool {
        self.group_parts() > FEW_PARTS
    }

    /// Blocks of all groups.
    pub(super) fn n_blocks(&self) -> usize {
        self.n_groups.saturating_mul(self.group_blocks())
    }

    /// Parts of all groups.
    pub(super) fn n_parts(&self) -> usize {
        self.n_groups.saturating_mul(self.group_parts())
    }

    /// Elements of the sums of a part: each channel's mean and squared deviations, the sums of the weights and of their squares.
    pub(crate) const fn part_len(&self) -> usize {
        self.n_channels.saturating_mul(2).saturating_add(2)
    }

    pub(crate) fn check(&self, kernel: &impl Kernel) -> Result<(), Error> {
        check_sizes(kernel, &[("n_rows", self.n_rows), ("n_channels", self.n_channels), ("n_groups", self.n_groups)])?;
        self.check_divisor(kernel, "n_groups", self.n_groups)
    }

    pub(super) fn check_divisor(&self, kernel: &impl Kernel, size: &'static str, n: usize) -> Result<(), Error> {
        check_size(kernel.name(), (size, n), self.n_rows.is_multiple_of(n), "a divisor of the number of rows")
    }

    pub(crate) fn params(&self) -> [(&'static str, usize); 5] {
        [
            ("n_channels", self.n_channels),
            ("n_groups", self.n_groups),
            ("group_rows", self.group_rows()),
            ("part_rows", self.part_rows()),
            ("group_parts", self.group_parts()),
        ]
    }
}

/// One of the two halves of `stats` and `sums`.
#[derive(Clone, Copy)]
pub(super) enum Half {
    /// The means; the sums of gradients.
    First,
    /// The inverse standard deviations; the sums of gradients times normalised values.
    Second,
}

impl BatchNormShape {
    /// The kernel that normalises rows by their statistics: `y = act((x - mean) / √(var + ε) · weight + bias)`, channel by
    /// channel.
    ///
    /// # Shapes
    /// Its arguments are `x`, `[n_rows, n_channels]`; `stats` twice, `[n_groups, 2, n_channels]`, of
    /// [`BatchNormStats`](crate::BatchNormStats) or [`BatchNormFrozenStats`](crate::BatchNormFrozenStats); `weight` and `bias`,
    /// `[n_channels]`; and `y`, `[n_rows, n_channels]`. The groups divide the rows.
    /// # Dtypes
    /// f32; `x` and `y` in f16 and bf16 by [`stored`](crate::stored).
    pub fn normalise(&self, activation: &Activation) -> Map {
        let inputs =
            vec![self.elements(), self.statistic(Half::First), self.statistic(Half::Second), self.channels(), self.channels()];
        self.map(inputs, activation.forward.substitute(&[Self::normalised()]))
    }

    /// `(x - mean) (inv_std weight) + bias`, in that order of inputs: the CPU computes the product once for each channel.
    pub(super) fn normalised() -> Expr {
        let [x, mean, inv_std, weight, bias] = [0, 1, 2, 3, 4].map(Expr::input);
        (x - mean) * (inv_std * weight) + bias
    }

    /// Groups, rows of a group, channels.
    pub(super) fn grouped(&self) -> [usize; 3] {
        [self.n_groups, self.group_rows(), self.n_channels]
    }

    /// `x` or an argument of the same shape.
    pub(super) fn elements(&self) -> MapInput {
        MapInput::new(&self.grouped(), DType::F32)
    }

    /// A value for each channel.
    pub(super) fn channels(&self) -> MapInput {
        MapInput::new(&[self.n_channels], DType::F32)
    }

    /// Means or inverse standard deviations of `stats`, `[n_groups, 2, n_channels]`.
    pub(super) fn statistic(&self, half: Half) -> MapInput {
        let c = self.n_channels;
        MapInput {
            strides: vec![c.saturating_mul(2), c, 1],
            offset: half as usize * c,
            len: self.n_stats(),
            ..MapInput::new(&[self.n_groups, 1, c], DType::F32)
        }
    }

    pub(super) fn map(&self, inputs: Vec<MapInput>, expr: Expr) -> Map {
        Map { shape: self.grouped().to_vec(), inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }
    }
}
