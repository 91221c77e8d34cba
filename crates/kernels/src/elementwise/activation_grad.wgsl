// grad_x = grad_y * act'(x). `activation_grad` takes the derivative at the input, `output_grad` from the output.
// Twin: activation_cpu.rs. Moves 12 bytes an element.

override WG: u32 = 64u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

@group(0) @binding(0) var<storage, read> grad_y: array<f32>;
@group(0) @binding(1) var<storage, read> saved: array<f32>;
@group(0) @binding(2) var<storage, read_write> grad_x: array<f32>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: f32, y: f32) -> f32 {
    return select(y, v, (bitcast<u32>(v) & 0x7FFFFFFFu) > 0x7F800000u);
}

fn sigmoid(v: f32) -> f32 {
    return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, -87.0, 87.0))));
}

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

fn gelu_tanh_slope(v: f32) -> f32 {
    let t = safe_tanh(0.79788456 * (v + 0.044715 * v * v * v));
    return 0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * 0.79788456 * (1.0 + 0.134145 * v * v);
}

fn slope(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(0.0, 1.0, v > 0.0); }
        case 2u: { return exp(min(v, 0.0) / ALPHA); }
        case 3u: { let s = sigmoid(v); return s * (1.0 - s); }
        case 4u: { let t = safe_tanh(v); return 1.0 - t * t; }
        case 5u: { return 0.5 * (1.0 + erf(v * 0.70710678)) + v * 0.39894228 * exp(-min(0.5 * v * v, 87.0)); }
        case 6u: { return gelu_tanh_slope(v); }
        case 7u: { let s = sigmoid(v); return s * (1.0 + v * (1.0 - s)); }
        default: { return 1.0; }
    }
}

fn slope_from_output(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(0.0, 1.0, v > 0.0); }
        case 2u: { return select(v / ALPHA + 1.0, 1.0, v > 0.0); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return 1.0; }
    }
}

@compute @workgroup_size(WG)
fn activation_grad(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&grad_x) {
        grad_x[i] = grad_y[i] * slope(saved[i]);
    }
}

@compute @workgroup_size(WG)
fn output_grad(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&grad_x) {
        grad_x[i] = grad_y[i] * slope_from_output(saved[i]);
    }
}
