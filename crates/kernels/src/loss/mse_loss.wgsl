// loss[0] = sum_r w[r] sum_c (x[r,c] - t[r,c])^2 / loss[1], loss[1] = n_cols sum w for a mean, 1 for a sum.
// Twin: mse_loss_cpu.rs. Moves 8 bytes an element.
// One workgroup: invocations stride over the rows, invocation 0 adds the invocations in order.

struct Params {
    n_rows: u32,
    n_cols: u32,
    mean: u32,
    pad: u32,
}

const WG = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<f32>;
@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read_write> loss: array<f32>;

var<workgroup> sums: array<vec2f, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
    var sum = vec2f();
    for (var row = lane; row < params.n_rows; row += WG) {
        var squares = 0.0;
        for (var i = row * params.n_cols; i < (row + 1u) * params.n_cols; i += 1u) {
            let off = x[i] - targets[i];
            squares += off * off;
        }
        sum += vec2f(weights[row] * squares, weights[row] * f32(params.n_cols));
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
