// Part: stores sums of a gradient of weights by blocks. Expects the parts weight_params.wgsl and the binding `parts`.

// A block of 4 by 4 results, an output a column of the matrix; `out` and `col` count blocks.
fn store_block(part: u32, out_channel: u32, col: u32, sums: mat4x4f) {
    let stride = params.kernel_size.x * params.kernel_size.y * params.n_channels / 4u;
    if out_channel >= params.n_out / 4u || col >= stride {
        return;
    }
    let at = (part * params.n_out + 4u * out_channel) * stride + col;
    parts[at] = sums[0];
    parts[at + stride] = sums[1];
    parts[at + 2u * stride] = sums[2];
    parts[at + 3u * stride] = sums[3];
}
