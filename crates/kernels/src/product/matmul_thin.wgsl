// y = epilogue(op(a) b), n a multiple of 4, any m and k: each invocation has one vector of columns of 4 rows. If there are several slices, each is the sum over
// a part of K, [n_slices, m, n], and they are then added in order.
// Twin: matmul_cpu.rs. Reads b once for 4 rows, a once for each group of columns.
//
// For the thin products of a layer with few outputs: its gradient of the input has few K indices, that of the weights few rows. What matters
// is that b is read and y is written as vectors, with neighbouring invocations adjacent; the products are too small to fill tiles.

override WG: u32 = 64u;
// 1 or 4.
override ROWS: u32 = 4u;
override TRANSPOSE_A: u32 = 0u;

fn store_row(slice: u32, row: u32, col: u32, sums: vec4f) {
    if row < params.m {
        let i = row * (params.n / 4u) + col;
        y[slice * params.m * (params.n / 4u) + i] = store_y(finished(sums, i, col));
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let n_row_groups = (params.m + ROWS - 1u) / ROWS;
    let row_group = group.z * groups.y + group.y;
    let slice = row_group / n_row_groups;
    let row = row_group % n_row_groups * ROWS;
    let col = group.x * WG + invocation;
    let n_cols = params.n / 4u;
    if slice >= params.n_slices || col >= n_cols {
        return;
    }
    // Rows beyond the last are clamped, and not stored.
    let row_stride = select(params.k, 1u, TRANSPOSE_A == 1u);
    let k_stride = select(1u, params.m, TRANSPOSE_A == 1u);
    let first = slice * params.slice_k;
    let end = min(first + params.slice_k, params.k);
    var a_at = min(vec4u(row, row + 1u, row + 2u, row + 3u), vec4u(params.m - 1u)) * row_stride + vec4u(first * k_stride);
    var s0 = vec4f();
    var s1 = vec4f();
    var s2 = vec4f();
    var s3 = vec4f();
    for (var i = first; i < end; i += 1u) {
        let from_b = load_b(b[i * n_cols + col]);
        s0 = fma(vec4f(load_a(a_at.x)), from_b, s0);
        if ROWS > 1u {
            s1 = fma(vec4f(load_a(a_at.y)), from_b, s1);
            s2 = fma(vec4f(load_a(a_at.z)), from_b, s2);
            s3 = fma(vec4f(load_a(a_at.w)), from_b, s3);
        }
        a_at += vec4u(k_stride);
    }
    store_row(slice, row, col, s0);
    if ROWS > 1u {
        store_row(slice, row + 1u, col, s1);
        store_row(slice, row + 2u, col, s2);
        store_row(slice, row + 3u, col, s3);
    }
}
