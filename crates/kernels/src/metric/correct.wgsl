// y[r] = 1 where the first of the greatest x[r, c] has c = target[r], else 0.
// Twin: correct_cpu.rs. Moves 4 bytes an element and 8 a row.
// Ladder: row_a_lane (no barrier, for narrow rows and software adapters) -> row_a_group (coalesced).

struct Params {
    n_rows: u32,
    n_cols: u32,
    pad0: u32,
    pad1: u32,
}

// The greatest value so far and where it stands.
struct Best {
    value: f32,
    col: u32,
}

override WG: u32 = 64u;
// Where nothing has been found yet: beyond every column.
const NOWHERE = 0xFFFFFFFFu;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

var<workgroup> partials: array<Best, WG>;

fn better(a: Best, b: Best) -> Best {
    if b.col == NOWHERE || (a.col != NOWHERE && (a.value > b.value || (a.value == b.value && a.col < b.col))) {
        return a;
    }
    return b;
}

fn scan(row: u32, first: u32, stride: u32) -> Best {
    var best = Best(0.0, NOWHERE);
    for (var col = first; col < params.n_cols; col += stride) {
        let v = x[row * params.n_cols + col];
        if !is_nan(v) {
            best = better(best, Best(v, col));
        }
    }
    return best;
}

fn store(row: u32, best: Best) {
    y[row] = select(0.0, 1.0, best.col != NOWHERE && best.col == targets[row]);
}

@compute @workgroup_size(WG)
fn row_a_lane(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.y * groups.x + group.x) * WG + lane;
    if row < params.n_rows {
        store(row, scan(row, 0u, 1u));
    }
}

@compute @workgroup_size(WG)
fn row_a_group(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if row >= params.n_rows {
        return;
    }
    partials[lane] = scan(row, lane, WG);
    workgroupBarrier();
    for (var reach = WG / 2u; reach > 0u; reach /= 2u) {
        if lane < reach {
            partials[lane] = better(partials[lane], partials[lane + reach]);
        }
        workgroupBarrier();
    }
    if lane == 0u {
        store(row, partials[0]);
    }
}
