// batch += 1, step += 1, n_skipped += skip, skip = 0.
// Twin: advance_cpu.rs. Moves 32 bytes.

// `state` is batch, step, skip, n_skipped.
@compute @workgroup_size(1)
fn main() {
    state[0] += 1u;
    state[1] += 1u;
    state[3] += select(0u, 1u, state[2] != 0u);
    state[2] = 0u;
}
