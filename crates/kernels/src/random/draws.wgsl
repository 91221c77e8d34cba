// Part: random numbers of a map. Twin: map/draws_cpu.rs.

// Two rounds of xorshift and multiplication, with a key before each.
fn draw_bits(index: U, a: u32, b: u32) -> U {
    var h = index ^ U(a);
    h = (h ^ (h >> U(16u))) * U(0x21F0AAADu);
    h = ((h ^ (h >> U(15u))) + U(b)) * U(0xD35A2D97u);
    return h ^ (h >> U(15u));
}

// Uniform in [0, 1), given what the keys of all steps are computed from.
fn draw(index: U, a: u32, b: u32, n_steps: u32) -> V {
    let key_a = key_of_step(n_steps, a, b);
    let key_b = key_of_step(n_steps, b, a);
    return V(draw_bits(index, key_a, key_b) >> U(8u)) * (1.0 / 16777216.0);
}

// As `draw_bits`, for one index.
fn key_of_step(n_steps: u32, a: u32, b: u32) -> u32 {
    var h = n_steps ^ a;
    h = (h ^ (h >> 16u)) * 0x21F0AAADu;
    h = ((h ^ (h >> 15u)) + b) * 0xD35A2D97u;
    return h ^ (h >> 15u);
}
