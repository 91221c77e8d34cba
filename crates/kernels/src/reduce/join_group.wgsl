// Part: a reduction over a workgroup. Expects the type Sums and `join` of two of them.

override WG: u32 = 64u;

var<workgroup> partials: array<Sums, WG>;

// The join of what all lanes have; all of them call it.
fn join_group(own: Sums, lane: u32) -> Sums {
    partials[lane] = own;
    workgroupBarrier();
    for (var reach = WG / 2u; reach > 0u; reach /= 2u) {
        if lane < reach {
            partials[lane] = join(partials[lane], partials[lane + reach]);
        }
        workgroupBarrier();
    }
    return partials[0];
}
