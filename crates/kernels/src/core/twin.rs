use bytemuck::Pod;

/// The buffers of one twin run, typed on the way out.
///
/// Slices live as long as the borrow they were made from, so a twin takes all it needs and then computes.
#[derive(Debug)]
pub struct TwinArgs<'a> {
    slots: Vec<Slot<'a>>,
}

#[derive(Debug)]
enum Slot<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    Taken,
}

impl<'a> TwinArgs<'a> {
    /// An empty list; arguments are added in the order of the kernel's argument list.
    pub fn new() -> Self {
        Self { slots: Vec::with_capacity(8) }
    }

    /// Adds an argument that is only read. The bytes are aligned for their element type.
    pub fn push_read(&mut self, bytes: &'a [u8]) {
        self.slots.push(Slot::Read(bytes));
    }

    /// Adds an argument that is written.
    pub fn push_write(&mut self, bytes: &'a mut [u8]) {
        self.slots.push(Slot::Write(bytes));
    }

    /// Argument `index` as a slice of `T`.
    ///
    /// # Panics
    /// If the argument is not one that is only read, or `T` is not its element type: a mistake in the kernel.
    #[track_caller]
    pub fn read<T: Pod>(&self, index: usize) -> &'a [T] {
        match &self.slots[index] {
            Slot::Read(bytes) => bytemuck::cast_slice(bytes),
            Slot::Write(_) | Slot::Taken => panic!("argument {index} is written, take it with `write`"),
        }
    }

    /// Argument `index` as a mutable slice of `T`, once.
    ///
    /// # Panics
    /// If the argument is only read or has been taken before, or `T` is not its element type: a mistake in the kernel.
    #[track_caller]
    pub fn write<T: Pod>(&mut self, index: usize) -> &'a mut [T] {
        match std::mem::replace(&mut self.slots[index], Slot::Taken) {
            Slot::Write(bytes) => bytemuck::cast_slice_mut(bytes),
            Slot::Read(_) => panic!("argument {index} is only read"),
            Slot::Taken => panic!("argument {index} was taken before"),
        }
    }
}

impl Default for TwinArgs<'_> {
    fn default() -> Self {
        Self::new()
    }
}
