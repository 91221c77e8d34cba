// Part: a table of f32, with as many columns at a time as the module computes.

fn value_at(at: u32) -> V { return table[at]; }
