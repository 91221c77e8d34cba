// The step of sgd.wgsl with a rate and a decay of its own for each 64 parameters; none if the factor of the rate is below 0.
// Twin: parameter_groups_cpu.rs. Moves 20 bytes a parameter. A workgroup is of one group, so its invocations agree.

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
