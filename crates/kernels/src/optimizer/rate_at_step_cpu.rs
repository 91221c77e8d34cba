pub(crate) fn run(table: &[f32], state: &[u32], rate: &mut [f32]) {
    rate[0] = table[(state[1] as usize).min(table.len() - 1)];
}
