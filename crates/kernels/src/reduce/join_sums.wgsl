// Part: `join` of two sums, for row_entries.wgsl. Expects the type Sums.

fn join(a: Sums, b: Sums) -> Sums {
    return a + b;
}
