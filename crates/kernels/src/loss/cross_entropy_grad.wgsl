// grad_logits[r,c] = grad_loss w (q p[c] - (1 - e) v[t] [c = t] - e / n_classes v[c]) / loss[1], (m, log sum exp(x - m), q) = rows[r],
// p[c] = exp(x[c] - m - log sum exp(x - m)).
// Twin: cross_entropy_cpu.rs. Moves 8 bytes an element and 24 a row.

override CLASS_WEIGHTS: u32 = 0u;

fn element(i: u32) {
    if i >= params.n_rows * params.n_cols {
        return;
    }
    let row = i / params.n_cols;
    let col = i % params.n_cols;
    if params.ignores == 1u && targets[row] == params.ignored {
        grad_logits[i] = 0.0;
        return;
    }
    let of_row = rows[row];
    let v = class_weight(col);
    var wanted = params.smoothing / f32(params.n_cols) * v;
    if col == targets[row] {
        wanted += (1.0 - params.smoothing) * v;
    }
    grad_logits[i] = grad_loss[0] * weights[row] * (of_row.z * exp(x[i] - of_row.x - of_row.y) - wanted) / loss[1];
}
