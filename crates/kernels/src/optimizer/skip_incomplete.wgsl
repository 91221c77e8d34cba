// state.skip = 2 unless the batch is the last of its group or of the epoch.
// Twin: skip_incomplete_cpu.rs. Moves 8 bytes.
// `state` is (batch, step, skip, n_skipped).

@compute @workgroup_size(1)
fn main() {
    let count = state[0] + 1u;
    if count % params.every != 0u && count != params.n_batches {
        state[2] = 2u;
    }
}
