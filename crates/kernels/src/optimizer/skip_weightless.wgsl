// sum = weight in the first batch of a group, sum + weight else; in the last, state.skip = 2 if the sum is 0.
// Twin: skip_weightless_cpu.rs. Moves 20 bytes.
// `state` is (batch, step, skip, n_skipped).

@compute @workgroup_size(1)
fn main() {
    let at = state[0] % params.every;
    let is_last = at + 1u == params.every || state[0] + 1u == params.n_batches;
    var total = weight[0];
    if at > 0u {
        total += sum[0];
    }
    sum[0] = total;
    if is_last && total == 0.0 {
        state[2] = 2u;
    }
}
