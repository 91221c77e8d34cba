use crate::core::sizes::in_u32;

pub(crate) fn run(first: u32, order: &[u32], state: &[u32], rows: &mut [u32], weights: &mut [f32]) {
    let (n_rows, bits, n_rounds) = (order[0], order[1], order[2]);
    let (stride, offset) = (order[3], order[4]);
    let keys = &order[8..16];
    for (i, (row, weight)) in rows.iter_mut().zip(weights).enumerate() {
        let position = state[0].wrapping_mul(stride).wrapping_add(offset).wrapping_add(first).wrapping_add(in_u32(i));
        (*row, *weight) = match position < n_rows {
            false => (0, 0.0),
            true if n_rounds == 0 => (position, 1.0),
            true => (walk(position, n_rows, bits, keys), 1.0),
        };
    }
}

fn walk(position: u32, n_rows: u32, bits: u32, keys: &[u32]) -> u32 {
    let mut row = feistel(position, bits, keys);
    while row >= n_rows {
        row = feistel(row, bits, keys);
    }
    row
}

fn feistel(position: u32, bits: u32, keys: &[u32]) -> u32 {
    let lo_bits = bits / 2;
    let lo_mask = (1 << lo_bits) - 1;
    let hi_mask = u32::MAX >> (32 - (bits - lo_bits));
    let (mut lo, mut hi) = (position & lo_mask, position >> lo_bits);
    for pair in keys.chunks_exact(2) {
        hi ^= mix(lo, pair[0]) & hi_mask;
        lo ^= mix(hi, pair[1]) & lo_mask;
    }
    hi << lo_bits | lo
}

fn mix(value: u32, key: u32) -> u32 {
    let mut x = value ^ key;
    x = x.wrapping_mul(0x85EB_CA6B);
    x ^= x >> 13;
    x = x.wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}
