//! The summary of a model.

use brisk_nn::tensor::Pool2d;
use brisk_nn::{
    Activation, CategoricalColumn, Conv2d, Conv2dConfig, Flatten, Linear, MaxPool2d, Mlp, MlpConfig, Reshape, Sequential,
};
use brisk_train::{Error, LayerSummary, Model};

#[track_caller]
fn check(layer: &LayerSummary, name: &str, shape: &[usize], n_parameters: usize, flops: std::ops::RangeInclusive<u64>) {
    assert_eq!((layer.name.as_str(), &layer.shape[..], layer.n_parameters), (name, shape, n_parameters), "{layer:?}");
    assert!(flops.contains(&layer.flops), "{layer:?}, expected {flops:?} operations");
}

#[test]
fn layers_have_shapes_parameters_and_work() -> Result<(), Error> {
    let model = Model::new(7, |params| {
        let conv = Conv2dConfig { padding: [1, 1], ..Conv2dConfig::square(1, 4, 3) };
        Sequential(vec![
            Box::new(Reshape::new([8, 8, 1])),
            Box::new(Conv2d::new(params, "conv", &conv)),
            Box::new(MaxPool2d(Pool2d::square(2))),
            Box::new(Flatten),
            Box::new(Linear::new(params, "head", 64, 3, Activation::identity())),
        ])
    });
    let summary = model.summary(10, 64)?;
    let [conv, pool, head] = &summary.layers[..] else { panic!("{summary:?}") };
    // Two operations for each weight and pixel, and one or two for the bias.
    let products = 2 * 10 * 64 * 4 * 9;
    check(conv, "conv", &[10, 8, 8, 4], 4 * 9 + 4, products..=products + 2 * 2560);
    check(pool, "", &[10, 4, 4, 4], 0, 0..=10 * 64 * 4);
    check(head, "head", &[10, 3], 65 * 3, 2 * 10 * 64 * 3..=2 * 10 * 66 * 3);
    assert_eq!((summary.n_parameters, summary.n_rows), (40 + 195, 10));
    assert_eq!(summary.flops, conv.flops + pool.flops + head.flops);
    // Input, convolution and parameters, at least.
    assert!(summary.planned_bytes > 4 * (640 + 2560 + 235) && summary.planned_bytes < 100_000, "{summary:?}");
    assert!(model.summary(100, 64)?.flops == 10 * summary.flops, "in proportion to the rows");

    let table = summary.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("layer ") && lines[0].ends_with("FLOPs"), "{table}");
    assert!(lines[1].starts_with("conv ") && lines[1].contains("[10, 8, 8, 4]"), "{table}");
    assert!(lines[4].starts_with("total ") && lines[4].contains("235"), "{table}");
    assert!(lines[5].ends_with("MiB for an evaluation of 10 rows"), "{table}");
    let error = model.summary(10, 63).expect_err("the model takes 64 columns").to_string();
    assert!(error.contains("reshape"), "{error}");
    Ok(())
}

#[test]
fn embeddings_are_layers_too() -> Result<(), Error> {
    let sizes = MlpConfig { n_inputs: 6, hidden: vec![32], n_outputs: 1, activation: Activation::relu() };
    let model = Model::new(7, |params| Mlp::with_categories(params, &sizes, &[CategoricalColumn { n_codes: 100, dim: 8 }]));
    let summary = model.summary(16, 6)?;
    let named: Vec<(&str, usize)> = summary
        .layers
        .iter()
        .filter(|layer| !layer.name.is_empty())
        .map(|layer| (layer.name.as_str(), layer.n_parameters))
        .collect();
    assert_eq!(named, [("embeddings.0", 800), ("layers.0", 32 * 15), ("layers.1", 33)]);
    Ok(())
}
