// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps), all parameters at once.
// Does nothing if the step is skipped.
// Twin: adam_cpu.rs. Moves 28 bytes a parameter.

fn element(i: u32) {
    if i < arrayLength(&values) {
        adam_step(i, 1.0, params.coupled_decay, params.decoupled_decay);
    }
}
