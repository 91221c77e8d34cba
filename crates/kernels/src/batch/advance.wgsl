// batch += 1, step += 1, n_skipped += skip, skip = 0.
// Twin: advance_cpu.rs. Moves 32 bytes.

// batch, step, skip, n_skipped.
@group(0) @binding(0) var<storage, read_write> state: array<u32>;

@compute @workgroup_size(1)
fn main() {
    state[0] += 1u;
    state[1] += 1u;
    state[3] += select(0u, 1u, state[2] != 0u);
    state[2] = 0u;
}
