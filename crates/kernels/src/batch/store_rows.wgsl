// y[state.batch * n + i, c] = x[i, c], what lies beyond the end of y left out.
// Twin: store_rows_cpu.rs. Moves 8 bytes an element.

fn element(i: u32) {
    // Before the product, which could wrap.
    if i >= arrayLength(&x) || state[0] > arrayLength(&y) / arrayLength(&x) {
        return;
    }
    let at = state[0] * arrayLength(&x) + i;
    if at < arrayLength(&y) {
        y[at] = x[i];
    }
}
