//! The twin of the part that computes random numbers.

use crate::random::draws::Draws;

/// Two rounds of xorshift and multiplication, with a key before each.
#[inline(always)]
pub(crate) const fn hash(index: u32, a: u32, b: u32) -> u32 {
    let mut h = index ^ a;
    h = (h ^ (h >> 16)).wrapping_mul(0x21F0_AAAD);
    h = (h ^ (h >> 15)).wrapping_add(b).wrapping_mul(0xD35A_2D97);
    h ^ (h >> 15)
}

const ONE_BIT: f32 = 1.0 / 16_777_216.0;

/// The random numbers of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    keys: [u32; 2],
    first: u32,
}

impl Drawn {
    pub(crate) fn new(draws: &Draws, state: &[u32]) -> Self {
        let ([a, b], step) = (draws.seeds(), state[1]);
        Self { keys: [hash(step, a, b), hash(step, b, a)], first: draws.first }
    }

    /// Number `i`, uniform in `[0, 1)`. It has 24 bits, so that converting it as a signed number is the same.
    #[inline(always)]
    fn number(self, i: u32) -> f32 {
        let [a, b] = self.keys;
        (hash(self.first.wrapping_add(i), a, b) >> 8).cast_signed() as f32 * ONE_BIT
    }

    /// The numbers from `start` on.
    #[inline(always)]
    pub(crate) fn fill(self, start: u32, y: &mut [f32]) {
        for (i, y) in (0_u32..).zip(y.iter_mut()) {
            *y = self.number(start.wrapping_add(i));
        }
    }

    /// Dropout of the values from `start` on: each is 0 if its number is below `p`, else multiplied by `scale`.
    #[inline(always)]
    pub(crate) fn drop_out(self, p: f32, scale: f32, start: u32, y: &mut [f32]) {
        for (i, y) in (0_u32..).zip(y.iter_mut()) {
            let scaled = *y * scale;
            *y = if self.number(start.wrapping_add(i)) < p { 0.0 } else { scaled };
        }
    }
}
