// The step of sgd.wgsl with a separate rate and decay for each 64 parameters; no step if the factor of the rate is negative.
// Twin: parameter_groups_cpu.rs. Moves 20 bytes a parameter. All parameters of a workgroup are in one group, so control flow is uniform.

const GROUP_LEN = 64u;

fn element(i: u32) {
    if i >= arrayLength(&values) {
        return;
    }
    // The factor of the rate, and the decay.
    let own = groups_of[i / GROUP_LEN];
    if own.x >= 0.0 {
        sgd_step(i, own.x, own.y);
    }
}
