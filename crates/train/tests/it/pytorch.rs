//! Networks of PyTorch, in files that tests/pytorch/make.py wrote, in both directions.

use std::path::PathBuf;

use brisk_loader::Rows;
use brisk_nn::tensor::Pool2d;
use brisk_nn::{
    Activation, BatchNorm, BatchNormConfig, Bias, Conv2d, Conv2dConfig, GlobalAvgPool2d, Linear, MaxPool2d, Mlp, MlpConfig,
    Module, ParametersBuilder, Reshape, Sequential,
};
use brisk_train::{Checkpoint, Error, Model, TensorData};

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "pytorch", name].iter().collect()
}

fn mlp(params: &mut ParametersBuilder) -> Mlp {
    Mlp::new(params, &MlpConfig { n_inputs: 4, hidden: vec![6], n_outputs: 3, activation: Activation::relu() })
}

fn convolutional(params: &mut ParametersBuilder) -> Sequential {
    let conv1 = Conv2dConfig { padding: [1, 1], ..Conv2dConfig::square(3, 5, 3) };
    let norm1 = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(5) };
    let conv2 =
        Conv2dConfig { kernel: [2, 3], bias: Bias::None, activation: Activation::relu(), ..Conv2dConfig::square(5, 4, 2) };
    Sequential(vec![
        Box::new(Reshape::new([6, 8, 3])),
        Box::new(Conv2d::new(params, "conv1", &conv1)),
        Box::new(BatchNorm::new(params, "norm1", &norm1)),
        Box::new(MaxPool2d(Pool2d::square(2))),
        Box::new(Conv2d::new(params, "conv2", &conv2)),
        Box::new(GlobalAvgPool2d),
        Box::new(Linear::new(params, "head", 4, 3, Activation::identity())),
    ])
}

/// The output for `test.x` is `test.y`, which PyTorch computed.
#[track_caller]
fn check_outputs<M: Module>(model: &Model<M>, fixture: &Checkpoint) -> Result<(), Box<dyn std::error::Error>> {
    let values = |name: &str| {
        let (_, shape, values) = fixture.tensors().find(|(found, ..)| *found == name).expect("the fixture has it");
        let TensorData::F32(values) = values else { panic!("{name} is f32") };
        (shape[0], values.clone())
    };
    let ((n_rows, x), (_, expected)) = (values("test.x"), values("test.y"));
    let n_cols = x.len() / n_rows;
    let found = model.predict(&Rows::new(x, vec![0.0; n_rows], n_cols)?)?;
    assert_eq!(found.len(), expected.len(), "outputs");
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-5, "{found}, {expected} in PyTorch");
    }
    Ok(())
}

#[test]
fn a_network_in_four_types() -> Result<(), Box<dyn std::error::Error>> {
    let (path, test) = (fixture("mlp.safetensors"), Checkpoint::load(fixture("mlp_test.safetensors"))?);
    check_outputs(&Model::load(&path, mlp)?, &test)?;
    check_outputs(&Model::load_pytorch(&path, mlp)?, &test)
}

#[test]
fn a_convolutional_network() -> Result<(), Box<dyn std::error::Error>> {
    let path = fixture("convolutional.safetensors");
    let (written, test) = (Checkpoint::load(&path)?, Checkpoint::load(fixture("convolutional_test.safetensors"))?);
    let tracked = written.tensors().find(|(name, ..)| *name == "norm1.num_batches_tracked").expect("PyTorch counts batches");
    assert_eq!((tracked.1, tracked.2), (&[][..], &TensorData::I64(vec![3])));
    let model = Model::load_pytorch(&path, convolutional)?;
    check_outputs(&model, &test)?;

    let folder = tempfile::tempdir()?;
    let (own, for_pytorch) = (folder.path().join("own.safetensors"), folder.path().join("pytorch.safetensors"));
    model.save(&own)?;
    model.save_pytorch(&for_pytorch)?;
    for path in [&own, &for_pytorch] {
        check_outputs(&Model::load(path, convolutional)?, &test)?;
        check_outputs(&Model::load_pytorch(path, convolutional)?, &test)?;
    }
    let layout = |path| Checkpoint::load(path)?.metadata::<String>("conv_layout", "a layout");
    assert_eq!((layout(&own)?, layout(&for_pytorch)?), ("ohwi".to_owned(), "oihw".to_owned()));
    let saved = Checkpoint::load(&for_pytorch)?;
    for (name, shape, values) in saved.tensors() {
        let known = written.tensors().find(|(known, ..)| *known == name);
        assert_eq!(known, Some((name, shape, values)), "the same tensor that PyTorch wrote");
    }
    assert_eq!(saved.tensors().count(), 9, "all but the count of batches");
    Ok(())
}

/// With three channels and kernels of three by three, both layouts have one shape.
#[test]
fn convolutions_of_unknown_layout_are_refused() {
    let path = fixture("convolutional.safetensors");
    let error = Model::load(&path, convolutional).map(drop).expect_err("OIHW or OHWI");
    assert!(matches!(&error, Error::CheckpointEntry { kind: "tensor", name, .. } if name == "conv1.weight"), "{error}");
    assert!(error.to_string().contains("`Model::load_pytorch`"), "{error}");
    let error = Model::new(7, convolutional).load_part(&path, "").expect_err("OIHW or OHWI").to_string();
    assert!(error.contains("`conv1.weight`") && error.contains("`Model::load_pytorch_part`"), "{error}");
}

/// The part of a network of PyTorch that fits has its values: with the head of that network, its outputs.
#[test]
fn a_backbone_of_convolutions_with_another_head() -> Result<(), Box<dyn std::error::Error>> {
    let (path, test) = (fixture("convolutional.safetensors"), Checkpoint::load(fixture("convolutional_test.safetensors"))?);
    let mut model = Model::new(7, |params| {
        let mut network = convolutional(params);
        network.0.push(Box::new(Linear::new(params, "extra", 3, 5, Activation::identity())));
        network
    });
    let part = model.load_pytorch_part(&path, "")?;
    assert_eq!((part.missing.len(), part.mismatched.len()), (2, 0), "{part:?}");
    assert_eq!(part.unexpected, ["norm1.num_batches_tracked"]);
    check_outputs(
        &model.map(|Sequential(mut layers)| {
            layers.pop();
            Sequential(layers)
        }),
        &test,
    )?;

    let mut model = Model::new(7, |params| {
        convolutional(params);
        Linear::new(params, "other", 1, 1, Activation::identity())
    });
    let part = model.load_pytorch_part(&path, "conv")?;
    assert_eq!(part.loaded, ["conv1.weight", "conv1.bias", "conv2.weight"]);
    Ok(())
}

/// Wrappers of PyTorch put their name before all others.
#[test]
fn names_within_a_wrapper() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    for wrapper in ["module", "_orig_mod", "module._orig_mod"] {
        let path = folder.path().join(wrapper);
        Model::load_pytorch(fixture("convolutional.safetensors"), convolutional)?.save_pytorch(&path)?;
        let mut wrapped = Checkpoint::new();
        for (name, shape, values) in Checkpoint::load(&path)?.tensors() {
            wrapped.insert(format!("{wrapper}.{name}"), shape, values.clone())?;
        }
        wrapped.insert_metadata("conv_layout", "oihw");
        wrapped.save(&path)?;
        for error in [
            Model::load_pytorch(&path, convolutional).map(drop).expect_err("other names"),
            Model::new(7, convolutional).load_pytorch_part(&path, "").map(drop).expect_err("no such name"),
        ] {
            let (error, remedy) = (error.to_string(), format!("`|params| params.within({wrapper:?}, …)`"));
            assert!(error.contains(&format!("`{wrapper}.` before them")) && error.contains(&remedy), "{error}");
        }
        let test = Checkpoint::load(fixture("convolutional_test.safetensors"))?;
        check_outputs(&Model::load_pytorch(&path, |params| params.within(wrapper, convolutional))?, &test)?;
    }
    Ok(())
}

#[test]
fn a_network_of_other_sizes_is_refused_by_tensor() {
    let path = fixture("mlp.safetensors");
    let make = |hidden| {
        move |params: &mut ParametersBuilder| {
            Mlp::new(params, &MlpConfig { n_inputs: 4, hidden, n_outputs: 3, activation: Activation::relu() })
        }
    };
    let error = Model::load_pytorch(&path, make(vec![7])).map(drop).expect_err("7 hidden units").to_string();
    assert!(error.contains("tensor `layers.0.weight` is f32 [6, 4], expected f32 [7, 4]"), "{error}");
    let error = Model::load_pytorch(&path, make(vec![6, 3])).map(drop).expect_err("a third layer").to_string();
    assert!(error.contains("tensor `layers.2.weight` is missing") && error.contains("layers.0.bias"), "what it has: {error}");
    let error = Model::load_pytorch(&path, |params| Linear::new(params, "layers.0", 4, 6, Activation::relu())).map(drop);
    let error = error.expect_err("as with strict=True").to_string();
    assert!(
        error.contains("tensor `layers.1.bias` is one that the model does not have") && error.contains("`Model::load_part`"),
        "{error}"
    );
}

#[test]
fn layouts_are_inverse() -> Result<(), Error> {
    let mut checkpoint = Checkpoint::new();
    checkpoint.insert("weight", &[1, 2, 1, 3], vec![0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    checkpoint.insert("bias", &[2], vec![0.5_f32, 1.5])?;
    let turned = checkpoint.clone().oihw_to_ohwi();
    assert_eq!(turned.f32("weight", &[1, 1, 3, 2])?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(turned.f32("bias", &[2])?, [0.5, 1.5]);
    assert_eq!(
        turned.ohwi_to_oihw().oihw_to_ohwi().ohwi_to_oihw().f32("weight", &[1, 2, 1, 3])?,
        checkpoint.f32("weight", &[1, 2, 1, 3])?
    );
    Ok(())
}

/// A double that f32 cannot hold is not infinity.
#[test]
fn values_that_overflow_are_refused() {
    let header = br#"{"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}  "#;
    let file = |value: f64| [&(header.len() as u64).to_le_bytes()[..], header, &value.to_le_bytes()].concat();
    assert_eq!(Checkpoint::from_bytes(&file(0.1)).expect("a number").f32("w", &[1]).expect("as f32"), [0.1_f32]);
    let error = Checkpoint::from_bytes(&file(1e300)).expect_err("too large").to_string();
    assert!(error.contains("tensor `w` is F64 [1]"), "{error}");
}
