// y = x / total, and 0 where total is 0.
// Twin: share_cpu.rs. Moves 8 bytes an element.

override WG: u32 = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> total: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    let sum = total[0];
    if sum == 0.0 {
        y[i] = 0.0;
    } else {
        y[i] = x[i] / sum;
    }
}
