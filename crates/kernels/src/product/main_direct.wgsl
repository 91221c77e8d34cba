// Part: the main loop of products without workgroup memory and barriers: each invocation reads the operands of ROW_BLOCKS by COL_BLOCKS blocks of 4 by 4
// results itself. For software adapters, where barriers cost five to ten times as much as what tiles save.
//
// Expects the same as main_tiled.wgsl. Reads a once for the columns of a workgroup, and b once for the rows of an invocation. The invocations' blocks are
// adjacent, so that a workgroup reads whole lines of b.

override INVOCATION_ROWS: u32 = 1u;
override INVOCATION_COLS: u32 = 8u;
override ROW_BLOCKS: u32 = 2u;
override COL_BLOCKS: u32 = 2u;

// A workgroup's rows and columns in blocks.
override TILE_ROWS: u32 = INVOCATION_ROWS * ROW_BLOCKS;
override TILE_COLS: u32 = INVOCATION_COLS * COL_BLOCKS;

// sums + a block of a times a block of b, added in the order of K.
fn add_block(sums: Sums, a: Block, b: Block) -> Sums {
    let first_two = add_product(add_product(sums, a.at0, b.at0), a.at1, b.at1);
    return add_product(add_product(first_two, a.at2, b.at2), a.at3, b.at3);
}

@compute @workgroup_size(INVOCATION_COLS, INVOCATION_ROWS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_id) invocation: vec3u) {
    let job = job_of(group, groups);
    if !job.exists {
        return;
    }
    let row = job.row + invocation.y;
    let col = job.col + invocation.x;
    let rows0 = rows_of_a(job, row);
    let rows1 = rows_of_a(job, row + INVOCATION_ROWS);
    let cols0 = cols_of_b(job, col);
    let cols1 = cols_of_b(job, col + INVOCATION_COLS);
    var s00 = Sums();
    var s01 = Sums();
    var s10 = Sums();
    var s11 = Sums();
    for (var k = job.first; k < job.end; k += 4u) {
        let a0 = block_of_a(job, rows0, k);
        let b0 = block_of_b(job, cols0, k);
        s00 = add_block(s00, a0, b0);
        var a1 = Block();
        if ROW_BLOCKS == 2u {
            a1 = block_of_a(job, rows1, k);
            s10 = add_block(s10, a1, b0);
        }
        if COL_BLOCKS == 2u {
            let b1 = block_of_b(job, cols1, k);
            s01 = add_block(s01, a0, b1);
            if ROW_BLOCKS == 2u {
                s11 = add_block(s11, a1, b1);
            }
        }
    }
    store_block(job, row, col, add_sums(mat4x4f(), s00));
    if COL_BLOCKS == 2u {
        store_block(job, row, col + INVOCATION_COLS, add_sums(mat4x4f(), s01));
    }
    if ROW_BLOCKS == 2u {
        store_block(job, row + INVOCATION_ROWS, col, add_sums(mat4x4f(), s10));
    }
    if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
        store_block(job, row + INVOCATION_ROWS, col + INVOCATION_COLS, add_sums(mat4x4f(), s11));
    }
}
