// first[0] = place + 1 if something was found here and nowhere before; first[1] counts how often place 0 was passed until then.
// Twin: first_non_finite_cpu.rs. Moves 20 bytes.

struct Params {
    place: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> found: array<f32>;
@group(0) @binding(2) var<storage, read_write> first: array<u32>;

@compute @workgroup_size(1)
fn main() {
    if first[0] != 0u {
        return;
    }
    if params.place == 0u {
        first[1] += 1u;
    }
    if found[0] > 0.0 {
        first[0] = params.place + 1u;
    }
}
