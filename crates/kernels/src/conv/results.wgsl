// Part: where results lie. Expects the part walk.wgsl.

// Where the channels of result pixel `i` of a phase begin.
fn result_of(walk: Walk, i: u32) -> u32 {
    let place = place_of(walk, i);
    let pixel = walk.at + walk.spacing * place.yz;
    return ((place.x * params.result_size.x + pixel.x) * params.result_size.y + pixel.y) * params.n_cols;
}
