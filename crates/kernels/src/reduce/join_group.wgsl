// Part: a reduction over a workgroup. Expects the type Sums and `join` of two of them.

override WG: u32 = 64u;

var<workgroup> partials: array<Sums, WG>;

// Joins the values of all invocations of the workgroup, each of which must call it.
fn join_group(own: Sums, invocation: u32) -> Sums {
    partials[invocation] = own;
    workgroupBarrier();
    for (var reach = WG / 2u; reach > 0u; reach /= 2u) {
        if invocation < reach {
            partials[invocation] = join(partials[invocation], partials[invocation + reach]);
        }
        workgroupBarrier();
    }
    return partials[0];
}
