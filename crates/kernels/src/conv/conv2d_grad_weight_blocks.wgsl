// Part: blocks of the operands of a gradient of weights. Expects the parts block.wgsl, conv2d_grad_weight_job.wgsl and source_blocks.wgsl, and `lines_of_grad_y` of
// the stored types. Both operands are stored with their channels contiguous, so they are copied into tiles in that order.

fn a_along_k() -> bool { return false; }
fn b_along_k() -> bool { return false; }

alias RowsOfA = u32;
alias ColsOfB = Column;
fn rows_of_a(job: Job, block: u32) -> RowsOfA { return 4u * block; }
fn cols_of_b(job: Job, block: u32) -> ColsOfB { return column_of(4u * block); }

fn block_of_a(job: Job, row: RowsOfA, i: u32) -> Block {
    return lines_of_grad_y(i * params.n_out + row, params.n_out, max(job.end, i) - i, max(params.n_out, row) - row);
}

// The values that four columns read for result pixel `i`; 0 beyond the end of the part.
fn values_at(job: Job, column: Column, i: u32) -> TILE {
    if i >= job.end || !column.exists {
        return TILE(vec4f());
    }
    return channels_at(image_of(i), source_pixel_of(column, i), column.channel);
}

fn block_of_b(job: Job, column: ColsOfB, i: u32) -> Block {
    return Block(
        values_at(job, column, i),
        values_at(job, column, i + 1u),
        values_at(job, column, i + 2u),
        values_at(job, column, i + 3u),
    );
}
