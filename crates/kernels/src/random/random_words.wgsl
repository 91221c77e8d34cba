// Part: Philox4x32-10, the block of four words at `counter`. Twin: philox.rs.

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

fn philox(counter: vec4u, seed: vec2u) -> vec4u {
    var c = counter;
    var key = seed;
    for (var i_round = 0u; i_round < 10u; i_round += 1u) {
        let a = multiply(0xD2511F53u, c.x);
        let b = multiply(0xCD9E8D57u, c.z);
        c = vec4u(b.y ^ c.y ^ key.x, b.x, a.y ^ c.w ^ key.y, a.x);
        key += vec2u(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}
