// y[r] = 1 if the first maximum of x[r, c] has c = target[r], else 0.
// Twin: correct_cpu.rs. Moves 4 bytes an element and 8 a row.

// The maximum so far and its column.
struct Best {
    value: f32,
    col: u32,
}

// The column before any value has been found: beyond every column.
const NOWHERE = 0xFFFFFFFFu;

alias Sums = Best;

fn join(a: Best, b: Best) -> Best {
    if b.col == NOWHERE || (a.col != NOWHERE && (a.value > b.value || (a.value == b.value && a.col < b.col))) {
        return a;
    }
    return b;
}

fn scan(row: u32, first: u32, stride: u32) -> Best {
    var best = Best(0.0, NOWHERE);
    for (var col = first; col < params.n_cols; col += stride) {
        let v = x[row * params.n_cols + col];
        if !is_nan(v) {
            best = join(best, Best(v, col));
        }
    }
    return best;
}

fn store(row: u32, best: Best, first: u32, stride: u32) {
    if first == 0u {
        y[row] = select(0.0, 1.0, best.col != NOWHERE && best.col == targets[row]);
    }
}
