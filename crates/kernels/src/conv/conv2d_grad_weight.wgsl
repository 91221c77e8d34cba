// parts[run, o, u, v, c] = sum of grad_y[b, i, j, o] x[b, i sy - py + u, j sx - px + v, c] over the result pixels of a run. Each invocation has 2 columns
// (u, v, c) of 8 outputs o. The runs are then added by map/map_reduce.rs.
// Twin: conv2d_grad_weight_cpu.rs. Reads grad_y once for 16 columns, and what the windows cover once for 8 outputs.
// Ladder: this -> conv2d_grad_weight_direct.wgsl (vec4 loads) -> conv2d_grad_weight_tiled.wgsl (shared tiles).

const OUTS = 8u;
const LANES = 8u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<GRAD_Y>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read_write> parts: array<f32>;

// What a column reads for result pixel `place` of an image, 0 in the padding.
fn value_at(column: Column, image: u32, place: vec2u) -> f32 {
    let pixel = column.first + vec2i(params.stride * place);
    let size = vec2i(params.x_size);
    let inside = pixel.x >= 0 && pixel.x < size.x && pixel.y >= 0 && pixel.y < size.y;
    let at = ((image * params.x_size.x + u32(pixel.x)) * params.x_size.y + u32(pixel.y)) * params.n_channels + column.channel;
    return select(0.0, load_x(select(0u, at, inside)), inside);
}

fn store(part: u32, out_channel: u32, col: u32, sum: f32) {
    let n_cols = params.kernel_size.x * params.kernel_size.y * params.n_channels;
    if out_channel < params.n_out && col < n_cols {
        parts[(part * params.n_out + out_channel) * n_cols + col] = sum;
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let n_cols = params.kernel_size.x * params.kernel_size.y * params.n_channels;
    let col = group.x * LANES * 2u + lane;
    let out_channel = group.y * OUTS;
    if col >= n_cols {
        return;
    }
    // Outputs and columns beyond the last read the last one again, and are not stored.
    let column0 = column_of(col);
    let column1 = column_of(min(col + LANES, n_cols - 1u));
    let outs = vec4u(out_channel, out_channel + 1u, out_channel + 2u, out_channel + 3u);
    let upper_outs = min(outs, vec4u(params.n_out - 1u));
    let lower_outs = min(outs + 4u, vec4u(params.n_out - 1u));
    var upper0 = vec4f();
    var lower0 = vec4f();
    var upper1 = vec4f();
    var lower1 = vec4f();
    let first_row = group.z * params.part_rows;
    let end_row = min(first_row + params.part_rows, params.n_images * params.y_size.x);
    for (var row = first_row; row < end_row; row += 1u) {
        let image = row / params.y_size.x;
        for (var j = 0u; j < params.y_size.y; j += 1u) {
            let place = vec2u(row % params.y_size.x, j);
            let pixel = (row * params.y_size.y + j) * params.n_out;
            let u = upper_outs + pixel;
            let l = lower_outs + pixel;
            let upper = vec4f(load_grad_y(u.x), load_grad_y(u.y), load_grad_y(u.z), load_grad_y(u.w));
            let lower = vec4f(load_grad_y(l.x), load_grad_y(l.y), load_grad_y(l.z), load_grad_y(l.w));
            let x0 = value_at(column0, image, place);
            let x1 = value_at(column1, image, place);
            upper0 += upper * x0;
            lower0 += lower * x0;
            upper1 += upper * x1;
            lower1 += lower * x1;
        }
    }
    for (var i = 0u; i < 4u; i += 1u) {
        store(group.z, out_channel + i, col, upper0[i]);
        store(group.z, out_channel + 4u + i, col, lower0[i]);
        store(group.z, out_channel + i, col + LANES, upper1[i]);
        store(group.z, out_channel + 4u + i, col + LANES, lower1[i]);
    }
}
