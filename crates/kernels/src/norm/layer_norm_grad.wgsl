// grad_x = s (g - mean g - h mean (g h)) along each row, with g = grad_y weight, h = (x - mean x) s, (mean x, s) = stats[r].
// Twin: layer_norm_cpu.rs. Moves 12 bytes an element, if the second reading comes from a cache.

override HAS_WEIGHT: u32 = 0u;

alias Sums = vec2f;

// (g, h) of one element.
fn value(row: u32, col: u32) -> vec2f {
    let i = row * params.n_cols + col;
    var g = grad_y[i];
    if HAS_WEIGHT == 1u {
        g *= weight[col];
    }
    return vec2f(g, (x[i] - stats[2u * row]) * stats[2u * row + 1u]);
}

// (sum of g, sum of g h).
fn scan(row: u32, first: u32, stride: u32) -> vec2f {
    var sums = vec2f();
    for (var col = first; col < params.n_cols; col += stride) {
        let v = value(row, col);
        sums += vec2f(v.x, v.x * v.y);
    }
    return sums;
}

fn store(row: u32, sums: vec2f, first: u32, stride: u32) {
    let means = sums / f32(params.n_cols);
    for (var col = first; col < params.n_cols; col += stride) {
        let v = value(row, col);
        grad_x[row * params.n_cols + col] = stats[2u * row + 1u] * (v.x - means.x - v.y * means.y);
    }
}
