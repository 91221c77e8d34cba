//! Several batches per step, compared with one step by the mean of their gradients.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Accumulate, Adam, Ema, Error, GradScaler, GradScalerConfig, Init, ParametersBuilder, StepInputs};

/// Parameter, average and scale after each batch of an epoch whose gradients are given; `every` batches make a step.
fn run(grads: &[f32], every: Option<u32>, rates: &[f32]) -> Result<(Vec<[f32; 3]>, Vec<u32>), Error> {
    let mut builder = ParametersBuilder::new();
    builder.add("p", &[1], Init::Constant(1.0));
    let params = builder.build(0);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, rates.len()), state: Graph::state_buffer() };
    let factor = Persistent::new("factor", DType::F32, 1);
    let scaler = GradScaler::new(GradScalerConfig { init_scale: 1024.0, growth_interval: 2, ..GradScalerConfig::default() })?;
    let (adam, ema) = (Adam::new(&params), Ema::new(&params, 0.5));

    let graph = Graph::training("step");
    let loss = params.bind(&graph).tensors()[0].multiply(&graph.tensor(&factor, &[1])).sum(..);
    scaler.backward(&loss)?;
    if let Some(every) = every {
        let n_batches = u32::try_from(grads.len()).expect("a few");
        Accumulate::new(&params, every).ending_after(n_batches).record(&graph, &params, &inputs.state);
    }
    let unscaled = scaler.unscale(&graph, &params, &inputs);
    params.clip_grad_norm(&graph, 0.25);
    unscaled.step(&adam);
    ema.record(&graph, &params, &inputs.state);
    scaler.update(&graph);
    graph.advance(&inputs.state);

    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    scaler.write_initial(&device)?;
    device.write(&inputs.lr, rates)?;
    let batch = |&grad: &f32| {
        device.write(&factor, &[grad])?;
        executable.run(1)?;
        let first = |buffer: &Persistent| Ok::<_, Error>(device.read::<f32>(buffer)?[0]);
        Ok([first(params.values())?, first(ema.average())?, scaler.report(&device)?.scale])
    };
    let found = grads.iter().map(batch).collect::<Result<_, Error>>()?;
    Ok((found, device.read(&inputs.state)?))
}

#[test]
fn a_group_of_batches_is_one_step_by_their_mean() -> Result<(), Error> {
    let grads = [0.5, 0.25, 1.0, f32::INFINITY, -0.75, 0.25, 0.125, 0.5, 2.0];
    let rates = [9.0, 0.1, 9.0, 0.2, 9.0, 0.3, 9.0, 0.4, 0.5];
    let (by_batch, state) = run(&grads, Some(2), &rates)?;
    // The last batch is a group by itself, and still divided by two.
    let means = [0.375, f32::INFINITY, -0.25, 0.3125, 1.0];
    let (by_mean, _) = run(&means, None, &[0.1, 0.2, 0.3, 0.4, 0.5])?;
    assert_eq!([1, 3, 5, 7, 8].map(|batch| by_batch[batch]), by_mean[..], "after each group, bit-identical");
    assert_eq!(
        by_mean.iter().map(|at| at[2]).collect::<Vec<_>>(),
        [1024.0, 512.0, 512.0, 1024.0, 1024.0],
        "the second is skipped"
    );
    assert_eq!(by_batch[0], [1.0, 0.0, 1024.0], "before the first");
    for batch in [2, 4, 6] {
        assert_eq!(by_batch[batch], by_batch[batch - 1], "within a group parameters, average and scale stay");
    }
    assert_eq!(
        state,
        [9, 9, 0, 5],
        "nine batches, five of them no steps: one each of four groups, and the group that was skipped"
    );
    Ok(())
}

#[test]
fn groups_of_one_are_as_good_as_none() -> Result<(), Error> {
    let (grads, rates) = ([0.5, f32::NAN, 1.0], [0.1, 0.2, 0.3]);
    assert_eq!(run(&grads, Some(1), &rates)?, run(&grads, None, &rates)?, "a group of one");
    assert!(run(&grads, Some(0), &rates).is_err(), "groups of none");
    Ok(())
}
