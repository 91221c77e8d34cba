// g *= 1 / scale; if one of them is not finite, state.skip = 1, and scaler.verdict = 2 instead of 1. Does nothing if no step is due.
// Twin: grad_scaler_cpu.rs. Moves 8 bytes a gradient.
// Ladder: a reduction in several passes and a kernel that divides -> one kernel, whose invocations set the flag, which is rarely needed.
// `state` is (batch, step, skip, n_skipped).

// For a power of two, by its bits, so that it is exact on any adapter.
fn inverse(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let is_power_of_two = (bits & 0x807FFFFFu) == 0u && bits > 0u && bits < 0x7F000000u;
    return select(1.0 / x, bitcast<f32>(0x7F000000u - bits), is_power_of_two);
}

// By the bits of the exponent, since a shader compiler may assume that all numbers are finite.
fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7F800000u) != 0x7F800000u;
}

fn element(i: u32) {
    if i >= arrayLength(&grads) || atomicLoad(&state[2]) == 2u {
        return;
    }
    if i == 0u {
        atomicMax(&scaler[0], 1u);
    }
    let is_normal = is_finite(scale[0]) && (bitcast<u32>(scale[0]) & 0x7F800000u) != 0u;
    var g = grads[i];
    if is_normal {
        g *= inverse(scale[0]);
        grads[i] = g;
    }
    if !(is_normal && is_finite(g)) {
        atomicMax(&scaler[0], 2u);
        atomicStore(&state[2], 1u);
    }
}
