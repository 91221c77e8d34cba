// y = act((x - mean) inv_std weight + bias), channel by channel, with the statistics of the row's group.
// Twin: `run` in batch_norm_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

struct Params {
    n_rows: u32,
    n_channels: u32,
    n_groups: u32,
    group_rows: u32,
    part_rows: u32,
    group_parts: u32,
    eps: f32,
    momentum: f32,
}

override WG: u32 = 64u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

// As computed in and as stored: src/stored_types.rs.
alias V = f32;
alias U = u32;
alias X = V;
fn load_x(v: X) -> V { return v; }
fn store_x(v: V) -> X { return v; }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read> stats: array<V>;
@group(0) @binding(3) var<storage, read> weight: array<V>;
@group(0) @binding(4) var<storage, read> bias: array<V>;
@group(0) @binding(5) var<storage, read_write> y: array<X>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: V, y: V) -> V {
    return select(y, v, (bitcast<U>(v) & U(0x7FFFFFFFu)) > U(0x7F800000u));
}

fn act(v: V) -> V {
    switch ACTIVATION {
        case 1u: { return select(v, V(0.0), v < V(0.0)); }
        case 2u: { return select(v, ALPHA * (exp(min(v, V(0.0)) / ALPHA) - 1.0), v < V(0.0)); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, V(-87.0), V(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, V(-10.0), V(10.0)))); }
        default: { return v; }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    let channel = i % params.n_channels;
    let at = 2u * (i / params.n_channels / params.group_rows) * params.n_channels + channel;
    y[i] = store_x(act((load_x(x[i]) - stats[at]) * (stats[at + params.n_channels] * weight[channel]) + bias[channel]));
}
