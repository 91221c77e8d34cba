// heads[e] = the first row whose entry is e, or none. Then embedding_grad_next.wgsl and embedding_grad_chain.wgsl.
// Twin: embedding_cpu.rs. One workgroup: all heads are cleared before any is set. The least row wins, whoever comes first.

struct Params {
    n: u32,
    n_entries: u32,
    dim: u32,
    n_index_cols: u32,
    index_col: u32,
    padding: u32,
    n_parts: u32,
    pad: u32,
}

const WG = 256u;
const NONE = 0xFFFFFFFFu;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read_write> heads: array<atomic<u32>>;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lane: u32) {
    for (var entry = lane; entry < params.n_entries; entry += WG) {
        atomicStore(&heads[entry], NONE);
    }
    storageBarrier();
    for (var row = lane; row < params.n; row += WG) {
        atomicMin(&heads[entry_of(row)], row);
    }
}
