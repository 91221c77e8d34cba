// y[i] = x[i] scale where word i % 4 of the Philox4x32-10 block [i / 4, 0, stream, state.step], without its low 8 bits, is at least `threshold`;
// else 0.
// Twin: dropout_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.
// One invocation a block, so that each is computed once.

// (low, high) word of a product, from products of halves.
fn multiply(a: u32, b: u32) -> vec2u {
    let a_low = a & 0xFFFFu;
    let a_high = a >> 16u;
    let b_low = b & 0xFFFFu;
    let b_high = b >> 16u;
    let low = a_low * b_low;
    let middle = a_high * b_low + (low >> 16u);
    let other = a_low * b_high + (middle & 0xFFFFu);
    return vec2u(a * b, a_high * b_high + (middle >> 16u) + (other >> 16u));
}

fn philox(counter: vec4u) -> vec4u {
    var c = counter;
    var key = vec2u(params.key_low, params.key_high);
    for (var i_round = 0u; i_round < 10u; i_round += 1u) {
        let a = multiply(0xD2511F53u, c.x);
        let b = multiply(0xCD9E8D57u, c.z);
        c = vec4u(b.y ^ c.y ^ key.x, b.x, a.y ^ c.w ^ key.y, a.x);
        key += vec2u(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

// Two elements, by their draws. There may be no second.
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
    let draws = philox(vec4u(at, 0u, params.stream, state[1])) >> vec4u(8u);
    drop_two(4u * at, draws.xy);
    drop_two(4u * at + 2u, draws.zw);
}
