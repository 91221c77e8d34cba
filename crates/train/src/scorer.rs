use brisk_loader::Order;
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Module, Parameters};

use crate::{Error, ResidentRows, Standardisation};

/// A model's outputs over a whole resident table: recorded without a tape, scores collected on the device and read once.
#[derive(Debug)]
pub struct Scorer {
    graph: Graph,
    executable: Executable,
    state: Persistent,
    scores: Persistent,
    rows: ResidentRows,
    batch_rows: usize,
}

impl Scorer {
    /// Records and compiles the evaluation of `model`, which gives one number a row.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the model does not take such rows, or the device has no room.
    pub fn new(
        device: &Device,
        model: &dyn Module,
        params: &Parameters,
        rows: &ResidentRows,
        scale: &Standardisation,
        batch_rows: usize,
    ) -> Result<Self, Error> {
        let batch_rows = batch_rows.min(rows.n_rows());
        let graph = Graph::inference("evaluate");
        let state = Graph::state_buffer();
        let scores = Persistent::new("scores", DType::F32, rows.n_rows());
        let batch = rows.record(&graph, scale, &state, batch_rows)?;
        let logits = model.forward(&params.bind(&graph)?, &batch.x)?;
        graph.store(&logits, &state, &scores)?;
        graph.advance(&state)?;
        let executable = graph.compile(device)?;
        Ok(Self { graph, executable, state, scores, rows: rows.clone(), batch_rows })
    }

    /// The model's output for every row, in the table's order.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device fails.
    pub fn scores(&self) -> Result<Vec<f32>, Error> {
        let device = self.executable.device();
        self.rows.set_order(device, Order::Sequential, 0, self.batch_rows)?;
        device.write(&self.state, &[0_u32; 4])?;
        self.executable.run(self.rows.n_batches(self.batch_rows))?;
        Ok(device.read(&self.scores)?)
    }

    /// What is replayed, to plan memory with.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}
