use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Which part of a model's training state is sharded across the ranks.
///
/// In files of settings, a number from 0 to 3.
///
/// # Reference
/// Rajbhandari et al. 2020, arXiv:1910.02054.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum ZeroStage {
    /// Nothing: plain data parallelism.
    #[default]
    Replicated,
    /// The optimizer's state.
    Optimizer,
    /// The optimizer's state and the gradients.
    Gradients,
    /// The optimizer's state, the gradients and the parameters.
    Parameters,
}

impl ZeroStage {
    const ALL: [Self; 4] = [Self::Replicated, Self::Optimizer, Self::Gradients, Self::Parameters];
}

impl From<ZeroStage> for u8 {
    fn from(stage: ZeroStage) -> Self {
        stage as Self
    }
}

impl TryFrom<u8> for ZeroStage {
    type Error = String;

    fn try_from(stage: u8) -> Result<Self, String> {
        let found = Self::ALL.get(usize::from(stage)).copied();
        found.ok_or_else(|| format!("ZeRO has no stage {stage}, expected 0 to 3"))
    }
}

/// A flat buffer cut into as many equal shards as there are ranks, padded at the end.
///
/// A shard may begin and end inside a tensor, so only elementwise updates can be done shard by shard: SGD, Adam, AdamW.
///
/// # Examples
/// ```
/// use brisk_replicate::Shards;
///
/// let shards = Shards::new(1000, 3);
/// assert_eq!(shards.padded_len(), 3 * 384);
/// assert_eq!(shards.range(2), 768..1152);
/// assert_eq!(shards.used(2), 768..1000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards {
    len: usize,
    world_size: usize,
}

impl Shards {
    /// Shards are padded to a multiple of this: 256 bytes of f16, the offset alignment that every device supports for bindings.
    const ALIGN: usize = 128;

    /// Shards of `len` elements for `world_size` ranks.
    ///
    /// # Panics
    /// If `world_size` is 0.
    #[track_caller]
    pub fn new(len: usize, world_size: usize) -> Self {
        assert!(world_size > 0, "a world of 0 ranks; take at least 1");
        Self { len, world_size }
    }

    /// Elements of one shard, the same for every rank.
    fn shard_len(&self) -> usize {
        self.len.div_ceil(self.world_size).next_multiple_of(Self::ALIGN)
    }

    /// Elements of all shards.
    pub fn padded_len(&self) -> usize {
        self.shard_len() * self.world_size
    }

    /// The elements of `rank`, padding included.
    pub fn range(&self, rank: usize) -> Range<usize> {
        rank * self.shard_len()..(rank + 1) * self.shard_len()
    }

    /// The elements of `rank` that are not padding.
    pub fn used(&self, rank: usize) -> Range<usize> {
        let Range { start, end } = self.range(rank);
        start.min(self.len)..end.min(self.len)
    }
}

/// Bytes of one element of each part of a training state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBytes {
    /// Bytes of a parameter that the forward and backward passes use.
    pub parameters: usize,
    /// Bytes of its gradient.
    pub gradients: usize,
    /// Bytes of its optimizer state: running means, and an f32 copy of a parameter that is not f32 itself.
    pub optimizer: usize,
}

impl StateBytes {
    /// f32 throughout, with Adam: 4, 4 and 8 bytes.
    pub const F32_ADAM: Self = Self { parameters: 4, gradients: 4, optimizer: 8 };
    /// Parameters and gradients in 16 bits, Adam over f32 copies: 2, 2 and 12 bytes.
    pub const MIXED_ADAM: Self = Self { parameters: 2, gradients: 2, optimizer: 12 };
}

impl ZeroStage {
    /// Bytes of training state on each of `world_size` ranks for `n` parameters, padding included. Activations and buckets come
    /// on top.
    pub fn bytes_per_rank(self, n: usize, world_size: usize, of: StateBytes) -> usize {
        let shard = Shards::new(n, world_size).shard_len();
        let held = |since: Self| if self >= since { shard } else { n };
        held(Self::Parameters) * of.parameters + held(Self::Gradients) * of.gradients + held(Self::Optimizer) * of.optimizer
    }
}
