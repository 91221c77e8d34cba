// rows[i] = order(state.batch * stride + offset + first + i), weights[i] = 1; beyond the last row: 0 and 0.
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

fn element(i: u32) {
    if i >= arrayLength(&rows) {
        return;
    }
    let n_rows = order[0];
    let position = state[0] * order[3] + order[4] + params.first + i;
    if position >= n_rows {
        rows[i] = 0u;
        weights[i] = 0.0;
        return;
    }
    var row = position;
    if order[2] != 0u {
        row = feistel(row, order[1]);
        while row >= n_rows {
            row = feistel(row, order[1]);
        }
    }
    rows[i] = row;
    weights[i] = 1.0;
}
