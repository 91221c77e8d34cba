// x[start ..][.. len] *= to / max(norms[run], eps), one range per dispatch; does nothing if the step is skipped.
// Twin: runs_cpu.rs. Moves 8 bytes an element.
// `state` is (batch, step, skip, n_skipped).

fn element(i: u32) {
    if i < params.len && state[2] == 0u {
        // Not `max`, which may ignore NaN.
        let norm = norms[params.run];
        x[params.start + i] *= params.to / select(norm, params.eps, norm < params.eps);
    }
}
