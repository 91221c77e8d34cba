use brisk_nn::{Module, Optimizer, Parameters};

/// What is trained: a module, its parameters, and the optimizer that updates them. [`Model`](crate::Model) and a
/// [`Trainer`](crate::Trainer)'s optimizer make one; make it yourself to keep the three separate.
#[derive(Debug, Clone, Copy)]
pub struct Trainable<'a> {
    /// Records the forward pass.
    pub module: &'a dyn Module,
    /// The module's parameters.
    pub params: &'a Parameters,
    /// The optimizer, made for these parameters.
    pub optimizer: &'a dyn Optimizer,
}

impl<'a> Trainable<'a> {
    /// The three together.
    pub fn new(module: &'a dyn Module, params: &'a Parameters, optimizer: &'a dyn Optimizer) -> Self {
        Self { module, params, optimizer }
    }
}
