// y[o, k, i] = x[o, index[o, k, i], i], or x[o, index[k], i]; an index beyond the last is read as 0.
// Twin: gather_cpu.rs. Moves 12 bytes an element, 8 with a shared index.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    let outer = i / params.n_inner / params.n;
    y[i] = x[(outer * params.n_x + named(i)) * params.n_inner + i % params.n_inner];
}
