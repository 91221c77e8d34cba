pub(crate) fn run(state: &mut [u32]) {
    state[0] += 1;
    state[1] += 1;
}
