// state.batch += 1, state.step += 1.
// Twin: src/cpu/advance.rs. Moves 16 bytes.

@group(0) @binding(0) var<storage, read_write> state: array<u32>;

@compute @workgroup_size(1)
fn main() {
    state[0] += 1u;
    state[1] += 1u;
}
