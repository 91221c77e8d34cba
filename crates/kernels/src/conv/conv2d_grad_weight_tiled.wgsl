// parts[run, o, u, v, c] = sum of grad_y[b, i, j, o] x[b, i sy - py + u, j sx - px + v, c] over the result pixels of a run, by tiles of both operands in
// workgroup memory, each invocation with ROW_BLOCKS by COL_BLOCKS blocks of 4 outputs o by 4 columns (u, v, c). n_channels and n_out are multiples of 4.
// The runs are then added by map/map_reduce.rs.
// Twin: conv2d_grad_weight_cpu.rs. Reads grad_y once for a tile's columns, and what the windows cover once for its outputs.
// Ladder: conv2d_grad_weight_tiled_any.wgsl (scalar loads, any shape) -> this, whose tiles are those of matmul_tiled.wgsl, and what bounds them ->
// conv2d_grad_weight_coop.wgsl (tensor cores). For hardware: on a software adapter barriers are ruinous.
//
// The indices of the sum are pixels, so both operands have their columns fastest and go into the tiles as they are read. There are few results
// and many pixels: the runs fill the card.

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<GRAD_Y>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read_write> parts: array<vec4f>;

// What a workgroup computes: blocks from output `row` and column `col` on, over the result pixels from `first` to `end`.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
    part: u32,
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    let n_rows = params.n_images * params.y_size.x;
    let first = min(group.z * params.part_rows, n_rows) * params.y_size.y;
    let end = min((group.z + 1u) * params.part_rows, n_rows) * params.y_size.y;
    return Job(true, group.y * TILE_ROWS, group.x * TILE_COLS, first, end, group.z);
}

// Both operands are stored with their channels fastest.
fn a_along_k() -> bool { return false; }
fn b_along_k() -> bool { return false; }

alias RowsOfA = u32;
alias ColsOfB = Column;
fn rows_of_a(job: Job, row: u32) -> RowsOfA { return row; }
fn cols_of_b(job: Job, col: u32) -> ColsOfB { return column_of(4u * col); }

fn store(job: Job, row: u32, col: u32, sums: mat4x4f) {
    store_block(job.part, row, col, sums);
}

// What four columns read for result pixel `i` of the batch, 0 in the padding and from `end` on.
fn value_of_x(column: Column, i: u32, end: u32) -> TILE {
    if i >= end || !column.exists {
        return TILE(0.0);
    }
    let row = i / params.y_size.y;
    let pixel = column.first + vec2i(params.stride * vec2u(row % params.y_size.x, i % params.y_size.y));
    let size = vec2i(params.x_size);
    if pixel.x < 0 || pixel.x >= size.x || pixel.y < 0 || pixel.y >= size.y {
        return TILE(0.0);
    }
    let at = (row / params.y_size.x * params.x_size.x + u32(pixel.x)) * params.x_size.y + u32(pixel.y);
    return store_tile(load_x(x[(at * params.n_channels + column.channel) / 4u]));
}

// Four outputs of result pixel `i`; `out` counts vec4s.
fn value_of_grad_y(out_channel: u32, i: u32, end: u32) -> TILE {
    if i >= end || out_channel >= params.n_out / 4u {
        return TILE(0.0);
    }
    return store_tile(load_grad_y(grad_y[i * (params.n_out / 4u) + out_channel]));
}

fn block_of_a(job: Job, out_channel: RowsOfA, i: u32) -> Block {
    let end = job.end;
    return Block(
        value_of_grad_y(out_channel, i, end),
        value_of_grad_y(out_channel, i + 1u, end),
        value_of_grad_y(out_channel, i + 2u, end),
        value_of_grad_y(out_channel, i + 3u, end),
    );
}

fn block_of_b(job: Job, column: ColsOfB, i: u32) -> Block {
    let end = job.end;
    return Block(
        value_of_x(column, i, end),
        value_of_x(column, i + 1u, end),
        value_of_x(column, i + 2u, end),
        value_of_x(column, i + 3u, end),
    );
}
