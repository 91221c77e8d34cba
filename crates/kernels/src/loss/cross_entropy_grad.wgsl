// grad_logits[r,c] = grad_loss w (q p[c] - (1 - e) v[t] [c = t] - e / n_classes v[c]) / loss[1], (m, log sum exp(x - m), q) = rows[r],
// p[c] = exp(x[c] - m - log sum exp(x - m)).
// Twin: cross_entropy_cpu.rs. Moves 8 bytes an element and 24 a row.

struct Params {
    n_rows: u32,
    n_classes: u32,
    mean: u32,
    ignores: u32,
    ignored: u32,
    smoothing: f32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;
override CLASS_WEIGHTS: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_loss: array<f32>;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<u32>;
@group(0) @binding(4) var<storage, read> weights: array<f32>;
@group(0) @binding(5) var<storage, read> class_weights: array<f32>;
@group(0) @binding(6) var<storage, read> loss: array<f32>;
@group(0) @binding(7) var<storage, read> rows: array<vec4f>;
@group(0) @binding(8) var<storage, read_write> grad_logits: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_rows * params.n_classes {
        return;
    }
    let row = i / params.n_classes;
    let col = i % params.n_classes;
    if params.ignores == 1u && targets[row] == params.ignored {
        grad_logits[i] = 0.0;
        return;
    }
    let of_row = rows[row];
    let v = class_weight(col);
    var wanted = params.smoothing / f32(params.n_classes) * v;
    if col == targets[row] {
        wanted += (1.0 - params.smoothing) * v;
    }
    grad_logits[i] = grad_loss[0] * weights[row] * (of_row.z * exp(logits[i] - of_row.x - of_row.y) - wanted) / loss[1];
}
