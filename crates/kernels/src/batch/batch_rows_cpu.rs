use crate::sizes::in_u32;

pub(crate) fn run(first: u32, order: &[u32], state: &[u32], rows: &mut [u32], weights: &mut [f32]) {
    let (n_rows, stride, offset) = (order[0], order[3], order[4]);
    let start = state[0].wrapping_mul(stride).wrapping_add(offset);
    // The rows of a short last batch, which its padding repeats.
    let n_left = n_rows.saturating_sub(start);
    for (i, (row, weight)) in rows.iter_mut().zip(weights).enumerate() {
        let place = first.wrapping_add(in_u32(i));
        let position = start.wrapping_add(place);
        let (position, weighs) = match n_left {
            _ if position < n_rows => (Some(position), 1.0),
            0 => (None, 0.0),
            _ => (Some(start + place % n_left), 0.0),
        };
        let found = position.and_then(|position| row_at(position, order));
        (*row, *weight) = found.map_or((0, 0.0), |row| (row, weighs));
    }
}

/// The row at `position`, which is below the number of rows; `None` if the order is damaged.
fn row_at(position: u32, order: &[u32]) -> Option<u32> {
    let (n_rows, n_rounds, keys) = (order[0], order[2], &order[8..16]);
    let bits = (u32::BITS - (n_rows - 1).leading_zeros()).max(2);
    match n_rounds {
        0 => return Some(position),
        8 if order[1] == bits => {}
        _ => return None,
    }
    // The walk visits each value from n_rows up to 2^bits at most once.
    let n_beyond = (1_u64 << bits) - u64::from(n_rows);
    let mut row = feistel(position, bits, keys);
    for _ in 0..n_beyond {
        if row < n_rows {
            break;
        }
        row = feistel(row, bits, keys);
    }
    (row < n_rows).then_some(row)
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
