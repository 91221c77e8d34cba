#![expect(clippy::cast_possible_truncation, reason = "products are split into their halves")]

/// Philox4x32-10: a counter-based generator, so that computing the n-th number of a stream costs the same for every n.
///
/// # Reference
/// Salmon et al. 2011, *Parallel random numbers: as easy as 1, 2, 3*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Philox {
    pub(crate) key: [u32; 2],
}

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

impl Philox {
    /// The generator of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32] }
    }

    /// The block of four words at `counter`.
    pub const fn block(&self, counter: [u32; 4]) -> [u32; 4] {
        let (mut c, mut key) = (counter, self.key);
        let mut round = 0;
        while round < 10 {
            let a = MULTIPLIERS[0] * c[0] as u64;
            let b = MULTIPLIERS[1] * c[2] as u64;
            c = [(b >> 32) as u32 ^ c[1] ^ key[0], b as u32, (a >> 32) as u32 ^ c[3] ^ key[1], a as u32];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
            round += 1;
        }
        c
    }

    /// Number `index` of stream `stream`, uniform in `[0, 1)` with 24 bits.
    pub const fn uniform(&self, stream: u32, index: u64) -> f32 {
        let block = self.block([(index / 4) as u32, ((index / 4) >> 32) as u32, stream, 0]);
        (block[(index % 4) as usize] >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Number `index` of stream `stream`, normal with mean 0 and variance 1 (Box & Muller 1958).
    pub fn normal(&self, stream: u32, index: u64) -> f32 {
        let u = self.uniform(stream, 2 * index);
        let v = self.uniform(stream, 2 * index + 1);
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f32::consts::TAU * v).cos()
    }
}

#[cfg(test)]
mod tests;
