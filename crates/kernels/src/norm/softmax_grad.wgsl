// grad_x = y (grad_y - sum_k grad_y[k] y[k]), row by row; with LOG, grad_x = grad_y - exp(y) sum_k grad_y[k].
// Twin: softmax_cpu.rs. Moves 12 bytes an element, if the second reading comes from a cache.

override LOG: u32 = 0u;

alias Sums = f32;

fn scan(row: u32, first: u32, stride: u32) -> f32 {
    var sum = 0.0;
    for (var col = first; col < params.n_cols; col += stride) {
        let i = row * params.n_cols + col;
        sum += grad_y[i] * select(y[i], 1.0, LOG == 1u);
    }
    return sum;
}

fn store(row: u32, sum: f32, first: u32, stride: u32) {
    for (var col = first; col < params.n_cols; col += stride) {
        let i = row * params.n_cols + col;
        if LOG == 1u {
            grad_x[i] = grad_y[i] - exp(y[i]) * sum;
        } else {
            grad_x[i] = y[i] * (grad_y[i] - sum);
        }
    }
}
