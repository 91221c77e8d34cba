// Part: one invocation per element. Expects `element(i: u32)`, which is also called for some `i` beyond the last element.

const ELEMENTWISE_WG = 64u;

@compute @workgroup_size(ELEMENTWISE_WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    element((group.y * groups.x + group.x) * ELEMENTWISE_WG + invocation);
}
