// Up to three steps of a bitonic sort: elements are exchanged with those 4, 2 and 1 times 2^log_distance away, upwards in every other block
// of 2^log_block. An invocation holds all that its elements can be exchanged with.
// Twin: roc_auc_cpu.rs. Moves 16 bytes an element.

struct Params {
    n_lanes: u32,
    log_block: u32,
    log_distance: u32,
    pad: u32,
}

override WG: u32 = 64u;
override STEPS: u32 = 3u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> pairs: array<vec2u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_lanes {
        return;
    }
    let n = 1u << STEPS;
    let below = i & ((1u << params.log_distance) - 1u);
    let first = (((i >> params.log_distance) << STEPS) << params.log_distance) | below;
    let is_upwards = ((first >> params.log_block) & 1u) == 0u;
    var own: array<vec2u, 8>;
    for (var e = 0u; e < n; e += 1u) {
        own[e] = pairs[first + (e << params.log_distance)];
    }
    for (var level = STEPS; level > 0u; level -= 1u) {
        let gap = 1u << (level - 1u);
        for (var e = 0u; e < n; e += 1u) {
            let a = own[e];
            let b = own[(e + gap) % n];
            if (e & gap) == 0u && (a.x > b.x) == is_upwards {
                own[e] = b;
                own[(e + gap) % n] = a;
            }
        }
    }
    for (var e = 0u; e < n; e += 1u) {
        pairs[first + (e << params.log_distance)] = own[e];
    }
}
