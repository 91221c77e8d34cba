//! Inference keeps nothing for a backward pass.

use brisk_tensor::program::Device;
use brisk_tensor::{Activation, DType, Error, Graph, Mode, Persistent, Reduction};

const ROWS: usize = 256;
const UNITS: usize = 64;

/// Six layers and, if there is a tape, their backward pass.
fn record(mode: Mode) -> Result<Graph, Error> {
    let graph = Graph::new("net", mode);
    let buffer = |name, len| Persistent::new(name, DType::F32, len);
    let mut x = graph.tensor(&buffer("x", ROWS * UNITS), &[ROWS, UNITS]);
    for _ in 0..6 {
        let (values, grads) = (buffer("values", UNITS * UNITS), buffer("grads", UNITS * UNITS));
        let weight = graph.parameter(&values, &grads, 0..UNITS * UNITS, &[UNITS, UNITS]);
        x = x.linear(&weight, None, Activation::relu());
    }
    let (target, weight) = (buffer("target", ROWS * UNITS), buffer("weight", ROWS));
    let loss = x.mse_loss(&graph.tensor(&target, &[ROWS, UNITS]), &graph.tensor(&weight, &[ROWS]), Reduction::Mean);
    if mode == Mode::Training {
        graph.backward(&loss)?;
    }
    Ok(graph)
}

#[test]
fn inference_plans_less_transient_memory_than_training() -> Result<(), Error> {
    let transient_bytes = |mode| Ok::<_, Error>(record(mode)?.with_program(|program| program.plan())?.transient_bytes());
    let (training, inference) = (transient_bytes(Mode::Training)?, transient_bytes(Mode::Inference)?);
    let activation = ROWS * UNITS * size_of::<f32>();
    assert!(training >= 6 * activation, "backward needs all six activations, of {activation} bytes; planned were {training}");
    assert!(inference <= 3 * activation, "two activations and a transposed weight are enough; planned were {inference}");
    Ok(())
}

#[test]
fn what_is_planned_is_what_is_allocated() -> Result<(), Error> {
    let (training, inference) = (record(Mode::Training)?, record(Mode::Inference)?);
    let planned = Graph::planned_peak_bytes(&[&training, &inference])?;
    let device = Device::cpu()?;
    let executables = [training.compile(&device)?, inference.compile(&device)?];
    for executable in &executables {
        executable.run(2)?;
        assert_eq!(device.allocated_bytes(), planned, "after a run");
    }
    Ok(())
}
