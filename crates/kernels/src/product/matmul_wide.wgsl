// y = epilogue(op(a) b), b: [k, n], without barriers, in 64-bit words: each lane has a register block of 32 rows by 8 columns.
// n is a multiple of 8, k of 4, and m of 4 if a is transposed.
// Twin: matmul_cpu.rs. Reads a once for 64 columns and b once for 32 rows.
// Ladder: matmul_subgroup.wgsl (words of 32 bits) -> this.
//
// For software adapters, where a load is a loop over the 8 lanes with a check of bounds for each word, and takes as long for a word of 64 bits as
// for one of 32: so floats are read and written in pairs, which come apart in registers. An iteration is 1024 multiply-adds for 8 such loads,
// 4 of a by the lanes for one another and 4 of b; a larger one would not fit the processor's instruction cache, which costs half the speed.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    // 1 if neighbouring workgroups go down the rows, and not along the columns.
    down: u32,
}

const ROWS = 32u;
const LANES = 8u;
override TRANSPOSE_A: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec2<u64>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<u64>>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<vec4<u64>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<u64>>;

// Eight columns of a row.
struct Eight {
    even: vec4f,
    odd: vec4f,
}

// The same of four rows, a row a column of the matrices; or of four places along k.
struct Block {
    even: mat4x4f,
    odd: mat4x4f,
}

fn apart(pairs: vec4<u64>) -> Eight {
    return Eight(bitcast<vec4f>(vec4u(pairs)), bitcast<vec4f>(vec4u(pairs >> vec4u(32u))));
}

fn together(eight: Eight) -> vec4<u64> {
    return vec4<u64>(bitcast<vec4u>(eight.even)) | (vec4<u64>(bitcast<vec4u>(eight.odd)) << vec4u(32u));
}

fn four_of_a(at: u32) -> vec4f {
    let pairs = a[at];
    let even = bitcast<vec2f>(vec2u(pairs));
    let odd = bitcast<vec2f>(vec2u(pairs >> vec2u(32u)));
    return vec4f(even.x, odd.x, even.y, odd.y);
}

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: vec4f, y: vec4f) -> vec4f {
    return select(y, v, (bitcast<vec4u>(v) & vec4u(0x7FFFFFFFu)) > vec4u(0x7F800000u));
}

fn act(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(v, vec4f(), v < vec4f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec4f()) / ALPHA) - 1.0), v < vec4f()); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, vec4f(-87.0), vec4f(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, vec4f(-10.0), vec4f(10.0)))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(vec4f(), vec4f(1.0), v > vec4f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec4f(1.0), v > vec4f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec4f(1.0); }
    }
}

fn store_row(row: u32, col: u32, bias: Eight, even: vec4f, odd: vec4f) {
    if row >= params.m || col >= params.n / 8u {
        return;
    }
    let i = row * (params.n / 8u) + col;
    if EPILOGUE == 2u {
        let result = apart(fused[i]);
        y[i] = together(Eight(even * slope_from_output(result.even), odd * slope_from_output(result.odd)));
    } else {
        y[i] = together(Eight(act(even + bias.even), act(odd + bias.odd)));
    }
}

fn store(row: u32, col: u32, bias: Eight, products: Block) {
    store_row(row, col, bias, products.even[0], products.odd[0]);
    store_row(row + 1u, col, bias, products.even[1], products.odd[1]);
    store_row(row + 2u, col, bias, products.even[2], products.odd[2]);
    store_row(row + 3u, col, bias, products.even[3], products.odd[3]);
}

// What `lane` reads for eight rows: four places along k of row `lane`, or of four rows at place `lane / 2` of k if a is transposed.
fn place_in_a(row: u32, lane: u32) -> u32 {
    if TRANSPOSE_A == 1u {
        return min(row / 4u + lane % 2u, params.m / 4u - 1u) + lane / 2u * (params.m / 4u);
    }
    return min(row + lane, params.m - 1u) * (params.k / 4u);
}

// Of eight rows read so, the first four at four places of k, a row a column of the matrix.
fn first_rows(read: vec4f) -> mat4x4f {
    if TRANSPOSE_A == 1u {
        return transpose(mat4x4f(
            subgroupBroadcast(read, 0u),
            subgroupBroadcast(read, 2u),
            subgroupBroadcast(read, 4u),
            subgroupBroadcast(read, 6u),
        ));
    }
    return mat4x4f(
        subgroupBroadcast(read, 0u),
        subgroupBroadcast(read, 1u),
        subgroupBroadcast(read, 2u),
        subgroupBroadcast(read, 3u),
    );
}

// The last four.
fn last_rows(read: vec4f) -> mat4x4f {
    if TRANSPOSE_A == 1u {
        return transpose(mat4x4f(
            subgroupBroadcast(read, 1u),
            subgroupBroadcast(read, 3u),
            subgroupBroadcast(read, 5u),
            subgroupBroadcast(read, 7u),
        ));
    }
    return mat4x4f(
        subgroupBroadcast(read, 4u),
        subgroupBroadcast(read, 5u),
        subgroupBroadcast(read, 6u),
        subgroupBroadcast(read, 7u),
    );
}

// Eight columns of b at four places along k.
fn rows_of_b(at: u32, stride: u32) -> Block {
    let b0 = apart(b[at]);
    let b1 = apart(b[at + stride]);
    let b2 = apart(b[at + 2u * stride]);
    let b3 = apart(b[at + 3u * stride]);
    return Block(mat4x4f(b0.even, b1.even, b2.even, b3.even), mat4x4f(b0.odd, b1.odd, b2.odd, b3.odd));
}

// sum + b a for one row, added in the order of k.
fn add_row(sum: vec4f, b: mat4x4f, a: vec4f) -> vec4f {
    return fma(vec4f(a.w), b[3], fma(vec4f(a.z), b[2], fma(vec4f(a.y), b[1], fma(vec4f(a.x), b[0], sum))));
}

// For four rows, one after the other: so the compiler keeps what it has spread of a in registers.
fn add(sum: Block, b: Block, a: mat4x4f) -> Block {
    let even0 = add_row(sum.even[0], b.even, a[0]);
    let odd0 = add_row(sum.odd[0], b.odd, a[0]);
    let even1 = add_row(sum.even[1], b.even, a[1]);
    let odd1 = add_row(sum.odd[1], b.odd, a[1]);
    let even2 = add_row(sum.even[2], b.even, a[2]);
    let odd2 = add_row(sum.odd[2], b.odd, a[2]);
    let even3 = add_row(sum.even[3], b.even, a[3]);
    let odd3 = add_row(sum.odd[3], b.odd, a[3]);
    return Block(mat4x4f(even0, even1, even2, even3), mat4x4f(odd0, odd1, odd2, odd3));
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    // Of blocks: the column, the row, and how many rows a z has.
    let block = select(vec3u(group.xy, groups.y), vec3u(group.yx, groups.x), params.down == 1u);
    let row = (group.z * block.z + block.y) * ROWS;
    if row >= params.m {
        return;
    }
    let col = block.x * LANES + lane;
    let b_stride = params.n / 8u;
    let k_step = select(1u, params.m, TRANSPOSE_A == 1u);

    // Rows and columns beyond the last read others again, and are not stored: every lane has to stay for the broadcasts.
    var a0_at = place_in_a(row, lane);
    var a1_at = place_in_a(row + 8u, lane);
    var a2_at = place_in_a(row + 16u, lane);
    var a3_at = place_in_a(row + 24u, lane);
    var b_at = min(col, b_stride - 1u);
    var s0 = Block();
    var s1 = Block();
    var s2 = Block();
    var s3 = Block();
    var s4 = Block();
    var s5 = Block();
    var s6 = Block();
    var s7 = Block();
    for (var i = 0u; i < params.k; i += 4u) {
        let from_b = rows_of_b(b_at, b_stride);
        let a0 = four_of_a(a0_at);
        s0 = add(s0, from_b, first_rows(a0));
        s1 = add(s1, from_b, last_rows(a0));
        let a1 = four_of_a(a1_at);
        s2 = add(s2, from_b, first_rows(a1));
        s3 = add(s3, from_b, last_rows(a1));
        let a2 = four_of_a(a2_at);
        s4 = add(s4, from_b, first_rows(a2));
        s5 = add(s5, from_b, last_rows(a2));
        let a3 = four_of_a(a3_at);
        s6 = add(s6, from_b, first_rows(a3));
        s7 = add(s7, from_b, last_rows(a3));
        a0_at += k_step;
        a1_at += k_step;
        a2_at += k_step;
        a3_at += k_step;
        b_at += 4u * b_stride;
    }

    var bias = Eight();
    if EPILOGUE == 1u {
        bias = apart(fused[min(col, b_stride - 1u)]);
    }
    store(row, col, bias, s0);
    store(row + 4u, col, bias, s1);
    store(row + 8u, col, bias, s2);
    store(row + 12u, col, bias, s3);
    store(row + 16u, col, bias, s4);
    store(row + 20u, col, bias, s5);
    store(row + 24u, col, bias, s6);
    store(row + 28u, col, bias, s7);
}
