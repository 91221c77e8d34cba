// parts[run, o, u, v, c] = sum of grad_y[b, i, j, o] x[b, i sy - py + u, j sx - px + v, c] over the result pixels of a run, without barriers: each invocation
// has 2 vec4s of columns (u, v, c) of 8 outputs o. n_channels and n_out are multiples of 4. The runs are then added by map/map_reduce.rs.
// Twin: conv2d_grad_weight_cpu.rs. Reads grad_y once for 64 columns, and what the windows cover once for 8 outputs.
// Ladder: conv2d_grad_weight.wgsl (scalar loads, any shape) -> this -> conv2d_grad_weight_tiled.wgsl (shared tiles).

const LANES = 8u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<GRAD_Y>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read_write> parts: array<vec4f>;

// What four columns read for result pixel `place` of an image, 0 in the padding.
fn value_at(column: Column, image: u32, place: vec2u) -> vec4f {
    let pixel = column.first + vec2i(params.stride * place);
    let size = vec2i(params.x_size);
    let inside = pixel.x >= 0 && pixel.x < size.x && pixel.y >= 0 && pixel.y < size.y;
    let at = ((image * params.x_size.x + u32(pixel.x)) * params.x_size.y + u32(pixel.y)) * params.n_channels + column.channel;
    return select(vec4f(), load_x(x[select(0u, at / 4u, inside)]), inside);
}

fn add_product(sum: mat4x4f, a: vec4f, b: vec4f) -> mat4x4f {
    return mat4x4f(
        fma(vec4f(a.x), b, sum[0]),
        fma(vec4f(a.y), b, sum[1]),
        fma(vec4f(a.z), b, sum[2]),
        fma(vec4f(a.w), b, sum[3]),
    );
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let n_cols = params.kernel_size.x * params.kernel_size.y * params.n_channels / 4u;
    let n_outs = params.n_out / 4u;
    let col = group.x * LANES * 2u + lane;
    let out_channel = group.y * 2u;
    if col >= n_cols {
        return;
    }
    // Outputs and columns beyond the last read the last ones again, and are not stored.
    let column0 = column_of(4u * col);
    let column1 = column_of(4u * min(col + LANES, n_cols - 1u));
    let lower_out = min(out_channel + 1u, n_outs - 1u);
    var upper0 = mat4x4f();
    var lower0 = mat4x4f();
    var upper1 = mat4x4f();
    var lower1 = mat4x4f();
    let first_row = group.z * params.part_rows;
    let end_row = min(first_row + params.part_rows, params.n_images * params.y_size.x);
    for (var row = first_row; row < end_row; row += 1u) {
        let image = row / params.y_size.x;
        for (var j = 0u; j < params.y_size.y; j += 1u) {
            let place = vec2u(row % params.y_size.x, j);
            let pixel = (row * params.y_size.y + j) * n_outs;
            let upper = load_grad_y(grad_y[pixel + out_channel]);
            let lower = load_grad_y(grad_y[pixel + lower_out]);
            let x0 = value_at(column0, image, place);
            let x1 = value_at(column1, image, place);
            upper0 = add_product(upper0, upper, x0);
            lower0 = add_product(lower0, lower, x0);
            upper1 = add_product(upper1, upper, x1);
            lower1 = add_product(lower1, lower, x1);
        }
    }
    store_block(group.z, out_channel, col, upper0);
    store_block(group.z, out_channel + 1u, col, lower0);
    store_block(group.z, out_channel, col + LANES, upper1);
    store_block(group.z, out_channel + 1u, col + LANES, lower1);
}
