pub(crate) fn run(place: u32, found: f32, first: &mut [u32]) {
    if first[0] != 0 {
        return;
    }
    if place == 0 {
        first[1] = first[1].wrapping_add(1);
    }
    if found > 0.0 {
        first[0] = place + 1;
    }
}
