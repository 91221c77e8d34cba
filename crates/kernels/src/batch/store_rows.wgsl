// y[state.batch * n + i, c] = x[i, c], what lies beyond the end of y left out.
// Twin: store_rows_cpu.rs. Moves 8 bytes an element.

override WG: u32 = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    // Before the product, which could wrap.
    if i >= arrayLength(&x) || state[0] > arrayLength(&y) / arrayLength(&x) {
        return;
    }
    let at = state[0] * arrayLength(&x) + i;
    if at < arrayLength(&y) {
        y[at] = x[i];
    }
}
