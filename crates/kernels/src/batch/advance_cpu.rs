pub(crate) fn run(state: &mut [u32]) {
    state[0] = state[0].wrapping_add(1);
    state[1] = state[1].wrapping_add(1);
    state[3] = state[3].wrapping_add(u32::from(state[2] != 0));
    state[2] = 0;
}
