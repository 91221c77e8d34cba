// A chain of up to four steps done to each element: y = step3(step2(step1(step0(x)))). What each step is are constants, so the driver
// compiles the chain alone: the codes are those of `ElementwiseStep::code` and `Activation::code`, and 0 is no step.
// Twin: elementwise_cpu.rs. Moves 8 bytes an element, and 4 for each operand; half of that in 16 bits.

override WG: u32 = 64u;
override STEP0: u32 = 0u;
override ACTIVATION0: u32 = 0u;
override ALPHA0: f32 = 1.0;
override OPERAND0: u32 = 0u;
override STEP1: u32 = 0u;
override ACTIVATION1: u32 = 0u;
override ALPHA1: f32 = 1.0;
override OPERAND1: u32 = 0u;
override STEP2: u32 = 0u;
override ACTIVATION2: u32 = 0u;
override ALPHA2: f32 = 1.0;
override OPERAND2: u32 = 0u;
override STEP3: u32 = 0u;
override ACTIVATION3: u32 = 0u;
override ALPHA3: f32 = 1.0;
override OPERAND3: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> operand0: array<A>;
@group(0) @binding(2) var<storage, read> operand1: array<B>;
@group(0) @binding(3) var<storage, read> operand2: array<C>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

fn act(activation: u32, alpha: f32, v: V) -> V {
    switch activation {
        case 1u: { return select(v, V(0.0), v < V(0.0)); }
        case 2u: { return select(v, alpha * (exp(min(v, V(0.0)) / alpha) - 1.0), v < V(0.0)); }
        case 3u: { return sigmoid(v); }
        case 4u: { return safe_tanh(v); }
        case 5u: { return 0.5 * v * (1.0 + erf(v * 0.70710678)); }
        case 6u: { return 0.5 * v * (1.0 + safe_tanh(0.79788456 * (v + 0.044715 * v * v * v))); }
        case 7u: { return v * sigmoid(v); }
        default: { return v; }
    }
}

fn slope(activation: u32, alpha: f32, v: V) -> V {
    switch activation {
        case 1u: { return select(V(0.0), V(1.0), v > V(0.0)); }
        case 2u: { return exp(min(v, V(0.0)) / alpha); }
        case 3u: { let s = sigmoid(v); return s * (1.0 - s); }
        case 4u: { let t = safe_tanh(v); return 1.0 - t * t; }
        case 5u: { return 0.5 * (1.0 + erf(v * 0.70710678)) + v * 0.39894228 * exp(-min(0.5 * v * v, V(87.0))); }
        case 6u: { return gelu_tanh_slope(v); }
        case 7u: { let s = sigmoid(v); return s * (1.0 + v * (1.0 - s)); }
        default: { return V(1.0); }
    }
}

fn slope_from_output(activation: u32, alpha: f32, v: V) -> V {
    switch activation {
        case 1u: { return select(V(0.0), V(1.0), v > V(0.0)); }
        case 2u: { return select(v / alpha + 1.0, V(1.0), v > V(0.0)); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return V(1.0); }
    }
}

fn operand(which: u32, i: u32) -> V {
    switch which {
        case 0u: { return load_a(operand0[i]); }
        case 1u: { return load_b(operand1[i]); }
        default: { return load_c(operand2[i]); }
    }
}

fn take(kind: u32, activation: u32, alpha: f32, which: u32, i: u32, v: V) -> V {
    switch kind {
        case 1u: { return act(activation, alpha, v); }
        case 2u: { return v + operand(which, i); }
        case 3u: { return v * operand(which, i); }
        case 4u: { return v * slope(activation, alpha, operand(which, i)); }
        case 5u: { return v * slope_from_output(activation, alpha, operand(which, i)); }
        default: { return v; }
    }
}

fn steps(i: u32, first: V) -> V {
    var v = first;
    v = take(STEP0, ACTIVATION0, ALPHA0, OPERAND0, i, v);
    v = take(STEP1, ACTIVATION1, ALPHA1, OPERAND1, i, v);
    v = take(STEP2, ACTIVATION2, ALPHA2, OPERAND2, i, v);
    return take(STEP3, ACTIVATION3, ALPHA3, OPERAND3, i, v);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&y) {
        y[i] = store_y(steps(i, load_x(x[i])));
    }
}

// From what is in `y` already; `x` is not read.
@compute @workgroup_size(WG)
fn in_place(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < arrayLength(&y) {
        y[i] = store_y(steps(i, load_y(y[i])));
    }
}
