// y[i] = x[i] scale where word i % 4 of the Philox4x32-10 block [i / 4, 0, stream, state.step], without its low 8 bits, is at least `threshold`;
// else 0.
// Twin: dropout_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.
// One invocation per block, so that each is computed once.

// Two elements, by their draws. The second may not exist.
fn drop_two(first: u32, draws: vec2u) {
    if first < params.n {
        let v = vec2f(load_x(first), load_x(min(first + 1u, params.n - 1u)));
        store_y(first, select(vec2f(), v * params.scale, draws >= vec2u(params.threshold)), params.n - first);
    }
}

fn element(at: u32) {
    if at > (params.n - 1u) / 4u {
        return;
    }
    let draws = philox(vec4u(at, 0u, params.stream, state[1]), vec2u(params.key_low, params.key_high)) >> vec4u(8u);
    drop_two(4u * at, draws.xy);
    drop_two(4u * at + 2u, draws.zw);
}
