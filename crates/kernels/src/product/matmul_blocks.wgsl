// Part: blocks of the operands of a matrix product. Expects the parts block.wgsl and matmul_job.wgsl, and `lines_of_a` and `lines_of_b` of the stored types.

fn a_along_k() -> bool { return TRANSPOSE_A == 0u; }
fn b_along_k() -> bool { return TRANSPOSE_B == 1u; }

alias RowsOfA = u32;
alias ColsOfB = u32;
fn rows_of_a(job: Job, block: u32) -> RowsOfA { return 4u * block; }
fn cols_of_b(job: Job, block: u32) -> ColsOfB { return 4u * block; }

fn block_of_a(job: Job, row: RowsOfA, k: u32) -> Block {
    let n_rows = max(params.m, row) - row;
    let depth = max(job.end, k) - k;
    if TRANSPOSE_A == 1u {
        return lines_of_a(job.a_start + k * params.m + row, params.m, depth, n_rows);
    }
    return transposed(lines_of_a(job.a_start + row * params.k + k, params.k, n_rows, depth));
}

fn block_of_b(job: Job, col: ColsOfB, k: u32) -> Block {
    let n_cols = max(params.n, col) - col;
    let depth = max(job.end, k) - k;
    if TRANSPOSE_B == 1u {
        return transposed(lines_of_b(job.b_start + col * params.k + k, params.k, n_cols, depth));
    }
    return lines_of_b(job.b_start + k * params.n + col, params.n, depth, n_cols);
}
