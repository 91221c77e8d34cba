// heads[e] = the first row whose entry is e, or none. Then embedding_grad_next.wgsl and embedding_grad_chain.wgsl.
// Twin: embedding_cpu.rs. One workgroup: all heads are cleared before any is set. The lowest row wins, in whatever order they are set.

const WG = 256u;
const NONE = 0xFFFFFFFFu;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) invocation: u32) {
    for (var entry = invocation; entry < params.n_entries; entry += WG) {
        atomicStore(&heads[entry], NONE);
    }
    storageBarrier();
    for (var row = invocation; row < params.n; row += WG) {
        atomicMin(&heads[entry_of(row)], row);
    }
}
