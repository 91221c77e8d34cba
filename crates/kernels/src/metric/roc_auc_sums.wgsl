// sums[run] = the sum of 64 elements of x. Level by level up to one sum, then roc_auc_scan.wgsl level by level down.
// Twin: roc_auc_cpu.rs. Moves 8 bytes an element.

struct Params {
    n: u32,
    n_runs: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;
const RUN = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> sums: array<vec2f>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let run = (group.y * groups.x + group.x) * WG + lane;
    if run >= params.n_runs {
        return;
    }
    var sum = vec2f();
    for (var i = run * RUN; i < min(run * RUN + RUN, params.n); i += 1u) {
        sum += x[i];
    }
    sums[run] = sum;
}
