// For row i: partners[i], drawn from the rows of the epoch; and the share of the partner at each line and column, whose mean is shares[i].
// Twin: mix_rows_cpu.rs. Writes 4 (height + width n_channels + 2) bytes a row.
// Shares are drawn as integers, in units of 2^-32, and areas are multiplied by the share of a pixel, so that rounding is the same on all devices.

fn element(i: u32) {
    if i >= params.n {
        return;
    }
    let draws = philox(vec4u(rows[i], order[5], 3u, 0u), vec2u(params.key_low, params.key_high));
    partners[i] = multiply(draws.x, order[0]).y;
    let cell = draws.y >> 22u;
    let low = quantiles[cell];
    let quantile = low + multiply(quantiles[cell + 1u] - low, draws.y << 10u).y;
    if params.is_cut == 0u {
        let share = f32(quantile >> 8u) * (1.0 / 16777216.0);
        shares[i] = share;
        lines[i] = share;
        columns[i] = 1.0;
        return;
    }
    let size = vec2u(params.height, params.width);
    let centre = vec2u(multiply(draws.z, size.x).y, multiply(draws.w, size.y).y);
    let reach = vec2u(multiply(quantile, size.x).y, multiply(quantile, size.y).y);
    let first = centre - min(reach, centre);
    let end = min(size, centre + reach);
    for (var at_line = 0u; at_line < size.x; at_line += 1u) {
        lines[i * size.x + at_line] = select(0.0, 1.0, at_line >= first.x && at_line < end.x);
    }
    let n_columns = size.y * params.n_channels;
    for (var column = 0u; column < n_columns; column += 1u) {
        let pixel = column / params.n_channels;
        columns[i * n_columns + column] = select(0.0, 1.0, pixel >= first.y && pixel < end.y);
    }
    let area = (end.x - first.x) * (end.y - first.y);
    shares[i] = f32(area) * params.share_of_pixel;
}
