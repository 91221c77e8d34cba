// Part: the entry point for narrow rows, an invocation a row. Expects `params`, WG, and `scan` and `store` of a row.

@compute @workgroup_size(WG)
fn row_a_lane(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.y * groups.x + group.x) * WG + lane;
    if row < params.n_rows {
        store(row, 0u, 1u, scan(row, 0u, 1u));
    }
}
