//! Networks whose training step is measured on replicas.

use std::time::Instant;

use anyhow::Result;
use brisk_nn::{Adam, Mlp, MlpConfig, Optimizer as _, Parameters, ParametersBuilder, Philox, StepInputs};
use brisk_program::{Device, Executable};
use brisk_replicate::buckets;
use brisk_tensor::{Activation, DType, Graph, Persistent, Reduction};
use brisk_train::{BucketSizes, DataParallel, ReduceOp};

/// An MLP and the number of random rows per replica and step.
#[derive(Clone, Copy)]
pub(crate) struct Network {
    pub(crate) name: &'static str,
    widths: &'static [usize],
    pub(crate) batch: usize,
}

/// A network that one core trains as fast as a server sends its rows.
pub(crate) const SMALL: Network = Network { name: "28-64-64-1", widths: &[28, 64, 64, 1], batch: 1024 };
/// The network of HIGGS.
pub(crate) const HIGGS: Network = Network { name: "28-256-256-256-1", widths: &[28, 256, 256, 256, 1], batch: 1024 };
/// Eight layers whose gradients are 4 MiB each.
pub(crate) const WIDE: Network = Network { name: "8 layers of 1024", widths: &[1024; 9], batch: 128 };

/// Which part of a step is recorded.
pub(crate) enum UpTo<'a> {
    Forward,
    Backward,
    /// The optimizer, after a sum of gradients of all replicas.
    Update(&'a DataParallel),
}

impl Network {
    /// A network so small that it only shows that everything runs.
    pub(crate) fn tiny(self) -> Self {
        Self { widths: &[16; 4], batch: 8, ..self }
    }

    /// The network with batches of so many rows.
    pub(crate) fn with_batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// Bytes of its buckets of gradients.
    pub(crate) fn bucket_bytes(&self) -> Vec<usize> {
        let (_, params) = self.build();
        let ranges: Vec<_> = params.entries().iter().map(|entry| entry.range.clone()).collect();
        buckets(&ranges, 4, BucketSizes::default()).iter().map(|bucket| 4 * bucket.elements.len()).collect()
    }

    fn build(&self) -> (Mlp, Parameters) {
        let [n_inputs, hidden @ .., n_outputs] = self.widths else { unreachable!("a network has inputs and outputs") };
        let mut builder = ParametersBuilder::new();
        let (n_inputs, hidden, n_outputs) = (*n_inputs, hidden.to_vec(), *n_outputs);
        let model = Mlp::new(&mut builder, &MlpConfig { n_inputs, hidden, n_outputs, activation: Activation::relu() });
        (model, builder.build(1))
    }

    /// The program of a step, ready to run.
    pub(crate) fn record(&self, device: &Device, up_to: &UpTo<'_>) -> Result<Recorded> {
        let (model, params) = self.build();
        let random = Philox::new(2);
        let values = |stream: u32, n: usize| (0..n as u64).map(|i| random.uniform(stream, i) - 0.5).collect::<Vec<f32>>();
        let (n_in, n_out) = (self.widths[0], self.widths[self.widths.len() - 1]);

        let graph = Graph::training("step");
        let x = graph.constant("x", &values(0, self.batch * n_in), &[self.batch, n_in]);
        let y = graph.constant("y", &values(1, self.batch * n_out), &[self.batch, n_out]);
        let ones = graph.constant("weights", &vec![1.0; self.batch], &[self.batch]);
        let bound = params.bind(&graph);
        let loss = model.forward(&bound, &x).mse_loss(&y, &ones, Reduction::Mean);
        if !matches!(up_to, UpTo::Forward) {
            graph.backward(&loss)?;
        }
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        let optimizer = Adam::new(&params);
        if let UpTo::Update(replica) = up_to {
            replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Mean, None);
            optimizer.record(&graph, &params, &inputs);
            graph.advance(&inputs.state);
        }
        let step = graph.compile(device)?;
        device.write(&inputs.lr, &[1e-4_f32])?;
        params.write_initial(device)?;
        Ok(Recorded { step, device: device.clone() })
    }
}

pub(crate) struct Recorded {
    step: Executable,
    device: Device,
}

impl Recorded {
    /// Seconds of one execution.
    pub(crate) fn seconds(&self) -> Result<f64> {
        let since = Instant::now();
        self.step.run(1)?;
        self.device.wait()?;
        Ok(since.elapsed().as_secs_f64())
    }
}
