use brisk_kernels::DType;
use brisk_tensor::{Graph, Persistent};

use crate::Parameters;

/// Gradients summed over several batches before a step: the result of a large batch with the memory of a small one.
///
/// The recorded step is replayed for each batch; the optimizer, the scaler and averages do nothing until a group of batches is
/// complete, and then see the mean of its gradients. The learning rate of a step is that of its last batch. Dropout draws a new mask for each batch.
///
/// # Reference
/// `accumulate_grad_batches` of PyTorch Lightning: a group ends with the epoch, and a short one is divided by as many batches as the others.
/// # Examples
/// ```
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::tensor::{DType, Graph, Persistent};
/// use brisk_nn::{Accumulate, Init, Optimizer, ParametersBuilder, Sgd, StepInputs};
///
/// let mut builder = ParametersBuilder::new();
/// builder.add("p", &[1], Init::Constant(1.0));
/// let params = builder.build(0);
///
/// let graph = Graph::training("step");
/// let inputs = StepInputs::new(&graph, 1);
/// let loss = params.bind(&graph).tensors()[0].sum(..); // whose gradient is 1
/// graph.backward(&loss)?;
/// Accumulate::new(&params, 3).record(&graph, &params, &inputs.state);
/// Sgd::new(&params).record(&graph, &params, &inputs);
/// graph.advance(&inputs.state);
///
/// let device = Device::cpu()?;
/// let executable = graph.compile(&device)?;
/// params.write_initial(&device)?;
/// device.write(&inputs.lr, &[0.25_f32])?;
/// for expected in [1.0, 1.0, 0.75, 0.75] {
///     executable.run(1)?;
///     assert_eq!(device.read::<f32>(params.values())?[0], expected);
/// }
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Accumulate {
    sum: Persistent,
    every: u32,
    n_batches: u32,
}

impl Accumulate {
    /// A step after every `every`-th batch of an epoch.
    pub fn new(params: &Parameters, every: u32) -> Self {
        Self { sum: Persistent::new("accumulate.sum", DType::F32, params.grads().len()), every, n_batches: 0 }
    }

    /// Also a step after the last batch of an epoch that has `n_batches`.
    pub fn ending_after(mut self, n_batches: u32) -> Self {
        self.n_batches = n_batches;
        self
    }

    /// Records the accumulation, after the backward pass and before everything that reads gradients, including [`GradScaler::unscale`](crate::GradScaler::unscale); `state` is
    /// the optimizer's.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if `every` is 0.
    #[track_caller]
    pub fn record(&self, graph: &Graph, params: &Parameters, state: &Persistent) {
        let kernel = brisk_kernels::AccumulateBatches { n: params.grads().len(), every: self.every, n_batches: self.n_batches };
        graph.push(kernel, &[params.grads(), &self.sum, state].map(|persistent| graph.buffer(persistent)));
    }
}
