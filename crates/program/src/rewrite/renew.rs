use crate::record::program::{Program, Slice};

impl Program {
    /// The kernels recorded so far that read elements of `slice`, in order.
    pub fn readers(&self, slice: Slice) -> Vec<usize> {
        let reads = |&at: &usize| self.steps[at].args.iter().any(|arg| arg.access.reads() && arg.overlaps(slice));
        (0..self.n_kernels()).filter(reads).collect()
    }

    /// Replaces the transient of `slice` by a new one in the kernels from `at` on, and returns the same range of the new one: for
    /// values that are written again before these kernels, so that they need not be kept in between.
    ///
    /// Kernels that are recorded later are not affected: they use the slices that they are recorded with.
    ///
    /// # Examples
    /// ```
    /// use brisk_program::{Persistent, Program, kernels::{DType, Map}};
    ///
    /// let mut program = Program::new("twice");
    /// let relu = Map::unary(256, |x| x.relu());
    /// let [x, y, z] = ["x", "y", "z"].map(|name| program.persistent(&Persistent::new(name, DType::F32, 256)));
    /// let weights = program.transient("weights", DType::F32, 256);
    /// for (from, to) in [(x, weights), (weights, y), (x, weights), (weights, z)] {
    ///     program.push(relu.clone(), &[from, to])?;
    /// }
    /// assert_eq!(program.readers(weights), [1, 3]);
    /// let again = program.renewed(weights, 2);
    /// assert_eq!((program.readers(weights), program.readers(again)), (vec![1], vec![3]));
    /// # Ok::<(), brisk_program::Error>(())
    /// ```
    pub fn renewed(&mut self, slice: Slice, at: usize) -> Slice {
        let copy = self.copy_of(slice.buffer);
        self.replace_buffer(at, slice.buffer, copy);
        slice.of_buffer(copy)
    }
}
