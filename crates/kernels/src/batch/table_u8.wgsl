// Part: a table of bytes, four per word, the first in the lowest bits.

fn value_at(at: u32) -> V { return V(extractBits(table[at / 4u], 8u * (at % 4u), 8u)); }
