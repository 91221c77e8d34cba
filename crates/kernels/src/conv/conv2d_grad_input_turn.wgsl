// turned[u, v, o, c] = weight[o, u, v, c]: the weights as the gradient of the input sums over them.
// Twin: `turn_weights` in conv2d_grad_input_cpu.rs. Moves 8 bytes an element, 6 from 16 bits.

struct Params {
    n_out: u32,
    n_taps: u32,
    n_channels: u32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weight: array<WEIGHT>;
@group(0) @binding(2) var<storage, read_write> turned: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&turned) {
        return;
    }
    let channel = i % params.n_channels;
    let out_channel = i / params.n_channels % params.n_out;
    let tap = i / params.n_channels / params.n_out;
    turned[i] = load_weight((out_channel * params.n_taps + tap) * params.n_channels + channel);
}
