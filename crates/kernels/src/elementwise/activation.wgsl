// y = act(x), element by element. The codes are those of `Activation::code`.
// Twin: activation_cpu.rs. Moves 8 bytes an element.

override WG: u32 = 64u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: f32, y: f32) -> f32 {
    return select(y, v, (bitcast<u32>(v) & 0x7FFFFFFFu) > 0x7F800000u);
}

fn sigmoid(v: f32) -> f32 {
    return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, -87.0, 87.0))));
}

// Beyond 10 the result is 1 in f32, and some drivers' exp overflows inside tanh.
fn safe_tanh(v: f32) -> f32 {
    return or_nan(v, tanh(clamp(v, -10.0, 10.0)));
}

// Abramowitz & Stegun 7.1.26, within 1.5e-7.
fn erf(v: f32) -> f32 {
    let a = abs(v);
    let t = 1.0 / (1.0 + 0.3275911 * a);
    let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return sign(v) * (1.0 - p * exp(-min(a * a, 87.0)));
}

fn act(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(v, 0.0, v < 0.0); }
        case 2u: { return select(v, ALPHA * (exp(min(v, 0.0) / ALPHA) - 1.0), v < 0.0); }
        case 3u: { return sigmoid(v); }
        case 4u: { return safe_tanh(v); }
        case 5u: { return 0.5 * v * (1.0 + erf(v * 0.70710678)); }
        case 6u: { return 0.5 * v * (1.0 + safe_tanh(0.79788456 * (v + 0.044715 * v * v * v))); }
        case 7u: { return v * sigmoid(v); }
        default: { return v; }
    }
}

@compute @workgroup_size(WG)
fn activate(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&y) {
        y[i] = act(x[i]);
    }
}
