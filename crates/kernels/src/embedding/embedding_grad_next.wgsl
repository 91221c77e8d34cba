// next[i] = the first row after i with the same entry, or none: the chains that embedding_grad_chain.wgsl follows.
// Twin: embedding_cpu.rs. Reads codes until one is equal.

const NONE = 0xFFFFFFFFu;

fn element(i: u32) {
    if i >= params.n {
        return;
    }
    let entry = entry_of(i);
    var row = i + 1u;
    for (; row < params.n; row += 1u) {
        if entry_of(row) == entry {
            break;
        }
    }
    next[i] = select(NONE, row, row < params.n);
}
