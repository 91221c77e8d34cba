// Part: y = epilogue(op(a) op(b)), the indices of a workgroup's block. Slices of the workgroups are either the pairs of a batch, or parts of K whose sums are
// then added in order (SPLIT). Twin: matmul_cpu.rs.

override TRANSPOSE_A: u32 = 0u;
override TRANSPOSE_B: u32 = 0u;
override SPLIT: u32 = 0u;

// Blocks of 4 by 4, starting at `row` and `col`, over the K indices from `first` to `end`.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
    slice: u32,
    a_start: u32,
    b_start: u32,
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    let n_row_groups = (params.m + 4u * TILE_ROWS - 1u) / (4u * TILE_ROWS);
    let row_group = group.z * groups.y + group.y;
    let slice = row_group / n_row_groups;
    let pair = select(slice, 0u, SPLIT == 1u);
    let first = select(0u, slice * params.slice_k, SPLIT == 1u);
    return Job(
        slice < params.n_slices,
        row_group % n_row_groups * TILE_ROWS,
        group.x * TILE_COLS,
        first,
        min(first + params.slice_k, params.k),
        slice,
        pair * (params.m * params.k),
        pair * (params.k * params.n),
    );
}

fn store_row(job: Job, row: u32, col: u32, sums: vec4f) {
    if row < params.m {
        store_four((job.slice * params.m + row) * params.n, col, params.n, sums);
    }
}
