// loss[0] = sum w ((1 - t) x + (1 + (p - 1) t) softplus(-x)) / loss[1], loss[1] = sum w for a mean, 1 for a sum.
// Twin: bce_with_logits_cpu.rs. Moves 12 bytes a row.
// One workgroup: invocations stride over the rows, invocation 0 adds the invocations in order.

struct Params {
    n: u32,
    mean: u32,
    pos_weight: f32,
    pad: u32,
}

const WG = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<f32>;
@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read_write> loss: array<f32>;

var<workgroup> sums: array<vec2f, WG>;

fn softplus(x: f32) -> f32 {
    return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
    var sum = vec2f();
    for (var i = lane; i < params.n; i += WG) {
        let x = logits[i];
        let t = targets[i];
        let l = (1.0 - t) * x + (1.0 + (params.pos_weight - 1.0) * t) * softplus(-x);
        sum += vec2f(weights[i] * l, weights[i]);
    }
    sums[lane] = sum;
    workgroupBarrier();
    if lane == 0u {
        for (var other = 1u; other < WG; other += 1u) {
            sum += sums[other];
        }
        let divisor = select(1.0, sum.y, params.mean == 1u);
        loss[0] = sum.x / divisor;
        loss[1] = divisor;
    }
}
