use crate::sizes::in_u32;
use crate::vectorised::{inlined, vectorised};

/// Rows whose places are computed together.
const BLOCK_LEN: usize = 256;

pub(crate) fn run(first: u32, order: &[u32], state: &[u32], rows: &mut [u32], weights: &mut [f32]) {
    let (n_rows, stride, offset) = (order[0], order[3], order[4]);
    let start = state[0].wrapping_mul(stride).wrapping_add(offset);
    // The rows of a short last batch, which its padding repeats.
    let n_left = n_rows.saturating_sub(start);
    let blocks = rows.chunks_mut(BLOCK_LEN).zip(weights.chunks_mut(BLOCK_LEN));
    for (first, (rows, weights)) in (first..).step_by(BLOCK_LEN).zip(blocks) {
        for (i, (row, weight)) in rows.iter_mut().zip(&mut *weights).enumerate() {
            let place = first.wrapping_add(in_u32(i));
            let position = start.wrapping_add(place);
            (*row, *weight) = match n_left {
                _ if position < n_rows => (position, 1.0),
                0 => (0, 0.0),
                _ => (start + place % n_left, 0.0),
            };
        }
        if n_rows == 0 || !rows_at(rows, order) {
            rows.fill(0);
            weights.fill(0.0);
        } else if n_left == 0 {
            rows.iter_mut().zip(weights).filter(|(_, weight)| **weight == 0.0).for_each(|(row, _)| *row = 0);
        }
    }
}

/// Replaces positions, which are below the number of rows, by the rows at them. Returns false if the order is damaged.
fn rows_at(positions: &mut [u32], order: &[u32]) -> bool {
    let (n_rows, n_rounds, keys) = (order[0], order[2], &order[8..16]);
    let bits = (u32::BITS - (n_rows - 1).leading_zeros()).max(2);
    match n_rounds {
        0 => return true,
        8 if order[1] == bits => {}
        _ => return false,
    }
    let walk = |rows: &mut [u32]| {
        vectorised(inlined!(|| rows.iter_mut().for_each(|row| *row = feistel(*row, bits, keys))));
    };
    // Those that are still beyond the last row, and their indices.
    let (mut walking, mut places) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    let mut n = positions.len();
    walking[..n].copy_from_slice(positions);
    places.iter_mut().enumerate().for_each(|(i, place)| *place = i);
    // A walk visits each value from n_rows up to 2^bits at most once.
    for _ in u64::from(n_rows)..=1 << bits {
        walk(&mut walking[..n]);
        let mut n_beyond = 0;
        for i in 0..n {
            let (row, place) = (walking[i], places[i]);
            positions[place] = row;
            (walking[n_beyond], places[n_beyond]) = (row, place);
            n_beyond += usize::from(row >= n_rows);
        }
        n = n_beyond;
        if n == 0 {
            return true;
        }
    }
    false
}

#[inline(always)]
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

#[inline(always)]
fn mix(value: u32, key: u32) -> u32 {
    let mut x = value ^ key;
    x = x.wrapping_mul(0x85EB_CA6B);
    x ^= x >> 13;
    x = x.wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}
