// Part: blocks of 4 by 4 sums for the main loops that add products in the invocations. Expects `SUM`, the type in which products are added, and from the loader
// `store_row(job, row, col, sums)`, which stores those of four results of a row that exist.

// A block of 4 by 4 sums, one vector per row.
struct Sums {
    of_x: SUM,
    of_y: SUM,
    of_z: SUM,
    of_w: SUM,
}

// sums + four rows of a times four columns of b, at one K index.
fn add_product(sums: Sums, a: SUM, b: SUM) -> Sums {
    return Sums(
        fma(SUM(a.x), b, sums.of_x),
        fma(SUM(a.y), b, sums.of_y),
        fma(SUM(a.z), b, sums.of_z),
        fma(SUM(a.w), b, sums.of_w),
    );
}

fn add_sums(totals: mat4x4f, sums: Sums) -> mat4x4f {
    return totals + mat4x4f(vec4f(sums.of_x), vec4f(sums.of_y), vec4f(sums.of_z), vec4f(sums.of_w));
}

// Stores a block of results, row by row; `row` and `col` count blocks.
fn store_block(job: Job, row: u32, col: u32, sums: mat4x4f) {
    store_row(job, 4u * row, 4u * col, sums[0]);
    store_row(job, 4u * row + 1u, 4u * col, sums[1]);
    store_row(job, 4u * row + 2u, 4u * col, sums[2]);
    store_row(job, 4u * row + 3u, 4u * col, sums[3]);
}
