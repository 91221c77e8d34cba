//! Replicas of a model of one number, whose gradients are known; PyTorch's DistributedDataParallel gives the same results.

use std::sync::Mutex;
use std::time::Duration;

use brisk_nn::tensor::program::{Device, Executable, Selection};
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Accumulate, Init, Momentum, Optimizer, Parameters, ParametersBuilder, Placement, Sgd, StepInputs};
use brisk_train::{
    BatchStatistics, DataParallel, DataParallelConfig, Error, ReduceOp, UnevenInputs, Wire, ZeroStage, run_threads,
};

/// A step whose gradient is written to `grad`, with a learning rate of 1.
struct Toy {
    params: Parameters,
    device: Device,
    step: Executable,
    grad: Persistent,
}

impl Toy {
    fn new(replica: &DataParallel, accumulate: u32) -> Result<Self, Error> {
        Self::with_momentum(replica, accumulate, 0.0)
    }

    fn with_momentum(replica: &DataParallel, accumulate: u32, momentum: f32) -> Result<Self, Error> {
        let mut builder = ParametersBuilder::new();
        builder.add("p", &[1], Init::Constant(100.0 * replica.rank() as f32));
        builder.add_buffer("b", &[2], replica.rank() as f32);
        let params = replica.shard_parameters(builder.build(0))?;
        let graph = Graph::training("toy");
        let grad = Persistent::new("grad", DType::F32, 1);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        let bound = params.bind(&graph);
        let loss = bound.tensors()[0].multiply(&graph.tensor(&grad, &[1])).sum(..);
        graph.backward(&loss)?;
        let state = (accumulate > 1).then_some(&inputs.state);
        if let Some(state) = state {
            Accumulate::new(&params, accumulate).record(&graph, &params, state);
        }
        replica.gather_parameters(&graph, &params, &bound);
        replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Mean, state);
        Sgd::new(&params).momentum(momentum, Momentum::Heavy).record(&graph, &params, &inputs);
        replica.gather_stepped(&graph, &params, state);
        graph.advance(&inputs.state);
        let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
        let step = graph.compile(&device)?;
        params.write_initial(&device)?;
        replica.broadcast_model(&device, &params)?;
        device.write(&inputs.lr, &[1.0_f32])?;
        Ok(Self { params, device, step, grad })
    }

    /// Takes a step with this gradient, and returns the weight after it.
    fn step(&self, grad: f32) -> Result<f32, Error> {
        self.device.write(&self.grad, &[grad])?;
        self.step.run(1)?;
        self.weight()
    }

    fn weight(&self) -> Result<f32, Error> {
        Ok(self.device.read::<f32>(self.params.values())?[0])
    }
}

/// The weights of two replicas whose gradients are 1 and 2.
fn weights(accumulate: u32, n_steps: usize) -> Result<Vec<Vec<f32>>, Error> {
    run_threads(2, &DataParallelConfig::default(), |replica| {
        let toy = Toy::new(replica, accumulate)?;
        (0..n_steps).map(|_| toy.step(1.0 + replica.rank() as f32)).collect()
    })
}

#[test]
fn replicas_of_threads_do_not_finish_themselves() {
    let result = run_threads(2, &DataParallelConfig::default(), |replica| replica.finish());
    let error = result.expect_err("`run_threads` finishes them").to_string();
    assert!(error.contains("finish: a replica within `run_threads`"), "{error}");
}

#[test]
fn replicas_start_as_the_first_and_take_the_mean() -> Result<(), Error> {
    assert_eq!(weights(1, 2)?, [[-1.5, -3.0]; 2], "the mean of 1 and 2 is 1.5");
    Ok(())
}

#[test]
fn gradients_are_summed_at_home_before_they_are_reduced() -> Result<(), Error> {
    // PyTorch's `no_sync` around the first two: (1 + 1 + 1, 2 + 2 + 2), whose mean is 4.5; a third of it where losses are divided
    // by 3.
    assert_eq!(weights(3, 4)?, [[0.0, 0.0, -1.5, -1.5]; 2], "a step every third batch");
    Ok(())
}

/// Replica 1 has three batches of gradient 2, replica 0 one of gradient 1; then both have one more. Replica 0 has the only
/// parameter if that is sharded.
fn joined(config: DataParallelConfig) -> Result<Vec<f32>, Error> {
    run_threads(2, &config, |replica| {
        let toy = Toy::with_momentum(replica, 1, 0.5)?;
        for n_batches in [[1, 3][replica.rank()], 1] {
            for _ in 0..n_batches {
                toy.step(1.0 + replica.rank() as f32)?;
            }
            replica.join(&toy.step, &toy.params)?;
        }
        let held: Vec<f32> = toy.device.read(toy.params.values())?;
        let is_sharded = toy.params.sharding().is_some_and(|sharding| sharding.values == Placement::Sharded);
        Ok(if is_sharded { replica.whole(&toy.params, &held)?[0] } else { held[0] })
    })
}

#[test]
fn a_replica_without_batches_joins_the_others() -> Result<(), Error> {
    let default = DataParallelConfig::default();
    let weight = |means: [f32; 4]| {
        let descend = |(weight, velocity): (f32, f32), mean| (weight - (0.5 * velocity + mean), 0.5 * velocity + mean);
        means.into_iter().fold((0.0, 0.0), descend).0
    };
    for zero in [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters] {
        for wire in [Wire::F32, Wire::Bf16] {
            for (uneven, means) in
                [(UnevenInputs::DividedByAll, [1.5, 1.0, 1.0, 1.5]), (UnevenInputs::DividedByActive, [1.5, 2.0, 2.0, 1.5])]
            {
                let found = joined(DataParallelConfig { uneven: Some(uneven), zero, wire, ..default })?;
                assert_eq!(found, [weight(means); 2], "{zero:?}, {wire:?}, {uneven:?}");
            }
        }
        let refused = joined(DataParallelConfig { uneven: Some(UnevenInputs::Refused), zero, ..default });
        assert_eq!(
            refused.expect_err("they have not as many").to_string(),
            "1 of 2 replicas have a batch, 1 of 2 replicas have none left; give each the same number of batches, or let those that are done join",
            "{zero:?}"
        );
    }
    for (uneven, batch_norm) in [(None, BatchStatistics::OfReplica), (Some(UnevenInputs::DividedByAll), BatchStatistics::OfAll)] {
        let error = joined(DataParallelConfig { uneven, batch_norm, ..default }).expect_err("batches are not counted");
        assert!(matches!(error, Error::Setting { name: "uneven", .. }), "{error}");
    }
    Ok(())
}

#[test]
fn even_replicas_that_may_join_do_not_notice() -> Result<(), Error> {
    let config = DataParallelConfig { uneven: Some(UnevenInputs::Refused), ..DataParallelConfig::default() };
    let weights = run_threads(3, &config, |replica| {
        let toy = Toy::new(replica, 1)?;
        toy.step(replica.rank() as f32)?;
        toy.step(3.0 * replica.rank() as f32)?;
        replica.join(&toy.step, &toy.params)?;
        toy.weight()
    })?;
    assert_eq!(weights, [-4.0; 3], "means of 1, then 3");
    Ok(())
}

#[test]
fn buffers_are_those_of_the_first() -> Result<(), Error> {
    let buffers = run_threads(3, &DataParallelConfig::default(), |replica| {
        let toy = Toy::new(replica, 1)?;
        toy.device.write(toy.params.buffers()[0].values(), &[5.0_f32 + replica.rank() as f32, 7.0])?;
        replica.broadcast_buffers(&toy.device, &toy.params)?;
        Ok::<_, Error>(toy.device.read::<f32>(toy.params.buffers()[0].values())?)
    })?;
    assert_eq!(buffers, [[5.0, 7.0]; 3], "of rank 0");
    Ok(())
}

#[test]
fn a_tensor_is_reduced_where_it_is_wanted() -> Result<(), Error> {
    let sums = run_threads(3, &DataParallelConfig::default(), |replica| {
        let graph = Graph::inference("sum");
        let x = graph.constant("x", &[1.0, replica.rank() as f32], &[2]);
        let (largest, sum) = (replica.all_reduce(&graph, &x, ReduceOp::Max), replica.all_reduce(&graph, &x, ReduceOp::Sum));
        let y = Persistent::new("y", DType::F32, 2);
        let state = Graph::state_buffer();
        graph.store(&largest.add(&sum), &state, &y);
        let device = Device::cpu()?;
        graph.compile(&device)?.run(1)?;
        Ok::<_, Error>(device.read::<f32>(&y)?)
    })?;
    assert_eq!(sums, [[4.0, 5.0]; 3], "3 and 1, 3 and 2");
    Ok(())
}

#[test]
fn a_panic_and_an_error_end_the_others() {
    let seen = Mutex::new(Vec::new());
    let end = |how: fn() -> Result<(), Error>| {
        run_threads(2, &DataParallelConfig::default(), |replica| {
            let toy = Toy::new(replica, 1)?;
            toy.step(1.0)?;
            if replica.rank() == 1 {
                how()?;
            }
            let error = toy.step(1.0).expect_err("the other is gone");
            seen.lock().expect("no panic holds it").push(error.to_string());
            Err::<(), _>(error)
        })
    };
    let panicked = end(|| panic!("a shelf fell over")).expect_err("it panicked").to_string();
    assert_eq!(panicked, "rank 1 failed: a shelf fell over; the run ends, start again from the last checkpoint");
    let failed = end(|| Err(Error::NoEpoch { n_epochs: 0, checkpoint: None })).expect_err("it failed").to_string();
    assert_eq!(failed, Error::NoEpoch { n_epochs: 0, checkpoint: None }.to_string(), "the error of the one that failed first");
    let seen = seen.into_inner().expect("no panic held it");
    assert_eq!(seen.len(), 2, "the other saw both");
    assert!(seen[1].starts_with("rank 1 failed: stopped before the end"), "{seen:?}");
}

#[test]
fn what_is_reduced_and_waited_for_is_counted() -> Result<(), Error> {
    run_threads(2, &DataParallelConfig::default(), |replica| {
        let toy = Toy::new(replica, 1)?;
        toy.step(1.0)?;
        let overlap = replica.overlap();
        assert_eq!((overlap.n_reductions(), overlap.reduced_bytes()), (1, 4), "a bucket of one number");
        assert!(overlap.reducing() > Duration::ZERO && overlap.waiting() > Duration::ZERO, "both take time");
        Ok::<_, Error>(())
    })
    .map(drop)
}
