// found_inf > 0: scale *= backoff, n_good = 0. Else n_good += 1, and at the interval scale *= growth, if finite, and n_good = 0.
// Twin: src/cpu/grad_scaler.rs. Moves 20 bytes.

struct Params {
    growth_factor: f32,
    backoff_factor: f32,
    growth_interval: u32,
    pad: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> found_inf: array<f32>;
@group(0) @binding(2) var<storage, read_write> scale: array<f32>;
@group(0) @binding(3) var<storage, read_write> n_good: array<u32>;

@compute @workgroup_size(1)
fn main() {
    if found_inf[0] > 0.0 {
        scale[0] *= params.backoff_factor;
        n_good[0] = 0u;
        return;
    }
    let n = n_good[0] + 1u;
    if n != params.growth_interval {
        n_good[0] = n;
        return;
    }
    let grown = scale[0] * params.growth_factor;
    if (bitcast<u32>(grown) & 0x7F800000u) != 0x7F800000u {
        scale[0] = grown;
    }
    n_good[0] = 0u;
}
