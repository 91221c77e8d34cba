// grad_x[o, j, i] = sum of grad_y[o, k, i] over the k with index[o, k, i] = j, in order.
// Twin: gather_cpu.rs. An invocation reads all n indices of its line, so it is made for few indices a line, as labels are.

override WG: u32 = 64u;

@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read> index: array<u32>;
@group(0) @binding(3) var<storage, read_write> grad_x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&grad_x) {
        return;
    }
    let own = i / params.n_inner % params.n_x;
    let start = i / params.n_inner / params.n_x * params.n * params.n_inner + i % params.n_inner;
    var sum = 0.0;
    for (var k = 0u; k < params.n; k += 1u) {
        let at = start + k * params.n_inner;
        if named(at) == own {
            sum += grad_y[at];
        }
    }
    grad_x[i] = sum;
}
