// shares[i] = what row i adds to the area: its share of class 1 times the share of class 0 that scores below it, with half of what is equal;
// 0 for a row of class 0. Where equal scores begin and end is searched for among the sorted ones.
// Twin: roc_auc_cpu.rs. Moves 12 bytes a row, and reads 8 log n for one of class 1.

struct Params {
    n: u32,
    nan: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;
const SIGN = 0x80000000u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> pairs: array<vec2u>;
// Weights of class 0 and of class 1, up to and with each row.
@group(0) @binding(2) var<storage, read> sums: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> shares: array<f32>;

// How many scores are below `key`, or not above it.
fn n_below(key: u32, with_equal: bool) -> u32 {
    var low = 0u;
    var high = params.n;
    while low < high {
        let middle = (low + high) / 2u;
        let other = pairs[middle].x;
        if other < key || (with_equal && other == key) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

fn weight_of_class_0(n_rows: u32) -> f32 {
    if n_rows == 0u {
        return 0.0;
    }
    return sums[n_rows - 1u].x;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n {
        return;
    }
    let totals = sums[params.n - 1u];
    // One class alone, or a weight that is NaN: told by bits, since a comparison may take for granted that there is none.
    let is_nan = (bitcast<u32>(totals.x + totals.y) & ~SIGN) > 0x7F800000u;
    if is_nan || totals.x == 0.0 || totals.y == 0.0 {
        shares[i] = bitcast<f32>(params.nan);
        return;
    }
    let own = pairs[i];
    if own.y < SIGN {
        shares[i] = 0.0;
        return;
    }
    let below = weight_of_class_0(n_below(own.x, false));
    let with_equal = weight_of_class_0(n_below(own.x, true));
    shares[i] = bitcast<f32>(own.y & ~SIGN) / totals.y * (0.5 * (below + with_equal) / totals.x);
}
