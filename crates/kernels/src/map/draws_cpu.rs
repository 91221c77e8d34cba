//! The twin of the part that computes random numbers.

use crate::core::vectorised::vectorised;

/// Two rounds of xorshift and multiplication, with a key before each.
#[inline(always)]
pub(super) const fn hash(index: u32, a: u32, b: u32) -> u32 {
    let mut h = index ^ a;
    h = (h ^ (h >> 16)).wrapping_mul(0x21F0_AAAD);
    h = (h ^ (h >> 15)).wrapping_add(b).wrapping_mul(0xD35A_2D97);
    h ^ (h >> 15)
}

/// The numbers from index `start` on, uniform in `[0, 1)` with 24 bits.
pub(super) fn fill(keys: [u32; 2], start: u32, y: &mut [f32]) {
    vectorised(
        // By value, so that stores cannot change the keys and the loop vectorises.
        #[inline(always)]
        move || {
            let [a, b] = keys;
            for (i, y) in (0_u32..).zip(y.iter_mut()) {
                // 24 bits, so that the conversion of signed numbers, which vectors have, is the same.
                let bits = hash(start.wrapping_add(i), a, b) >> 8;
                *y = bits.cast_signed() as f32 * (1.0 / 16_777_216.0);
            }
        },
    );
}
