//! Layers for images: names and shapes like PyTorch's, and what training changes and evaluation does not.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Mode, Persistent, Pool2d, PoolDivisor};
use brisk_nn::{
    Activation, AvgPool2d, BatchNorm, BatchNormConfig, Bias, Conv2d, Conv2dConfig, Error, Filters, GlobalAvgPool2d,
    GlobalMaxPool2d, Linear, MaxPool2d, Module, Parameters, ParametersBuilder, Scale, Sequential,
};

/// The output of `model` for `x`, and the values of the buffers after it.
fn run(
    model: &dyn Module,
    params: &Parameters,
    mode: Mode,
    x: &[f32],
    shape: &[usize],
) -> Result<(Vec<f32>, Vec<Vec<f32>>), Error> {
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let graph = Graph::new("net", mode);
    let y = model.forward(&params.bind(&graph), &graph.constant("x", x, shape));
    let (state, result) = (Graph::state_buffer(), Persistent::new("y", DType::F32, y.n_elements()));
    graph.store(&y, &state, &result);
    graph.compile(&device)?.run(1)?;
    let buffers = params.buffers().iter().map(|buffer| device.read(buffer.values())).collect::<Result<_, _>>()?;
    Ok((device.read(&result)?, buffers))
}

#[test]
fn names_and_shapes_are_those_of_a_state_dict() {
    let mut builder = ParametersBuilder::new();
    Conv2d::new(&mut builder, "conv", &Conv2dConfig { kernel: [3, 5], ..Conv2dConfig::square(2, 4, 3) });
    Conv2d::new(&mut builder, "bare", &Conv2dConfig { bias: Bias::None, ..Conv2dConfig::square(4, 4, 1) });
    Conv2d::new(&mut builder, "depthwise", &Conv2dConfig { n_groups: 4, ..Conv2dConfig::square(4, 8, 3) });
    BatchNorm::new(&mut builder, "norm", &BatchNormConfig::new(4));
    BatchNorm::new(&mut builder, "frozen", &BatchNormConfig { scale: Scale::Frozen, ..BatchNormConfig::new(4) });
    Linear::without_bias(&mut builder, "head", 4, 2, Activation::identity());
    let params = builder.build(0);
    let entries: Vec<_> = params.entries().iter().map(|entry| (entry.name.as_str(), entry.shape.as_slice())).collect();
    assert_eq!(
        entries,
        [
            ("conv.weight", &[4, 3, 5, 2][..]),
            ("conv.bias", &[4]),
            ("bare.weight", &[4, 1, 1, 4]),
            ("depthwise.weight", &[8, 3, 3, 1]),
            ("depthwise.bias", &[8]),
            ("norm.weight", &[4]),
            ("norm.bias", &[4]),
            ("frozen.bias", &[4]),
            ("head.weight", &[2, 4]),
        ]
    );
    let buffers: Vec<_> = params.buffers().iter().map(|buffer| buffer.name()).collect();
    let expected = ["norm.running_mean", "norm.running_var", "frozen.weight", "frozen.running_mean", "frozen.running_var"];
    assert_eq!(buffers, expected, "what is not trained");
    assert!(params.id_of("norm.bias").is_some(), "found by name");
    assert_eq!(params.id_of("norm.running_mean"), None, "a buffer is no parameter");
}

#[test]
fn convolutions_start_as_pytorchs() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    Conv2d::new(&mut builder, "conv", &Conv2dConfig::square(4, 64, 3));
    let params = builder.build(3);
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let values: Vec<f32> = device.read(params.values())?;
    let (weight, bound) = (&values[params.entries()[0].range.clone()], 1.0 / 36.0_f32.sqrt());
    let largest = weight.iter().fold(0.0_f32, |largest, w| largest.max(w.abs()));
    assert!(largest <= bound && largest > 0.99 * bound, "{largest} of at most {bound}");
    Ok(())
}

#[test]
fn groups_and_dilation_are_those_of_pytorch() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let config = Conv2dConfig { stride: [1, 2], padding: [1, 0], dilation: [2, 1], n_groups: 2, ..Conv2dConfig::square(4, 4, 2) };
    let conv = Conv2d::new(&mut builder, "conv", &config);
    let mut params = builder.build(0);
    // torch.nn.Conv2d(4, 4, 2, stride=(1, 2), padding=(1, 0), dilation=(2, 1), groups=2) of the same numbers, in NCHW and OIHW.
    let integers = |n: usize, step: usize, modulus: usize| -> Vec<f32> {
        (0..n).map(|i| (step * i % modulus) as f32 - (modulus / 2) as f32).collect()
    };
    params.set_initial(params.id_of("conv.weight").expect("the filters"), &integers(32, 5, 7))?;
    params.set_initial(params.id_of("conv.bias").expect("the bias"), &[0.0, 1.0, 2.0, 3.0])?;
    let (y, _) = run(&conv, &params, Mode::Inference, &integers(48, 7, 11), &[1, 3, 4, 4])?;
    let expected = [
        -5.0, -17.0, 4.0, -9.0, -5.0, -18.0, 2.0, -12.0, 9.0, -29.0, 2.0, 8.0, 17.0, 6.0, 24.0, -27.0, 19.0, -14.0, -3.0, -16.0,
        16.0, -11.0, -1.0, -15.0,
    ];
    assert_eq!(y, expected);
    Ok(())
}

#[test]
fn depthwise_filters_start_as_the_identity_or_with_the_bound_of_their_fan_in() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let depthwise = Conv2dConfig { padding: [1, 1], n_groups: 3, bias: Bias::None, ..Conv2dConfig::square(3, 3, 3) };
    let identity = Conv2d::new(&mut builder, "identity", &Conv2dConfig { filters: Filters::Dirac, ..depthwise.clone() });
    Conv2d::new(&mut builder, "many", &Conv2dConfig { n_groups: 64, ..Conv2dConfig::square(64, 128, 3) });
    let params = builder.build(3);
    let x: Vec<f32> = (0..2 * 4 * 4 * 3).map(|i| i as f32).collect();
    let (y, _) = run(&identity, &params, Mode::Inference, &x, &[2, 4, 4, 3])?;
    assert_eq!(y, x, "each channel passes through");
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let values: Vec<f32> = device.read(params.values())?;
    let many = params.id_of("many.weight").expect("the filters");
    let largest = values[params.entry(many).range.clone()].iter().fold(0.0_f32, |largest, w| largest.max(w.abs()));
    assert!(largest <= 1.0 / 3.0 && largest > 0.99 / 3.0, "{largest}: nine values a window");
    Ok(())
}

#[test]
fn training_normalises_by_the_batch_and_evaluation_by_what_was_learnt() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let config = BatchNormConfig { momentum: 0.5, eps: 0.0, ..BatchNormConfig::new(1) };
    let norm = BatchNorm::new(&mut builder, "norm", &config);
    let mut params = builder.build(0);
    let x = [0.0, 2.0, 4.0, 6.0];
    let (y, buffers) = run(&norm, &params, Mode::Training, &x, &[4, 1])?;
    let deviation = 5.0_f32.sqrt();
    for (y, expected) in y.iter().zip([-3.0 / deviation, -1.0 / deviation, 1.0 / deviation, 3.0 / deviation]) {
        assert!((y - expected).abs() < 1e-6, "{y}, expected {expected}");
    }
    assert_eq!(buffers[0], [1.5], "half way to the batch's");
    let half_way = 0.5 + 0.5 * 20.0 / 3.0;
    assert!((buffers[1][0] - half_way).abs() < 1e-6, "{}, expected {half_way}: half way, the variance unbiased", buffers[1][0]);

    let mean = norm_buffer(&params, "norm.running_mean");
    params.set_initial_buffer(mean, &[2.0])?;
    let (y, buffers) = run(&norm, &params, Mode::Inference, &x, &[4, 1])?;
    assert_eq!(y, [-2.0, 0.0, 2.0, 4.0], "by the running statistics");
    assert_eq!(buffers, [vec![2.0], vec![1.0]], "which stay");
    let error = params.set_initial_buffer(mean, &[1.0, 2.0]).expect_err("two values for one channel");
    assert!(error.to_string().contains("1 elements for `norm.running_mean`"), "{error}");
    Ok(())
}

fn norm_buffer(params: &Parameters, name: &str) -> brisk_nn::BufferId {
    params.buffer_id_of(name).expect("the model has such a buffer")
}

#[test]
fn a_network_of_all_of_them_has_a_row_of_scores_an_image() -> Result<(), Error> {
    let mut p = ParametersBuilder::new();
    let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(3, 4, 3) };
    let norm =
        BatchNormConfig { ghost_rows: Some(1), scale: Scale::Frozen, activation: Activation::gelu(), ..BatchNormConfig::new(4) };
    let models: [Box<dyn Module>; 2] = [Box::new(GlobalMaxPool2d), Box::new(GlobalAvgPool2d)];
    for global in models {
        let model = Sequential(vec![
            Box::new(Conv2d::new(&mut p, "conv", &conv)),
            Box::new(MaxPool2d(Pool2d::square(2))),
            Box::new(BatchNorm::new(&mut p, "norm", &norm)),
            Box::new(AvgPool2d(Pool2d::square(2), PoolDivisor::Padded)),
            Box::new(Activation::relu()),
            global,
            Box::new(Linear::without_bias(&mut p, "head", 4, 5, Activation::identity())),
        ]);
        let params = std::mem::take(&mut p).build(1);
        let x: Vec<f32> = (0..2 * 8 * 8 * 3).map(|i| (i % 7) as f32).collect();
        for mode in [Mode::Training, Mode::Inference] {
            let (y, _) = run(&model, &params, mode, &x, &[2, 8, 8, 3])?;
            assert_eq!(y.len(), 2 * 5, "{mode:?}");
            assert!(y.iter().all(|y| y.is_finite()) && y.iter().any(|&y| y != 0.0), "{y:?}");
        }
    }
    Ok(())
}

#[test]
fn images_that_do_not_fit_are_refused() {
    let mut p = ParametersBuilder::new();
    let conv = Conv2d::new(&mut p, "conv", &Conv2dConfig::square(3, 4, 3));
    let norm = BatchNorm::new(&mut p, "norm", &BatchNormConfig { ghost_rows: Some(2), ..BatchNormConfig::new(3) });
    let single = BatchNorm::new(&mut p, "single", &BatchNormConfig { ghost_rows: Some(1), ..BatchNormConfig::new(3) });
    let params = p.build(0);
    #[track_caller]
    fn refuses(model: &dyn Module, params: &Parameters, shape: &[usize], expected: &str) {
        let x = vec![0.0; shape.iter().product()];
        let error = run(model, params, Mode::Training, &x, shape).expect_err("a shape that does not fit");
        assert!(error.to_string().contains(expected), "{error}");
    }
    refuses(&conv, &params, &[4, 3], "expected four dimensions");
    refuses(&conv, &params, &[1, 4, 4, 2], "as many channels as the input");
    refuses(&conv, &params, &[1, 2, 4, 3], "height is 2, expected at least the window's");
    refuses(&norm, &params, &[3, 3], "a batch of 3 rows for ghost batches of 2, expected a multiple");
    refuses(&norm, &params, &[4, 4], "`weight`");
    refuses(&single, &params, &[2, 3], "rows of a group is 1");
    refuses(&norm, &params, &[2, 2, 3], "[n_rows, n_channels], or [n_images, height, width, n_channels]");
}
