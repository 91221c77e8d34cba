//! Comparison of sixteen bytes at a time with one byte.

pub(super) const BLOCK_LEN: usize = 16;

/// Sixteen bytes of text.
#[derive(Clone, Copy)]
pub(super) struct Block(imp::Lanes);

impl Block {
    #[inline(always)]
    pub(super) fn load(bytes: &[u8; BLOCK_LEN]) -> Self {
        Self(imp::load(bytes))
    }

    /// A bit mask of the bytes that equal `byte`; the lowest bit stands for the first byte.
    #[inline(always)]
    pub(super) fn equals(self, byte: u8) -> u32 {
        imp::equals(self.0, byte)
    }
}

/// SSE2, which every x86-64 has.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the compiler asks for it even where the instructions are part of the architecture")]
mod imp {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set1_epi8};

    pub(super) type Lanes = __m128i;

    #[inline(always)]
    pub(super) fn load(bytes: &[u8; 16]) -> Lanes {
        bytemuck::cast(*bytes)
    }

    #[inline(always)]
    pub(super) fn equals(lanes: Lanes, byte: u8) -> u32 {
        // SAFETY: these work on values, not on memory, and ask only for SSE2, without which there is no x86-64.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(lanes, _mm_set1_epi8(byte as i8))) as u32 }
    }
}

#[cfg(not(target_arch = "x86_64"))]
use plain as imp;

/// The portable version: two words with one byte per lane.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    pub(super) type Lanes = [u64; 2];

    const LOW_SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;

    #[inline(always)]
    pub(super) fn load(bytes: &[u8; 16]) -> Lanes {
        // Little-endian byte order on any machine.
        bytemuck::cast::<_, [u64; 2]>(*bytes).map(u64::from_le)
    }

    #[inline(always)]
    pub(super) fn equals(lanes: Lanes, byte: u8) -> u32 {
        let [low, high] = lanes.map(|word| zero_bytes(word ^ (u64::from(byte) * 0x0101_0101_0101_0101)));
        low | high << 8
    }

    /// A bit for each byte that is zero.
    #[inline(always)]
    fn zero_bytes(word: u64) -> u32 {
        let high_bits = !(((word & LOW_SEVEN) + LOW_SEVEN) | word | LOW_SEVEN);
        // Gathers the high bit of each byte in the top byte: each product sets a different bit.
        ((high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, plain};

    #[test]
    fn both_ways_find_the_same_bytes() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let bytes: [u8; 16] = std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 60) as u8 * 17
            });
            for byte in [0, 17, 0x88, 0xff, b','] {
                let expected = bytes.iter().rev().fold(0, |bits, &b| bits << 1 | u32::from(b == byte));
                assert_eq!(Block::load(&bytes).equals(byte), expected, "{bytes:?}");
                assert_eq!(plain::equals(plain::load(&bytes), byte), expected, "{bytes:?}");
            }
        }
    }
}
