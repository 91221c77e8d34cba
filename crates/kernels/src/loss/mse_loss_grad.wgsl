// grad_x = grad_loss 2 w (x - t) / loss[1].
// Twin: mse_loss_cpu.rs. Moves 12 bytes an element.

struct Params {
    n_rows: u32,
    n_cols: u32,
    mean: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_loss: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<f32>;
@group(0) @binding(4) var<storage, read> weights: array<f32>;
@group(0) @binding(5) var<storage, read> loss: array<f32>;
@group(0) @binding(6) var<storage, read_write> grad_x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < params.n_rows * params.n_cols {
        grad_x[i] = grad_loss[0] * 2.0 * weights[i / params.n_cols] * (x[i] - targets[i]) / loss[1];
    }
}
