// x[i] = the sum of x up to and with i, given such sums of its runs of 64.
// Twin: roc_auc_cpu.rs. Moves 16 bytes an element.

struct Params {
    n: u32,
    n_runs: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;
const RUN = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> x: array<vec2f>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let run = (group.y * groups.x + group.x) * WG + lane;
    if run >= params.n_runs {
        return;
    }
    var sum = vec2f();
    if run > 0u {
        sum = sums[run - 1u];
    }
    for (var i = run * RUN; i < min(run * RUN + RUN, params.n); i += 1u) {
        sum += x[i];
        x[i] = sum;
    }
}
