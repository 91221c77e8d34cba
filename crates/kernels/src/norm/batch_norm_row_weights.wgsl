// Part: each of `weights` is the weight of params.weight_rows consecutive rows. Gives `weight`, and `total_weight`, the sum of the weights and that of their squares.

fn weight(row: u32) -> f32 {
    return weights[row / params.weight_rows];
}

fn total_weight(first: u32, end: u32) -> vec2f {
    var total = vec2f();
    for (var row = first; row < end; row += 1u) {
        let w = weight(row);
        total += vec2f(w, w * w);
    }
    return total;
}
