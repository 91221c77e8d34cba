// Part: the entry points of a module over rows. Expects `params.n_rows`; the type Sums; `scan` and `store` for every `stride`-th element of a row, starting
// at `first`; and join_group.wgsl.
// row_an_invocation: one invocation per row, without barriers, for narrow rows and software adapters. row_a_group: one workgroup per row, so that loads are coalesced.

@compute @workgroup_size(WG)
fn row_an_invocation(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let row = (group.y * groups.x + group.x) * WG + invocation;
    if row < params.n_rows {
        store(row, scan(row, 0u, 1u), 0u, 1u);
    }
}

@compute @workgroup_size(WG)
fn row_a_group(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let row = group.y * groups.x + group.x;
    if row >= params.n_rows {
        return;
    }
    store(row, join_group(scan(row, invocation, WG), invocation), invocation, WG);
}
