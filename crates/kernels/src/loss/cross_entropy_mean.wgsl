// loss[0] = sum_r losses[r] / loss[1], loss[1] = sum_r rows[r].w for a mean, 1 for a sum.
// Twin: cross_entropy_cpu.rs. Moves 20 bytes a row.
// One workgroup: invocations stride over the rows, invocation 0 adds the invocations in order.

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

const WG = 256u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4f>;
@group(0) @binding(2) var<storage, read> losses: array<f32>;
@group(0) @binding(3) var<storage, read_write> loss: array<f32>;

var<workgroup> partials: array<vec2f, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
    var sum = vec2f();
    for (var row = lane; row < params.n_rows; row += WG) {
        sum += vec2f(losses[row], rows[row].w);
    }
    partials[lane] = sum;
    workgroupBarrier();
    if lane == 0u {
        for (var other = 1u; other < WG; other += 1u) {
            sum += partials[other];
        }
        let divisor = select(1.0, sum.y, params.mean == 1u);
        loss[0] = sum.x / divisor;
        loss[1] = divisor;
    }
}
