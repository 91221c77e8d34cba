//! Fusing kernels of a graph does not change results.

use brisk_nn::tensor::program::{Device, Rewrite};
use brisk_nn::tensor::{CrossEntropyOptions, DType, Error, Graph, Persistent, Tensor};
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, Bias, Bound, Conv2d, Conv2dConfig, Linear, Optimizer, ParametersBuilder,
    StepInputs,
};

const N_ROWS: usize = 6;
const SHAPE: [usize; 4] = [N_ROWS, 5, 5, 4];

/// Two residual blocks with activations, then scores.
struct Residual {
    blocks: Vec<(Conv2d, BatchNorm)>,
    head: Linear,
    activation: Activation,
}

impl Residual {
    fn new(params: &mut ParametersBuilder, activation: Activation) -> Self {
        let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(4, 4, 3) };
        let mut block = |i| {
            let norm = BatchNorm::new(params, &format!("norm{i}"), &BatchNormConfig::new(4));
            (Conv2d::new(params, &format!("conv{i}"), &conv), norm)
        };
        let blocks = vec![block(0), block(1)];
        Self { blocks, head: Linear::new(params, "head", 4, 3, Activation::identity()), activation }
    }

    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let block = |x: Tensor, (conv, norm): &(Conv2d, BatchNorm)| {
            norm.forward(params, &conv.forward(params, &x)).add(&x).activate(self.activation.clone())
        };
        let x = self.blocks.iter().fold(x.clone(), block);
        self.head.forward(params, &x.global_avg_pool2d())
    }
}

/// The parameters after three steps, and the kernels of one.
fn train(activation: Activation, rewrites: Option<&[Rewrite]>) -> Result<(Vec<f32>, Vec<&'static str>), Error> {
    let mut builder = ParametersBuilder::new();
    let model = Residual::new(&mut builder, activation);
    let params = builder.build(7);
    let graph = Graph::training("residual");
    if let Some(rewrites) = rewrites {
        graph.fuse_by(rewrites);
    }
    let values: Vec<f32> = (0..SHAPE.iter().product()).map(|i: usize| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let scores = model.forward(&params.bind(&graph), &graph.constant("x", &values, &SHAPE));
    let labels = graph.constant_codes("labels", &[0, 1, 2, 0, 1, 2], &[N_ROWS]);
    let weights = graph.constant("weights", &[1.0; N_ROWS], &[N_ROWS]);
    graph.backward(&scores.cross_entropy(&labels, &weights, CrossEntropyOptions::default()))?;
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    Adam::new(&params).record(&graph, &params, &inputs);
    graph.advance(&inputs.state);

    let device = Device::cpu()?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[0.01_f32])?;
    let executable = graph.compile(&device)?;
    assert_eq!(executable.plan(), &graph.fused().plan()?, "what is compiled can be looked at");
    executable.run(3)?;
    Ok((device.read(params.values())?, graph.fused().kernel_names().collect()))
}

#[test]
fn the_same_bits_with_fewer_kernels() -> Result<(), Error> {
    for activation in [Activation::relu(), Activation::gelu(), Activation::tanh()] {
        let (fused, kernels) = train(activation.clone(), None)?;
        let (plain, all_kernels) = train(activation.clone(), Some(&[]))?;
        // Each sum is fused with its activation, in place or not.
        let n = |kernels: &[&str], name| kernels.iter().filter(|kernel| kernel.starts_with(name)).count();
        assert!(n(&all_kernels, "map_in_place") == 0 && n(&kernels, "map_in_place") > 0, "{activation:?}: {kernels:?}");
        assert!(n(&kernels, "map") < n(&all_kernels, "map"), "{activation:?}: {kernels:?}, of {all_kernels:?}");
        assert!(fused.iter().zip(&plain).all(|(a, b)| a.to_bits() == b.to_bits()), "{activation:?}: {fused:?}, {plain:?}");
    }
    Ok(())
}
