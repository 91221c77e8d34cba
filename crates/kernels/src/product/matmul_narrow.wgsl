// y = epilogue(op(a) op(b)) for few columns, n up to 8: two results per invocation, which are stored next to each other and may be in different rows.
// Twin: matmul_cpu.rs. Reads a once per column, four K indices at a time. The other forms assign invocations along the columns, most of which would be idle.

override TRANSPOSE_A: u32 = 0u;
override TRANSPOSE_B: u32 = 0u;

fn four_of_a(row: u32, k: u32) -> vec4f {
    let depth = params.k - k;
    if TRANSPOSE_A == 1u {
        let lines = lines_of_a(k * params.m + row, params.m, depth, 1u);
        return vec4f(lines.at0.x, lines.at1.x, lines.at2.x, lines.at3.x);
    }
    return fetch_a(row * params.k + k, depth);
}

fn four_of_b(col: u32, k: u32) -> vec4f {
    let depth = params.k - k;
    if TRANSPOSE_B == 1u {
        return fetch_b(col * params.k + k, depth);
    }
    let lines = lines_of_b(k * params.n + col, params.n, depth, 1u);
    return vec4f(lines.at0.x, lines.at1.x, lines.at2.x, lines.at3.x);
}

fn element(pair: u32) {
    let i = 2u * pair;
    let n_results = params.m * params.n;
    if i >= n_results {
        return;
    }
    // An index beyond the last is clamped, and its result is not stored.
    let at = vec2u(i, min(i + 1u, n_results - 1u));
    let rows = at / vec2u(params.n);
    let cols = at % vec2u(params.n);
    var first = vec4f();
    var second = vec4f();
    for (var k = 0u; k < params.k; k += 4u) {
        first = fma(four_of_a(rows.x, k), four_of_b(cols.x, k), first);
        second = fma(four_of_a(rows.y, k), four_of_b(cols.y, k), second);
    }
    let sums = vec2f((first.x + first.y) + (first.z + first.w), (second.x + second.y) + (second.z + second.w));
    store_y(i, finished(sums, at, cols), n_results - i);
}
