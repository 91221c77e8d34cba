// grad_logits = grad_loss w ((1 - t) - (1 + (p - 1) t) sigmoid(-x)) / loss[1].
// Twin: bce_with_logits_cpu.rs. Moves 16 bytes a row.

struct Params {
    n: u32,
    mean: u32,
    pos_weight: f32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_loss: array<f32>;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<f32>;
@group(0) @binding(4) var<storage, read> weights: array<f32>;
@group(0) @binding(5) var<storage, read> loss: array<f32>;
@group(0) @binding(6) var<storage, read_write> grad_logits: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n {
        return;
    }
    let t = targets[i];
    let x = logits[i];
    // NaN is told by its bits, since `clamp` may drop it.
    let is_nan = (bitcast<u32>(x) & 0x7FFFFFFFu) > 0x7F800000u;
    let minus_sigmoid = select(1.0 / (1.0 + exp(clamp(x, -87.0, 87.0))), x, is_nan);
    let slope = (1.0 - t) - (1.0 + (params.pos_weight - 1.0) * t) * minus_sigmoid;
    grad_logits[i] = grad_loss[0] * weights[i] * slope / loss[1];
}
