//! Parameters of which this replica keeps only a part.

use std::sync::Arc;

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{AllGather, DType, Graph, Persistent};
use brisk_nn::{
    Adam, Ema, Error, Init, Optimizer, ParameterGroup, Parameters, ParametersBuilder, Placement, Sgd, ShardedBucket, Sharding,
    StepInputs,
};

/// Replicas that exchange nothing.
#[derive(Debug)]
struct Unused;

impl AllGather for Unused {
    fn all_gather(&self, _: &[f32]) -> Result<Vec<f32>, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing is gathered".into())
    }
}

/// Two parameters, of 200 and 100 elements, at 0 and 256.
fn parameters() -> Parameters {
    let mut builder = ParametersBuilder::new();
    let ids = [200, 100].map(|n| builder.add(format!("p{n}"), &[n], Init::Constant(0.0)));
    let mut params = builder.build(0);
    for id in ids {
        let range = params.entry(id).range.clone();
        let values: Vec<f32> = range.clone().map(|i| i as f32).collect();
        params.set_initial(id, &values).expect("as many as there are");
    }
    params
}

/// One bucket per parameter, the last parameter first; the middle of each bucket belongs to this replica.
fn sharding(values: Placement, gradients: Placement) -> Sharding {
    let bucket = |elements, own| ShardedBucket { elements, own, piece_len: 128 };
    Sharding { buckets: vec![bucket(256..384, 320..384), bucket(0..256, 64..192)], gradients, values }
}

/// All values after a step by this replica, whose gradients are 1.
fn after_a_step(params: &Parameters, optimizer: &dyn Optimizer) -> Result<Vec<f32>, Error> {
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    optimizer.record(&graph, params, &inputs);
    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write(params.grads(), &vec![1.0_f32; params.grads().len()])?;
    device.write(&inputs.lr, &[0.5_f32])?;
    executable.run(1)?;
    Ok(device.read(params.values())?)
}

#[test]
fn an_optimizer_steps_what_is_own_wherever_it_lies() -> Result<(), Error> {
    let start = parameters().initial().to_vec();
    let is_own = |i: usize| (64..192).contains(&i) || i >= 320;
    let stepped: Vec<f32> = start.iter().enumerate().map(|(i, value)| if is_own(i) { value - 0.5 } else { *value }).collect();
    for (values, gradients) in [
        (Placement::Replicated, Placement::Replicated),
        (Placement::Replicated, Placement::Sharded),
        (Placement::Sharded, Placement::Sharded),
    ] {
        let params = parameters().sharded(sharding(values, gradients), Arc::new(Unused))?;
        let sgd = Sgd::new(&params);
        assert_eq!(sgd.state()[0].1.len(), 192, "state of this replica's elements only");
        let expected = params.values_of(&stepped);
        assert_eq!(after_a_step(&params, &sgd)?, expected, "{values:?}, {gradients:?}");
        assert_eq!(params.pieces().len(), if values == Placement::Sharded { 1 } else { 2 });
    }
    Ok(())
}

#[test]
fn what_is_own_lies_in_the_order_of_buckets() -> Result<(), Error> {
    let params = parameters().sharded(sharding(Placement::Sharded, Placement::Sharded), Arc::new(Unused))?;
    let flat: Vec<f32> = (0..384).map(|i| i as f32).collect();
    let own: Vec<f32> = (320..384).chain(64..192).map(|i| i as f32).collect();
    assert_eq!((params.state_of(&flat), params.values_of(&flat)), (own.clone(), own));
    assert_eq!((params.len(), params.state_len(), params.values().len(), params.grads().len()), (384, 192, 192, 192));
    assert_eq!(parameters().values_of(&flat), flat, "all, where nothing is sharded");
    Ok(())
}

#[test]
fn groups_are_those_of_the_elements() -> Result<(), Error> {
    for (values, gradients) in [(Placement::Replicated, Placement::Replicated), (Placement::Sharded, Placement::Sharded)] {
        let params = parameters().sharded(sharding(values, gradients), Arc::new(Unused))?;
        let fast = ParameterGroup::new([params.id_of("p100").expect("it is there")]).lr_factor(4.0);
        let adam = Sgd::new(&params).groups(&params, &[fast])?;
        let start = parameters().initial().to_vec();
        let expected: Vec<f32> = start.iter().enumerate().map(|(i, value)| if i >= 320 { value - 2.0 } else { *value }).collect();
        assert_eq!(after_a_step(&params, &adam)?, params.values_of(&expected), "a parameter in no group stays");
    }
    Ok(())
}

/// With fewer elements than replicas, one replica has none: it updates nothing.
#[test]
fn a_replica_may_have_nothing() -> Result<(), Error> {
    let bucket = |elements, own| ShardedBucket { elements, own, piece_len: 128 };
    for kept in [Placement::Replicated, Placement::Sharded] {
        let buckets = vec![bucket(256..384, 384..384), bucket(0..256, 256..256)];
        let params = parameters().sharded(Sharding { buckets, gradients: kept, values: kept }, Arc::new(Unused))?;
        assert!(params.pieces().is_empty());
        let adam = Adam::new(&params);
        let graph = Graph::inference("step");
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        adam.record(&graph, &params, &inputs);
        assert_eq!(graph.with_program(|program| program.n_kernels()), 0);
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<(), Error> {
    let bucket = |elements, own| ShardedBucket { elements, own, piece_len: 128 };
    let whole = |buckets| Sharding { buckets, gradients: Placement::Sharded, values: Placement::Sharded };
    for buckets in [vec![], vec![bucket(0..256, 0..64)], vec![bucket(0..384, 0..100)], vec![bucket(0..384, 320..448)]] {
        let error = parameters().sharded(whole(buckets), Arc::new(Unused)).expect_err("it does not fit").to_string();
        assert!(error.contains("buckets of 384 elements, cut at multiples of 64"), "{error}");
    }
    let params = parameters();
    let adam = Adam::new(&params);
    let params = params.sharded(sharding(Placement::Sharded, Placement::Sharded), Arc::new(Unused))?;
    let error = after_a_step(&params, &adam).expect_err("its state is whole").to_string();
    assert!(error.contains("make the optimizer for these parameters, after they are sharded"), "{error}");
    let graph = Graph::inference("ema");
    Ema::new(&params, 0.9).record(&graph, &params, &Graph::state_buffer());
    let error = graph.check().expect_err("an average of all").kind().to_string();
    assert_eq!(error, "ema: parameters that are sharded across replicas, expected parameters that each replica keeps whole");
    Ok(())
}
