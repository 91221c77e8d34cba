//! The dtypes of operations within autocast.

use brisk_tensor::program::Device;
use brisk_tensor::{
    Activation, Autocast, BatchNormOptions, CrossEntropyOptions, DType, Error, Graph, Persistent, Pool2d, PoolDivisor, Precision,
    Reduction, Statistics, Tensor, Transpose,
};

use crate::random::Random;
use crate::refusal::{check_refused, parameter, refusal};

use DType::{Bf16, F16, F32};

fn kernels(graph: &Graph) -> Vec<&'static str> {
    graph.with_program(|program| program.kernel_names().collect())
}

fn count(graph: &Graph, name: &str) -> usize {
    kernels(graph).iter().filter(|kernel| **kernel == name).count()
}

/// Every operation on an input of `dtype` within a region: its name, and the dtype of its result.
fn types(region: Option<Precision>, dtype: DType) -> Result<Vec<(&'static str, DType)>, Error> {
    let graph = Graph::training("all");
    let constant = |shape: &[usize]| graph.constant("c", &vec![0.5; shape.iter().product()], shape);
    let (images, rows) = (constant(&[2, 4, 4, 4]).cast(dtype), constant(&[6, 4]).cast(dtype));
    let pairs = rows.reshape(&[2, 3, 4]);
    let (filter, weight) = (parameter(&graph, &[4, 3, 3, 4]), parameter(&graph, &[4, 4]));
    let (vector, row_weights) = (constant(&[4]), constant(&[6]));
    let codes = graph.constant_codes("codes", &[0, 1, 2, 3, 0, 1], &[6]);
    let record = || {
        let (act, pool) = (Activation::relu(), Pool2d::square(2));
        rows.linear(&weight, Some(&vector), act.clone());
        rows.matmul(&weight, Transpose::None);
        pairs.batched_matmul(&pairs, Transpose::B);
        images.conv2d(&filter, None, [1, 1], [1, 1], act.clone());
        rows.softmax(1);
        rows.log_softmax(1);
        rows.layer_norm(Some(&vector), Some(&vector), 1e-5);
        rows.sum(..);
        rows.norm(..);
        rows.cross_entropy(&codes, &row_weights, CrossEntropyOptions::default());
        rows.bce_with_logits(&constant(&[6, 4]), &constant(&[6, 4]), Reduction::Mean, 1.0);
        rows.mse_loss(&constant(&[6, 4]), &row_weights, Reduction::Mean);
        rows.activate(Activation::gelu());
        rows.add(&rows);
        rows.multiply(&rows);
        images.avg_pool2d(&pool, PoolDivisor::Padded);
        images.max_pool2d(&pool);
        images.batch_norm(&BatchNormOptions {
            weight: Some(&vector),
            bias: None,
            running_mean: &vector,
            running_var: &constant(&[4]),
            statistics: Statistics::Batch { n_groups: 1, momentum: 0.1 },
            eps: 1e-5,
            activation: act,
        });
        rows.columns(0..2);
        rows.concat_columns(&[&rows]);
        rows.dropout(0.5);
        rows.embedding(&codes, 0, None);
        rows.max(0..1);
        rows.mean(0..1);
        rows.min(0..1)
    };
    match region {
        None => record(),
        Some(precision) => graph.autocast(precision, record),
    };
    let operations = graph.report().operations;
    Ok(operations.iter().filter(|op| op.name != "cast").map(|op| (op.name, op.dtype)).collect())
}

const LOW: [&str; 4] = ["linear", "matmul", "batched_matmul", "conv2d"];
const FULL: [&str; 5] = ["softmax", "log_softmax", "layer_norm", "sum", "norm"];
/// These are f32 inside and outside of regions.
const LOSSES: [&str; 3] = ["cross_entropy", "bce_with_logits", "mse_loss"];

#[test]
fn each_operation_has_the_type_of_its_list() -> Result<(), Error> {
    for (precision, low) in [(Precision::F16, F16), (Precision::Bf16, Bf16)] {
        for input in [F32, F16, Bf16] {
            for (name, found) in types(Some(precision), input)? {
                let expected = match name {
                    _ if LOW.contains(&name) => low,
                    _ if FULL.contains(&name) || LOSSES.contains(&name) => F32,
                    _ => input,
                };
                assert_eq!(found, expected, "{name} of {input} within {precision}");
            }
        }
    }
    Ok(())
}

#[test]
fn without_a_region_operations_have_the_type_of_their_operands() -> Result<(), Error> {
    for region in [None, Some(Precision::F32)] {
        for input in [F32, F16, Bf16] {
            for (name, found) in types(region, input)? {
                // These have an f32 weight, and promote.
                let is_mixed = ["linear", "matmul", "conv2d"].contains(&name) || LOSSES.contains(&name);
                assert_eq!(found, if is_mixed { F32 } else { input }, "{name} of {input} within {region:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn operands_of_two_types_promote_to_f32() -> Result<(), Error> {
    let graph = Graph::training("mixed");
    let [single, half, brain] = [F32, F16, Bf16].map(|dtype| graph.constant_in(dtype, "x", &[0.5; 8], &[2, 4]));
    let (single, half, brain) = (single, half, brain);
    for (a, b, expected) in
        [(&single, &half, F32), (&half, &single, F32), (&half, &brain, F32), (&half, &half, F16), (&brain, &brain, Bf16)]
    {
        let results = [a.add(b), a.multiply(b), a.concat_columns(&[b]), a.matmul(b, Transpose::B)];
        assert_eq!(results.map(|y| y.dtype()), [expected; 4], "{} and {}", a.dtype(), b.dtype());
    }
    assert_eq!(count(&graph, "cast"), 0, "kernels read any dtype");
    Ok(())
}

#[test]
fn f32_throughout_records_what_no_region_records() -> Result<(), Error> {
    let record = |region: Option<Precision>| {
        let graph = Graph::training("net");
        let (w, b) = (parameter(&graph, &[4, 4]), parameter(&graph, &[4]));
        let x = graph.constant("x", &[0.5; 12], &[3, 4]);
        let net = || x.linear(&w, Some(&b), Activation::gelu()).layer_norm(None, None, 1e-5).softmax(1).sum(..);
        let loss = match region {
            None => net(),
            Some(precision) => graph.autocast(precision, net),
        };
        graph.backward(&loss)?;
        Ok::<_, Error>(kernels(&graph))
    };
    assert_eq!(record(None)?, record(Some(Precision::F32))?);
    Ok(())
}

#[test]
fn a_parameter_is_rounded_once_and_its_gradient_written_in_f32() -> Result<(), Error> {
    let graph = Graph::training("tied");
    let w = parameter(&graph, &[4, 4]);
    let x = graph.constant("x", &[0.5; 12], &[3, 4]);
    let loss = graph.autocast(Precision::F16, || {
        let hidden = x.linear(&w, None, Activation::tanh());
        hidden.linear(&w, None, Activation::identity()).linear(&w, None, Activation::identity()).sum(..)
    });
    graph.backward(&loss)?;
    let casts: Vec<_> = graph.report().casts().map(|cast| cast.is_parameter_cast).collect();
    assert_eq!(casts, [false, true], "the input and the weight");
    assert_eq!(count(&graph, "cast"), 2, "none after a product: {:?}", kernels(&graph));
    Ok(())
}

#[test]
fn a_copy_is_made_anew_once_the_parameter_has_changed() -> Result<(), Error> {
    let graph = Graph::inference("steps");
    let values = Persistent::new("values", F32, 16);
    let w = graph.tensor(&values, &[4, 4]);
    let x = graph.constant("x", &[0.5; 4], &[1, 4]);
    let all = Persistent::new("all", F32, 8);
    let (first, second) = graph.autocast(Precision::F16, || {
        let first = x.linear(&w, None, Activation::identity());
        // As an optimizer writes its parameters.
        let ones = graph.constant("ones", &[1.0; 16], &[16]);
        graph.record(|program| {
            let kernel = brisk_tensor::program::kernels::Map::unary(16, |x| x);
            let values = program.persistent(&values);
            program.push(kernel, &[ones.slice(), values])
        });
        (first, x.linear(&w, None, Activation::identity()))
    });
    let both = first.concat_columns(&[&second]).cast(F32);
    graph.store(&both, &Graph::state_buffer(), &all);
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(&all)?, [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]);
    Ok(())
}

#[test]
fn regions_nest_and_the_innermost_counts() -> Result<(), Error> {
    let graph = Graph::training("nested");
    let w = parameter(&graph, &[4, 4]);
    let x = graph.constant("x", &[0.5; 12], &[3, 4]);
    let layer = |x: &Tensor| x.linear(&w, None, Activation::relu());
    let found = graph.autocast(Precision::F16, || {
        let outer = layer(&x);
        let within = graph.autocast(Precision::F32, || [layer(&x), layer(&outer)]);
        let brain = graph.autocast(Precision::Bf16, || layer(&outer));
        let [exact, promoted] = within;
        [outer, exact, promoted, brain, layer(&x)].map(|y| y.dtype())
    });
    assert_eq!(found, [F16, F32, F32, Bf16, F16]);
    assert_eq!(layer(&x).dtype(), F32, "outside");
    Ok(())
}

#[test]
fn overrides_by_name() -> Result<(), Error> {
    let graph = Graph::training("overrides");
    let w = parameter(&graph, &[4, 4]);
    let x = graph.constant("x", &[0.5; 12], &[3, 4]);
    let region = Autocast::new(Precision::F16).with("matmul", Precision::F32).with("softmax", Precision::Bf16);
    let region = region.with("activate", Precision::F16);
    let found = graph.autocast(region, || {
        let low = x.linear(&w, None, Activation::identity());
        [low.matmul(&w, Transpose::None), low.softmax(1), x.activate(Activation::silu()), low.log_softmax(1)].map(|y| y.dtype())
    });
    assert_eq!(found, [F32, Bf16, F16, F32]);

    let misspelt = Autocast::new(Precision::F16).with("lineal", Precision::F32);
    graph.autocast(misspelt, || x.linear(&w, None, Activation::relu()).softmax(1));
    let error = graph.check().expect_err("a misspelt name");
    let expected =
        "autocast: the override of `lineal` applies to no operation of the region, which records: activate, linear, softmax";
    assert_eq!(error.kind().to_string(), expected);
    Ok(())
}

#[test]
fn an_override_of_activate_holds_for_what_operations_are_given() -> Result<(), Error> {
    for activation in [Activation::relu(), Activation::tanh(), Activation::sigmoid(), Activation::gelu(), Activation::silu()] {
        let graph = Graph::training("given");
        let (w, filter, vector) = (parameter(&graph, &[4, 4]), parameter(&graph, &[4, 3, 3, 4]), parameter(&graph, &[4]));
        let rows = graph.constant("rows", &[0.5; 12], &[3, 4]);
        let images = graph.constant("images", &[0.5; 64], &[1, 4, 4, 4]);
        let halves = images.cast(F16);
        let options = BatchNormOptions {
            weight: None,
            bias: None,
            running_mean: &vector,
            running_var: &vector,
            statistics: Statistics::Running,
            eps: 1e-5,
            activation: activation.clone(),
        };
        let record = |activation: Activation| {
            let options = BatchNormOptions { activation: activation.clone(), ..options.clone() };
            let linear = rows.linear(&w, None, activation.clone());
            [linear, images.conv2d(&filter, None, [1, 1], [1, 1], activation), halves.batch_norm(&options)]
        };
        let region = Autocast::new(Precision::F16).with("activate", Precision::F32);
        let found = graph.autocast(region.clone(), || record(activation.clone()));
        assert_eq!(found.map(|y| y.dtype()), [F32; 3], "{activation:?}");
        let found = graph.autocast(region, || record(Activation::identity()));
        assert_eq!(found.map(|y| y.dtype()), [F16; 3], "none is none");
        let activates = |graph: &Graph| graph.report().operations.iter().filter(|op| op.name == "activate").count();
        assert_eq!(activates(&graph), 3, "{activation:?}");
        // Without an override, activations are fused where possible; a normalisation fuses any.
        graph.autocast(Precision::F16, || record(activation.clone()));
        assert_eq!(activates(&graph), if activation.from_output.is_some() { 3 } else { 5 }, "{activation:?}");
    }
    Ok(())
}

#[test]
fn an_activation_that_is_overridden_computes_and_goes_back_in_its_precision() -> Result<(), Error> {
    let graph = Graph::training("tanh");
    let (values, grads) = (Persistent::new("values", F32, 4), Persistent::new("grads", F32, 4));
    let w = graph.parameter(&values, &grads, 0..4, &[1, 4]);
    let x = graph.constant("x", &[1.0, 0.5, 0.25, 0.25], &[1, 4]);
    let region = Autocast::new(Precision::F16).with("activate", Precision::F32);
    let y = graph.autocast(region, || x.linear(&w, None, Activation::tanh()));
    graph.backward(&y)?;
    let (stored, state) = (Persistent::new("stored", F32, 1), Graph::state_buffer());
    graph.store(&y, &state, &stored);
    graph.hold(&state);
    let device = Device::cpu()?;
    device.write(&values, &[0.5_f32; 4])?;
    graph.compile(&device)?.run(1)?;
    let (y, grads) = (device.read::<f32>(&stored)?[0], device.read::<f32>(&grads)?);
    // tanh(1), which is 0.76171875 in f16; the product's gradient is rounded, as the product is.
    assert!((y - 1_f32.tanh()).abs() < 1e-6, "{y}");
    let slope = half::f16::from_f32(1.0 - y * y).to_f32();
    assert_eq!(grads, [1.0, 0.5, 0.25, 0.25].map(|x| x * slope));
    Ok(())
}

#[test]
fn celu_is_flat_far_below_zero_in_each_precision() -> Result<(), Error> {
    for precision in Precision::ALL {
        let graph = Graph::training("celu");
        let (values, grads) = (Persistent::new("values", F32, 4), Persistent::new("grads", F32, 4));
        let w = graph.parameter(&values, &grads, 0..4, &[1, 4]);
        let x = graph.constant("x", &[-2.0, -2.0, -1.0, -1.0], &[1, 4]);
        let y = graph.autocast(precision, || x.linear(&w, None, Activation::celu(0.075)));
        let activates = graph.report().operations.iter().filter(|op| op.name == "activate").count();
        assert_eq!(activates, usize::from(precision != Precision::F32), "{precision}: whether the layer keeps its input");
        graph.backward(&y)?;
        let device = Device::cpu()?;
        device.write(&values, &[0.5_f32; 4])?;
        graph.compile(&device)?.run(1)?;
        // The slope is e^-40; α is no number of 16 bits, so that an output close to -α says nothing of it there.
        let found = device.read::<f32>(&grads)?;
        assert!(found.iter().all(|grad| grad.abs() < 1e-6), "{precision}: {found:?}");
    }
    Ok(())
}

#[test]
fn precisions_by_name() {
    for precision in Precision::ALL {
        assert_eq!(precision.to_string().parse(), Ok(precision));
    }
    let error = "fp16".parse::<Precision>().expect_err("there is no such precision");
    assert_eq!(error.to_string(), "there is no precision `fp16`; use f32, f16 or bf16");
}

#[test]
fn dropout_draws_the_same_in_each_precision() -> Result<(), Error> {
    let zeros = |precision| {
        let graph = Graph::training("net");
        let x = graph.constant("x", &Random::new(1).floats(256), &[16, 16]);
        let w = parameter(&graph, &[16, 16]);
        let kept = Persistent::new("kept", F32, 256);
        let y = graph.autocast(precision, || x.add(&x).linear(&w, None, Activation::identity()).dropout(0.5));
        let ones = graph.constant("ones", &[1.0; 256], &[16, 16]);
        graph.store(&y.cast(F32).add(&ones).dropout(0.5), &graph.state(), &kept);
        graph.advance(&graph.state());
        let device = Device::cpu()?;
        graph.compile(&device)?.run(1)?;
        Ok::<_, Error>(device.read::<f32>(&kept)?)
    };
    let (single, half) = (zeros(Precision::F32)?, zeros(Precision::F16)?);
    assert!(single.contains(&0.0) && single.contains(&2.0), "some of each: {single:?}");
    assert_eq!(single.iter().map(|&v| v == 0.0).collect::<Vec<_>>(), half.iter().map(|&v| v == 0.0).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_refused_operation_leaves_no_cast() {
    let error = refusal(|graph| {
        let (x, y) = (parameter(graph, &[0, 3]), parameter(graph, &[2, 3]));
        graph.autocast(Precision::F16, || y.linear(&x, None, Activation::relu()))
    });
    assert!(matches!(error.kind(), Error::Program(_)), "{error:?}");
}

#[test]
fn parameters_that_are_stored_in_halves() -> Result<(), Error> {
    // As a PyTorch model after `.half()`: values and gradients in f16.
    let graph = Graph::training("halves");
    let (values, grads) = (Persistent::new("values", F16, 4), Persistent::new("grads", F16, 4));
    let w = graph.parameter(&values, &grads, 0..4, &[1, 4]);
    let x = graph.constant_in(F16, "x", &[1.0, 2.0, 3.0, 4.0], &[1, 4]);
    let loss = x.linear(&w, None, Activation::identity());
    assert_eq!(loss.dtype(), F16);
    graph.backward(&loss)?;
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    let found: Vec<f32> = device.read::<u16>(&grads)?.into_iter().map(|bits| half::f16::from_bits(bits).to_f32()).collect();
    assert_eq!(found, [1.0, 2.0, 3.0, 4.0]);
    let codes = Persistent::new("codes", DType::U32, 4);
    check_refused(|graph| graph.parameter(&codes, &grads, 0..4, &[4]), "parameter: `values` is u32, expected f32, f16 or bf16");
    Ok(())
}

#[test]
fn constants_of_every_type() -> Result<(), Error> {
    let graph = Graph::training("constants");
    assert_eq!(graph.constant_bytes("pixels", &[1, 2], &[2]).dtype(), DType::U8);
    assert_eq!(graph.constant_codes("codes", &[1, 2], &[2]).dtype(), DType::U32);
    let bytes = graph.constant_bytes("pixels", &[0, 255, 7], &[3]).cast(F32);
    let all = Persistent::new("all", F32, 6);
    // Values that f16 cannot represent are rounded: 1 + 2⁻¹¹ to 1, 70000 to infinity.
    let halves = graph.constant_in(F16, "halves", &[1.0 + f32::EPSILON * 4096.0, 70000.0, -0.25], &[3]).cast(F32);
    graph.store(&bytes.reshape(&[1, 3]).concat_columns(&[&halves.reshape(&[1, 3])]), &Graph::state_buffer(), &all);
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(&all)?, [0.0, 255.0, 7.0, 1.0, f32::INFINITY, -0.25]);
    check_refused(|graph| graph.constant_in(DType::U8, "c", &[1.0], &[1]), "constant: `dtype` is u8, expected f32, f16 or bf16");
    Ok(())
}
