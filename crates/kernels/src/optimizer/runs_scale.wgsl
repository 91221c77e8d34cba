// x[start ..][.. len] *= to / max(norms[run], eps), a run a dispatch; nothing where the step is skipped.
// Twin: runs_cpu.rs. Moves 8 bytes an element.

struct Params {
    start: u32,
    run: u32,
    len: u32,
    pad0: u32,
    to: f32,
    eps: f32,
    pad1: u32,
    pad2: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> norms: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(2) var<storage, read> state: array<u32>;
@group(0) @binding(3) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < params.len && state[2] == 0u {
        // Not `max`, which may pass NaN over.
        let norm = norms[params.run];
        x[params.start + i] *= params.to / select(norm, params.eps, norm < params.eps);
    }
}
