use brisk_kernels::{DType, Number, Rule, SkipIncomplete, StepCount, StepValue, Update};
use brisk_tensor::{Graph, Persistent};

use crate::origin::Origin;
use crate::parameters::Parameters;

/// Gradients summed over several batches before a step: the result of a large batch with the memory of a small one.
///
/// The recorded step is replayed for each batch; the optimizer, the scaler and averages do nothing until a group of batches is
/// complete, and then see the mean of its gradients. The learning rate of a step is that of its last batch. Dropout draws a new
/// mask for each batch.
///
/// # Reference
/// `accumulate_grad_batches` of PyTorch Lightning: a group ends with the epoch, and a short one is divided by as many batches as
/// the others.
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
    origin: Origin,
    sum: Persistent,
    every: u32,
    n_batches: u32,
}

impl Accumulate {
    /// A step after every `every`-th batch of an epoch.
    pub fn new(params: &Parameters, every: u32) -> Self {
        let sum = Persistent::new("accumulate.sum", DType::F32, params.grads().len());
        Self { origin: params.origin(), sum, every, n_batches: 0 }
    }

    /// Also a step after the last batch of an epoch that has `n_batches`.
    pub fn ending_after(mut self, n_batches: u32) -> Self {
        self.n_batches = n_batches;
        self
    }

    /// Records the accumulation, after the backward pass and before everything that reads gradients, including
    /// [`GradScaler::unscale`](crate::GradScaler::unscale); `state` is the optimizer's.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if `every` is 0; [`Error::Refused`](brisk_tensor::Error::Refused) before
    /// the backward pass, after the step, and for other parameters than those that it was made for or that the loss depends on.
    #[track_caller]
    pub fn record(&self, graph: &Graph, params: &Parameters, state: &Persistent) {
        if let Err(error) = params.origin().check("accumulate", self.origin) {
            return graph.fail(error);
        }
        params.check_before_step("accumulate", graph);
        let [grads, sum, state] = [params.grads(), &self.sum, state].map(|persistent| graph.buffer(persistent));
        let (n, groups) = (params.grads().len(), Groups { every: self.every, n_batches: self.n_batches });
        graph.push(Update::new("sum_batches", Sum(groups), n), &[grads, state, sum]);
        graph.push(Update::new("accumulate_batches", Mean(groups), n), &[sum, state, grads]);
        graph.push(SkipIncomplete { every: self.every, n_batches: self.n_batches }, &[state]);
    }
}

/// Batches of a step; a group is also complete after the epoch's last batch, if that is not 0.
#[derive(Debug, Clone, Copy)]
struct Groups {
    every: u32,
    n_batches: u32,
}

impl Groups {
    /// Whether a batch is the first of its group, and the conditions for the last.
    fn values(self) -> [StepValue; 3] {
        let (of, every) = (StepCount::Batches, self.every);
        let is_first = StepValue::Due { of, first: 1, every };
        // The count of batches is never 0.
        [is_first, StepValue::Due { of, first: every, every }, StepValue::Due { of, first: self.n_batches, every: u32::MAX }]
    }
}

/// The sum of a group that is not complete.
#[derive(Debug, Clone, Copy)]
struct Sum(Groups);

impl Rule<3, 1, 1> for Sum {
    fn values(&self) -> [StepValue; 3] {
        self.0.values()
    }

    #[inline(always)]
    fn takes_place<N: Number>(&self, _is_skipped: N, [_, is_last, ends]: [N; 3]) -> N {
        -(is_last + ends).is_positive() + 1.0
    }

    #[inline(always)]
    fn update<N: Number>(&self, [is_first, ..]: [N; 3], [grad]: [N; 1], [sum]: [N; 1]) -> [N; 1] {
        [is_first.select(grad, sum + grad)]
    }
}

/// The mean of a group with its last batch.
#[derive(Debug, Clone, Copy)]
struct Mean(Groups);

impl Rule<3, 1, 1> for Mean {
    fn values(&self) -> [StepValue; 3] {
        self.0.values()
    }

    #[inline(always)]
    fn takes_place<N: Number>(&self, _is_skipped: N, [_, is_last, ends]: [N; 3]) -> N {
        (is_last + ends).is_positive()
    }

    #[inline(always)]
    fn update<N: Number>(&self, [is_first, ..]: [N; 3], [sum]: [N; 1], [grad]: [N; 1]) -> [N; 1] {
        [is_first.select(grad, sum + grad) * (1.0 / self.0.every as f32)]
    }
}
