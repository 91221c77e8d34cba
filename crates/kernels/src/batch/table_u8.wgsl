// Part: a table of bytes, of which four share a word, the first lowest.

fn value_at(at: u32) -> V { return V(extractBits(table[at / 4u], 8u * (at % 4u), 8u)); }
