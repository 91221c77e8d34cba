use std::sync::Arc;

use brisk_program::{Device, Executable, Persistent, Program};

use crate::error::Error;
use crate::graph::Graph;

/// The program of a graph without its tape, to be compiled later or on another thread: unlike a graph, it is `Send` and `Sync`.
///
/// # Examples
/// ```
/// use brisk_tensor::program::Device;
/// use brisk_tensor::{DType, Graph, Persistent};
///
/// let graph = Graph::inference("square");
/// let (x, y) = (Persistent::new("x", DType::F32, 2), Persistent::new("y", DType::F32, 2));
/// graph.store(&graph.tensor(&x, &[2]).square(), &Graph::state_buffer(), &y);
/// let recording = graph.recording()?;
/// let device = Device::cpu()?;
/// device.write(&x, &[2.0_f32, 3.0])?;
/// std::thread::scope(|scope| {
///     let run = || recording.compile(&device)?.run(1).map_err(brisk_tensor::Error::from);
///     scope.spawn(run).join().expect("it does not panic")
/// })?;
/// assert_eq!(device.read::<f32>(&y)?, [4.0, 9.0]);
/// # Ok::<(), brisk_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Recording {
    program: Program,
    constants: Vec<(Persistent, Arc<[u8]>)>,
}

impl Graph {
    /// The program that [`compile`](Self::compile) compiles: everything recorded so far, with kernels fused.
    ///
    /// # Errors
    /// The first error of the graph, as [`check`](Self::check); [`Error::NotAdvanced`]; [`Error::SameDraws`];
    /// [`Error::AfterAdvance`].
    pub fn recording(&self) -> Result<Recording, Error> {
        self.check()?;
        self.check_cursors()?;
        Ok(Recording { program: self.fused(), constants: self.inner().constants.clone() })
    }
}

impl Recording {
    /// Compiles the program on `device` and writes the graph's constants there.
    ///
    /// # Errors
    /// [`Error::Program`].
    pub fn compile(&self, device: &Device) -> Result<Executable, Error> {
        let executable = device.compile(&self.program)?;
        for (persistent, values) in &self.constants {
            device.write_bytes(persistent, values)?;
        }
        Ok(executable)
    }
}
