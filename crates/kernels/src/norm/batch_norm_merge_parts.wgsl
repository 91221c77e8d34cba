// Part: the mean of channel i and the sum of squared deviations from it, merged in order from consecutive parts (Chan, Golub & LeVeque 1983). Expects the binding `parts`.
// Each part has params.part_rows rows, except that the last one has the remaining rows.

struct Merged { mean: f32, squares: f32 }

fn merge_parts(i: u32, first: u32, n_parts: u32, rows: u32) -> Merged {
    var mean = 0.0;
    var squares = 0.0;
    var before = 0u;
    for (var part = first; part < first + n_parts; part += 1u) {
        let n = min(params.part_rows, rows - before);
        let share = f32(n) / f32(before + n);
        let off = parts[2u * part * params.n_channels + i] - mean;
        mean += off * share;
        squares += parts[(2u * part + 1u) * params.n_channels + i] + off * off * (share * f32(before));
        before += n;
    }
    return Merged(mean, squares);
}
