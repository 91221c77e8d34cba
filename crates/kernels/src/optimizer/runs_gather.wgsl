// y[run, ..] = x[start ..][.. len], one range per dispatch.
// Twin: runs_cpu.rs. Moves 8 bytes an element.

fn element(i: u32) {
    if i < params.len {
        y[params.run * params.len + i] = x[params.start + i];
    }
}
