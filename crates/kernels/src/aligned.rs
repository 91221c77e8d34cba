use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Floats of a cache line.
pub(crate) const LINE_LEN: usize = LINE / size_of::<f32>();

/// The first element of `memory` on a cache line, among the first [`LINE_LEN`]: vectors across two lines take twice as long.
fn first_on_line(memory: &[f32]) -> usize {
    memory.as_ptr().align_offset(LINE).min(LINE_LEN).min(memory.len())
}

/// The elements of `memory` from there on.
pub(crate) fn aligned_mut(memory: &mut [f32]) -> &mut [f32] {
    let start = first_on_line(memory);
    &mut memory[start..]
}

/// Floats, 0 at first, that start on a cache line.
#[derive(Debug, Default)]
pub(crate) struct AlignedFloats {
    memory: Vec<f32>,
    /// The first of them.
    start: usize,
}

impl AlignedFloats {
    pub(crate) fn new(len: usize) -> Self {
        if len == 0 {
            return Self::default();
        }
        let mut memory = vec![0.0; len + LINE_LEN];
        let start = first_on_line(&memory);
        memory.truncate(start + len);
        Self { memory, start }
    }
}

impl Deref for AlignedFloats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory[self.start..]
    }
}

impl DerefMut for AlignedFloats {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.start..]
    }
}
