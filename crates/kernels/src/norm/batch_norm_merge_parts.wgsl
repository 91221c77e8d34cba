// Part: the mean of channel i, the sum of squared deviations from it, and the sums of weights and of their squares, merged in order from consecutive parts (Chan, Golub & LeVeque
// 1983). Expects the binding `parts`, as batch_norm_stats.wgsl writes it.

struct Merged { mean: f32, squares: f32, weight: vec2f }

fn merge_parts(i: u32, first: u32, n_parts: u32) -> Merged {
    var merged = Merged(0.0, 0.0, vec2f());
    for (var part = first; part < first + n_parts; part += 1u) {
        let at = part * (2u * params.n_channels + 2u);
        let weight = vec2f(parts[at + 2u * params.n_channels], parts[at + 2u * params.n_channels + 1u]);
        if weight.x > 0.0 {
            let share = weight.x / (merged.weight.x + weight.x);
            let off = parts[at + i] - merged.mean;
            merged.mean += off * share;
            merged.squares += parts[at + params.n_channels + i] + off * off * (share * merged.weight.x);
            merged.weight += weight;
        }
    }
    return merged;
}
