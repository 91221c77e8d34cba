// g += decay p, u = mu u + g, p -= lr (g + mu u) with Nesterov, p -= lr u without; all parameters at once.
// Does nothing if the step is skipped.
// Twin: sgd_cpu.rs. Moves 20 bytes a parameter.

fn element(i: u32) {
    if i < arrayLength(&values) {
        sgd_step(i, 1.0, params.weight_decay);
    }
}
