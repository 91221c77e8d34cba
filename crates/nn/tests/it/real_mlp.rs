//! What `RealMlp` refuses, how its parameters start, and in which groups they are; its values are in `tests/conformance`.

use brisk_nn::tensor::Graph;
use brisk_nn::{
    Activation, CategoricalColumn, MeanOf, NumberEmbedding, Optimizer, ParameterGroup, ParametersBuilder, Pbld, RealMlp,
    RealMlpConfig, Sgd, SmoothClip,
};

fn config() -> RealMlpConfig {
    RealMlpConfig {
        scaling: SmoothClip { centers: vec![0.0; 2], factors: vec![1.0; 2] },
        numbers: NumberEmbedding::Pbld { n_frequencies: 16, std: 0.1, dim: 4 },
        n_members: 3,
        hidden: vec![64, 32],
        activation: Activation::selu(),
        dropout: 0.5,
        n_outputs: 1,
        mean_of: MeanOf::Outputs,
    }
}

#[test]
fn weights_have_a_deviation_of_one_and_predictions_start_at_0() {
    let mut builder = ParametersBuilder::new();
    RealMlp::new(&mut builder, &config(), &[]);
    let params = builder.build(7);
    let of = |name: &str| params.initial_of(params.id_of(name).unwrap_or_else(|| panic!("no {name}")));
    let variance = |values: &[f32]| values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
    assert!((variance(&of("hidden.0.weight")) - 1.0).abs() < 0.1);
    assert!((variance(&of("hidden.0.bias")) - 1.0 / 3.0).abs() < 0.1);
    let are_all = |name: &str, value: f32| of(name).iter().all(|&found| found == value);
    assert!(
        are_all("scale", 1.0) && are_all("hidden.1.strength", 1.0) && are_all("head.weight", 0.0) && are_all("head.bias", 0.0)
    );
    assert!(of("numbers.phases").iter().all(|phase| phase.abs() <= std::f32::consts::PI));
}

#[test]
fn groups_have_the_rates_of_the_paper() {
    let mut builder = ParametersBuilder::new();
    RealMlp::new(&mut builder, &config(), &[CategoricalColumn { n_codes: 5, dim: 2 }]);
    let params = builder.build(7);
    let sgd = Sgd::new(&params).groups(&params, &RealMlp::groups(&params, 0.5)).expect("each parameter is in one group");
    for (name, lr_factor, decay) in [
        ("numbers.weight", 0.1, 0.05),
        ("numbers.bias", 0.1, 0.05),
        ("embeddings.0.weight", 1.0, 0.5),
        ("scale", 6.0, 3.0),
        ("hidden.0.weight", 1.0, 0.5),
        ("hidden.1.bias", 0.1, 0.0),
        ("hidden.1.strength", 0.1, 0.05),
        ("head.weight", 1.0, 0.5),
        ("head.bias", 0.1, 0.0),
    ] {
        let id = params.id_of(name).expect(name);
        let expected = Sgd::new(&params).groups(&params, &[ParameterGroup::new([id]).lr_factor(lr_factor).weight_decay(decay)]);
        assert_eq!(sgd.described(id), expected.expect("one group").described(id), "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut builder = ParametersBuilder::new();
    let model = RealMlp::new(&mut builder, &config(), &[]);
    let graph = Graph::inference("predict");
    model.forward(&builder.build(0).bind(&graph), &graph.constant("x", &[0.0; 9], &[3, 3]));
    let error = graph.check().expect_err("the model takes two columns").to_string();
    assert!(error.contains("smooth_clip: `x` has shape [3, 3], expected [n_rows, 2]"), "{error}");

    let refused = |build: &dyn Fn(&mut ParametersBuilder)| {
        let mut builder = ParametersBuilder::new();
        build(&mut builder);
        builder.build(0).check().expect_err("it is refused").to_string()
    };
    let error = refused(&|params| _ = RealMlp::new(params, &RealMlpConfig { mean_of: MeanOf::Softmaxes, ..config() }, &[]));
    assert!(error.contains("real_mlp: `Softmaxes` of 1 output"), "{error}");
    let error = refused(&|params| _ = Pbld::new(params, "numbers", 2, 16, 0.1, 1));
    assert!(error.contains("pbld: 1 numbers for a column of `numbers`"), "{error}");
}
