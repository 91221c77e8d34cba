// rows[i] = order(state.batch * stride + offset + first + i), weights[i] = 1; beyond the last row, the batch's rows again, with weight 0, or row 0 if the batch has none or
// the order is damaged.
// Twin: batch_rows_cpu.rs. Moves 8 bytes a row.

fn mix(value: u32, key: u32) -> u32 {
    var x = value ^ key;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13u;
    x *= 0xC2B2AE35u;
    return x ^ (x >> 16u);
}

fn feistel(position: u32, bits: u32) -> u32 {
    let lo_bits = bits / 2u;
    let lo_mask = (1u << lo_bits) - 1u;
    let hi_mask = 0xFFFFFFFFu >> (32u - (bits - lo_bits));
    var lo = position & lo_mask;
    var hi = position >> lo_bits;
    for (var i = 0u; i < 8u; i += 2u) {
        hi ^= mix(lo, order[8u + i]) & hi_mask;
        lo ^= mix(hi, order[9u + i]) & lo_mask;
    }
    return (hi << lo_bits) | lo;
}

// The row at `position`, which is below `n_rows`; the invalid row n_rows if the order is damaged.
fn row_at(position: u32, n_rows: u32) -> u32 {
    let n_rounds = order[2];
    if n_rounds == 0u {
        return position;
    }
    let bits = max(2u, 32u - countLeadingZeros(n_rows - 1u));
    if n_rounds != 8u || order[1] != bits {
        return n_rows;
    }
    // The walk visits each value from n_rows up to 2^bits at most once. Their number is exact even for 32 bits, since it wraps.
    let n_beyond = select(1u << (bits & 31u), 0u, bits == 32u) - n_rows;
    var row = feistel(position, bits);
    for (var i = 0u; i < n_beyond && row >= n_rows; i += 1u) {
        row = feistel(row, bits);
    }
    return row;
}

fn element(i: u32) {
    if i >= arrayLength(&rows) {
        return;
    }
    let n_rows = order[0];
    let start = state[0] * order[3] + order[4];
    let place = params.first + i;
    var position = start + place;
    let is_row = position < n_rows;
    if !is_row && start < n_rows {
        position = start + place % (n_rows - start);
    }
    var row = n_rows;
    if position < n_rows {
        row = row_at(position, n_rows);
    }
    rows[i] = select(0u, row, row < n_rows);
    weights[i] = select(0.0, 1.0, is_row && row < n_rows);
}
