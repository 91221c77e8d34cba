//! The batch index of a run: never advanced, or not reset for a new epoch.

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::sequential_order;
use brisk_tensor::{DType, Error, Graph, Persistent, Reduction, Tensor};

struct Run {
    graph: Graph,
    state: Persistent,
    order: Persistent,
    losses: Persistent,
    grads: Persistent,
    values: Persistent,
}

impl Run {
    /// A step over batches of 2, which stores its losses in a buffer of `n_losses`.
    fn new(n_losses: usize) -> Self {
        let [losses, grads, values] =
            [("losses", n_losses), ("grads", 2), ("values", 2)].map(|(name, n)| Persistent::new(name, DType::F32, n));
        let (graph, state, order) = (Graph::training("step"), Graph::state_buffer(), Graph::order_buffer());
        Self { graph, state, order, losses, grads, values }
    }

    fn loss(&self) -> Tensor {
        let batch = self.graph.batch(&self.order, &self.state, 2);
        let x = self.graph.parameter(&self.values, &self.grads, 0..2, &[2]);
        x.mse_loss(&self.graph.constant("target", &[0.0; 2], &[2]), &batch.weights, Reduction::Mean)
    }

    fn record(&self) -> Result<(), Error> {
        let loss = self.loss();
        self.graph.backward(&loss)?;
        self.graph.store(&loss, &self.state, &self.losses);
        self.graph.check()
    }
}

#[test]
fn a_step_that_never_advances_is_refused() -> Result<(), Error> {
    let device = Device::cpu()?;
    let run = Run::new(3);
    run.record()?;
    let error = run.graph.compile(&device).expect_err("each replay would see the first batch");
    assert!(matches!(error.kind(), Error::NotAdvanced { op: "batch", .. }), "{error}");
    assert!(error.to_string().contains("batch_index.rs:"), "the line of `batch`: {error}");
    run.graph.advance(&Graph::state_buffer());
    assert!(run.graph.compile(&device).is_err(), "another index");
    run.graph.advance(&run.state);
    run.graph.compile(&device)?;

    let held = Run::new(3);
    held.record()?;
    held.graph.hold(&held.state);
    held.graph.compile(&device)?;

    let scores = Graph::inference("scores");
    let (all, state) = (Persistent::new("all", DType::F32, 1), Graph::state_buffer());
    scores.store(&scores.constant("x", &[1.0], &[1]), &state, &all);
    scores.compile(&device)?.run(1)?;
    Ok(())
}

#[test]
fn what_uses_the_state_of_a_step_after_it_has_ended_is_refused() -> Result<(), Error> {
    let device = Device::cpu()?;
    let run = Run::new(3);
    run.record()?;
    run.graph.advance(&run.state);
    run.graph.compile(&device)?;
    run.graph.store(&run.graph.constant("x", &[1.0], &[1]), &run.state, &run.losses);
    let error = run.graph.compile(&device).expect_err("the loss would be stored as that of the next batch");
    assert!(matches!(error.kind(), Error::AfterAdvance { .. }), "{error}");
    run.graph.advance(&run.state);
    assert!(run.graph.compile(&device).is_err(), "the loss is not that of the first step either");

    let run = Run::new(3);
    run.record()?;
    (0..2).for_each(|_| run.graph.advance(&run.state));
    let error = run.graph.compile(&device).expect_err("every other batch would be left out");
    assert!(matches!(error.kind(), Error::AfterAdvance { op: "advance", .. }), "{error}");
    Ok(())
}

#[test]
fn batches_beyond_an_epoch_are_seen_in_the_losses() -> Result<(), Error> {
    let device = Device::cpu()?;
    let run = Run::new(3);
    run.record()?;
    run.graph.advance(&run.state);
    let executable = run.graph.compile(&device)?;
    let error = executable.run(1).expect_err("no order was written").to_string();
    assert!(error.contains("reads `order`"), "{error}");
    device.write(&run.order, &sequential_order(6, 2, 0))?;
    device.write(&run.values, &[1.0_f32, 3.0])?;
    executable.run(2)?;
    assert_eq!(Graph::stored(&device, &run.state, &run.losses)?, [5.0; 2], "two of three batches");
    executable.run(1)?;
    assert_eq!(Graph::stored(&device, &run.state, &run.losses)?, [5.0; 3]);

    executable.run(1)?;
    let error = Graph::stored(&device, &run.state, &run.losses).expect_err("the index was not reset");
    assert!(matches!(error, Error::Overrun { len: 3, n_batches: 4, .. }), "{error}");
    assert!(device.read::<f32>(&run.losses)?[2].is_nan(), "nor is it an old loss");

    device.write_at(&run.state, 0, &[0_u32])?;
    executable.run(3)?;
    assert_eq!(Graph::stored(&device, &run.state, &run.losses)?, [5.0; 3], "another epoch");
    Ok(())
}
