// y = a I + b gram + c square, for each matrix of a batch.
// Twin: newton_schulz_cpu.rs. Moves 12 bytes an element.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    let is_diagonal = i / params.n % params.n == i % params.n;
    y[i] = params.b * gram[i] + params.c * square[i] + select(0.0, params.a, is_diagonal);
}
