// p -= lr decay p + lr factor update[run, ..], a run a dispatch; nothing where the step is skipped.
// Twin: muon_cpu.rs. Moves 12 bytes a parameter.

struct Params {
    start: u32,
    run: u32,
    len: u32,
    pad0: u32,
    factor: f32,
    weight_decay: f32,
    pad1: u32,
    pad2: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> hyper: Params;
@group(0) @binding(1) var<storage, read> update: array<f32>;
@group(0) @binding(2) var<storage, read> lr_table: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(3) var<storage, read> state: array<u32>;
@group(0) @binding(4) var<storage, read_write> params: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= hyper.len || state[2] != 0u {
        return;
    }
    let lr = lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let p = params[hyper.start + i];
    params[hyper.start + i] = p - lr * hyper.weight_decay * p - lr * hyper.factor * update[hyper.run * hyper.len + i];
}
