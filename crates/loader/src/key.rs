use crate::shuffle::splitmix64_finish;

/// The key of an epoch's randomness. An augmentation that draws by it and by a row's id is bit-identical on any number of
/// threads, workers and ranks, and after resuming.
///
/// # Examples
/// ```
/// use brisk_loader::Key;
///
/// const FLIP: u32 = 0;
/// let key = Key { seed: 42, epoch: 3 };
/// let is_flipped = key.random(1234, FLIP) & 1 == 1;
/// # let _ = is_flipped;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The seed of the order; 0 for rows in order.
    pub seed: u64,
    /// The epoch.
    pub epoch: u32,
}

impl Key {
    /// 64 random bits for row `id`. `draw` distinguishes several draws for the same row: for example, 0 for a flip, 1 and 2 for a
    /// crop.
    ///
    /// # Specification
    /// With the `finish` of [`Shuffle`](crate::Shuffle), on wrapping `u64`:
    /// `finish(finish(seed + (epoch + 1) * 0xD1B54A32D192ED03) + ((id << 32 | draw) + 1) * 0x9E3779B97F4A7C15)`.
    pub fn random(self, id: u32, draw: u32) -> u64 {
        let base = splitmix64_finish(self.seed.wrapping_add((u64::from(self.epoch) + 1).wrapping_mul(0xD1B5_4A32_D192_ED03)));
        let counter = (u64::from(id) << 32 | u64::from(draw)).wrapping_add(1);
        splitmix64_finish(base.wrapping_add(counter.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }
}
