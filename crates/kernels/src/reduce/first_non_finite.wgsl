// first[0] = place + 1 if something was found at this place and at no earlier one; first[1] counts how often place 0 was passed until then.
// Twin: first_non_finite_cpu.rs. Moves 20 bytes.

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
