//! Elementwise operations with broadcasting, reductions over any dimensions, and losses made of them: shapes, gradients and
//! refusals. Values are compared with PyTorch's by the conformance cases.

use brisk_tensor::program::Device;
use brisk_tensor::{
    Activation, DType, Dims, ElementwiseOperation, Error, Expr, Graph, LossReduction, Persistent, Reduction, Tensor,
    check_gradients,
};

use crate::refusal::{check_refused, parameter};

#[track_caller]
fn check(shapes: &[&[usize]], record: impl Fn(&Graph, &[Tensor]) -> Tensor) {
    if let Err(error) = check_gradients(shapes, record) {
        panic!("{error}");
    }
}

#[test]
fn two_tensors_broadcast() {
    for (a, b) in [
        (&[3, 4][..], &[3, 4][..]),
        (&[3, 4], &[4]),
        (&[4], &[3, 4]),
        (&[3, 1], &[1, 4]),
        (&[2, 1, 3, 1], &[5, 1, 4]),
        (&[1], &[2, 3]),
        (&[2, 1, 2, 1, 2], &[1, 3, 1, 3, 1]),
    ] {
        check(&[a, b], |_, p| p[0].sub(&p[1]));
        check(&[a, b], |_, p| p[0].multiply(&p[1]));
        check(&[a, b], |_, p| p[0].div(&p[1].map(|x| x.abs() + 1.0)));
    }
}

#[test]
fn three_tensors_broadcast() {
    let [x, y, z] = [0, 1, 2].map(Expr::input);
    let gated = ElementwiseOperation::new("gated", x * y.sigmoid() + z);
    check(&[&[3, 4], &[4], &[3, 1]], |graph, p| graph.apply(gated.clone(), &[&p[0], &p[1], &p[2]]));
    check(&[&[3, 4], &[4], &[2, 3, 1]], |_, p| p[0].where_(&p[1], &p[2]));
}

#[test]
fn the_shape_of_a_broadcast() -> Result<(), Error> {
    let graph = Graph::inference("shapes");
    let of = |shape: &[usize]| graph.constant("x", &vec![1.0; shape.iter().product()], shape);
    assert_eq!(of(&[5, 1, 3]).sub(&of(&[4, 1])).shape(), [5, 4, 3]);
    assert_eq!(of(&[]).sub(&of(&[2, 2])).shape(), [2, 2]);
    assert_eq!(of(&[2, 1]).expand(&[3, 2, 4]).shape(), [3, 2, 4]);
    graph.check()?;
    check_refused(
        |graph| parameter(graph, &[2, 3]).sub(&parameter(graph, &[2])),
        "sub: `b` has shape [2], expected a shape that broadcasts with [2, 3]: from the last dimension on, lengths that are equal or 1",
    );
    check_refused(
        |graph| parameter(graph, &[2, 3]).expand(&[2, 4]),
        "expand: `x` has shape [2, 3], expected one that broadcasts to [2, 4]",
    );
    Ok(())
}

#[test]
fn functions_of_one_tensor() {
    check(&[&[3, 5]], |_, p| p[0].map(|x| (x.sin() + 2.0).log()).exp());
    check(&[&[3, 5]], |_, p| p[0].tanh().sigmoid().silu());
    check(&[&[3, 5]], |_, p| p[0].gelu().softplus().neg());
    check(&[&[3, 5]], |_, p| p[0].square().map(|x| x + 1.0).sqrt().rsqrt().reciprocal());
    check(&[&[3, 5]], |_, p| p[0].relu().add(&p[0].leaky_relu(0.1)).add(&p[0].abs()));
    check(&[&[3, 5]], |_, p| p[0].clamp(-0.5, 0.25));
    check(&[&[3, 5], &[3, 5]], |_, p| p[0].maximum(&p[1]).multiply(&p[0].minimum(&p[1])));
    check(&[&[3, 5], &[5]], |_, p| p[0].map(|x| x.abs() + 0.5).pow(&p[1]));
}

#[test]
fn a_function_that_is_flat_gives_zeros() -> Result<(), Error> {
    let (values, grads) = (Persistent::new("values", DType::F32, 3), Persistent::new("grads", DType::F32, 3));
    let graph = Graph::training("flat");
    let x = graph.parameter(&values, &grads, 0..3, &[3]);
    graph.backward(&x.floor().add(&x.sign()).sum(..))?;
    let device = Device::cpu()?;
    device.write(&values, &[1.5_f32, f32::INFINITY, -0.5])?;
    device.write(&grads, &[7.0_f32; 3])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(&grads)?, [0.0; 3]);
    Ok(())
}

#[test]
fn reductions_over_any_dimensions() {
    for dims in [&[0][..], &[1], &[2], &[3], &[0, 1], &[0, 2], &[1, 3], &[0, 3], &[0, 2, 3], &[0, 1, 2, 3]] {
        let shape: &[usize] = &[2, 3, 2, 4];
        check(&[shape], |_, p| p[0].sum(dims));
        check(&[shape], |_, p| p[0].mean(Dims::from(dims).keep()));
        check(&[shape], |_, p| p[0].max(dims));
        check(&[shape], |_, p| p[0].min(Dims::from(dims).keep()));
        check(&[shape], |_, p| p[0].norm(dims));
    }
    check(&[&[3, 1, 4, 1]], |_, p| p[0].sum([1, 3]));
    check(&[&[3, 2, 4]], |_, p| p[0].var([0, 2], 1));
    check(&[&[3, 2, 4]], |_, p| p[0].std(Dims::from(1).keep(), 0));
}

#[test]
fn the_shape_of_a_reduction() -> Result<(), Error> {
    let graph = Graph::inference("shapes");
    let x = graph.constant("x", &[1.0; 24], &[2, 3, 4]);
    assert_eq!(x.sum(..).shape(), [0_usize; 0]);
    assert_eq!(x.sum(1..).shape(), [2]);
    assert_eq!(x.sum([2, 0]).shape(), [3]);
    assert_eq!(x.sum(Dims::from([2, 0]).keep()).shape(), [1, 3, 1]);
    assert_eq!(x.sum(Dims::from(..).keep()).shape(), [1, 1, 1]);
    graph.check()?;
    let x = |graph: &Graph| parameter(graph, &[2, 3, 4]);
    check_refused(|graph| x(graph).sum(3), "sum: `x` has shape [2, 3, 4], expected a dimension 3");
    check_refused(|graph| x(graph).max([1, 1]), "max: `x` has shape [2, 3, 4], expected dimensions [1, 1] of it, each once");
    check_refused(|graph| x(graph).std(2..2, 1), "std: `x` has shape [2, 3, 4], expected dimensions 2..2 of it, at least one");
    Ok(())
}

/// Ties share the gradient evenly, over all the dimensions together.
#[test]
fn ties_over_dimensions_that_are_not_adjacent() -> Result<(), Error> {
    let (values, grads) = (Persistent::new("values", DType::F32, 8), Persistent::new("grads", DType::F32, 8));
    let graph = Graph::training("ties");
    let x = graph.parameter(&values, &grads, 0..8, &[2, 2, 2]);
    graph.backward(&x.max([0, 2]).sum(..))?;
    let device = Device::cpu()?;
    device.write(&values, &[5.0_f32, 5.0, 1.0, 2.0, 5.0, 0.0, 2.0, 1.0])?;
    graph.compile(&device)?.run(1)?;
    let third = 1.0 / 3.0;
    assert_eq!(device.read::<f32>(&grads)?, [third, third, 0.0, 0.5, third, 0.0, 0.5, 0.0]);
    Ok(())
}

#[test]
fn logsumexp() -> Result<(), Error> {
    check(&[&[3, 4]], |_, p| p[0].logsumexp(1));
    check(&[&[2, 3, 4]], |_, p| p[0].logsumexp(Dims::from([0, 2]).keep()));
    check(&[&[5]], |_, p| p[0].logsumexp(..));
    let infinite = f32::INFINITY;
    let graph = Graph::inference("sums");
    let x = graph.constant("x", &[1000.0, 1000.0, -infinite, -infinite, infinite, 0.0, f32::NAN, 0.0], &[4, 2]);
    let stored = Persistent::new("y", DType::F32, 4);
    graph.store(&x.logsumexp(1), &Graph::state_buffer(), &stored);
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    let y = device.read::<f32>(&stored)?;
    assert_eq!(y[..3], [1000.0 + std::f32::consts::LN_2, -infinite, infinite]);
    assert!(y[3].is_nan());
    check_refused(|graph| parameter(graph, &[2, 3]).logsumexp(2), "logsumexp: `x` has shape [2, 3], expected a dimension 2");
    Ok(())
}

#[test]
fn losses_by_element() {
    for reduction in [LossReduction::Mean, LossReduction::Sum, LossReduction::None] {
        let shapes: &[&[usize]] = &[&[4, 3], &[4, 3]];
        check(shapes, |_, p| p[0].l1_loss(&p[1], reduction));
        check(shapes, |_, p| p[0].smooth_l1_loss(&p[1], 0.5, reduction));
        check(shapes, |_, p| p[0].huber_loss(&p[1], 0.5, reduction));
        check(shapes, |_, p| p[0].sigmoid().binary_cross_entropy(&p[1].sigmoid(), reduction));
        check(shapes, |_, p| p[0].focal_loss(&p[1].sigmoid(), 0.25, 2.0, reduction));
        check(shapes, |_, p| p[0].log_softmax(1).kl_div(&p[1].softmax(1), reduction));
        check(shapes, |_, p| p[0].poisson_nll_loss(&p[1], reduction));
        check(shapes, |_, p| p[0].hinge_loss(&p[1], 0.3, reduction));
        check(shapes, |_, p| p[0].quantile_loss(&p[1], 0.9, reduction));
    }
}

#[test]
fn losses_refuse_targets_of_another_shape() {
    type Loss = fn(&Tensor, &Tensor) -> Tensor;
    let losses: [(&str, Loss); 9] = [
        ("l1_loss", |x, t| x.l1_loss(t, LossReduction::Mean)),
        ("smooth_l1_loss", |x, t| x.smooth_l1_loss(t, 1.0, LossReduction::Sum)),
        ("huber_loss", |x, t| x.huber_loss(t, 1.0, LossReduction::None)),
        ("binary_cross_entropy", |x, t| x.binary_cross_entropy(t, LossReduction::Mean)),
        ("focal_loss", |x, t| x.focal_loss(t, 0.25, 2.0, LossReduction::Mean)),
        ("kl_div", |x, t| x.kl_div(t, LossReduction::Mean)),
        ("poisson_nll_loss", |x, t| x.poisson_nll_loss(t, LossReduction::Mean)),
        ("hinge_loss", |x, t| x.hinge_loss(t, 1.0, LossReduction::Mean)),
        ("quantile_loss", |x, t| x.quantile_loss(t, 0.5, LossReduction::Mean)),
    ];
    let target = |graph: &Graph, shape: &[usize]| graph.constant("target", &vec![0.5; shape.iter().product()], shape);
    for (op, loss) in losses {
        for (x, t, way_out) in [
            (&[20, 1][..], &[20][..], "take `squeeze(1)` of the prediction"),
            (&[20], &[20, 1], "take `squeeze(1)` of the target"),
            (&[20, 3], &[3], "`expand` repeats a target"),
        ] {
            let message = format!("{op}: `target` has shape {t:?}, expected {x:?}, that of the prediction; {way_out}");
            check_refused(|graph| loss(&parameter(graph, x), &target(graph, t)), &message);
        }
    }
    // These add up elements in order, whatever dimensions of length 1 there are.
    let of = |graph: &Graph, t: &[usize]| {
        let (x, weight) = (parameter(graph, &[4, 3]), graph.constant("weight", &[1.0; 4], &[4]));
        x.mse_loss(&target(graph, t), &weight, Reduction::Mean)
    };
    assert!(!of(&Graph::training("ones"), &[4, 1, 3]).is_failed());
    let message = "mse_loss: `target` has shape [3, 4], expected [4, 3], that of the prediction; `expand` repeats a target";
    check_refused(|graph| of(graph, &[3, 4]), message);
}

/// A loss of four elements, and its gradient in them.
fn loss_of(x: [f32; 4], target: [f32; 4], loss: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Result<(f32, Vec<f32>), Error> {
    let (values, grads) = (Persistent::new("values", DType::F32, 4), Persistent::new("grads", DType::F32, 4));
    let graph = Graph::training("loss");
    let parameter = graph.parameter(&values, &grads, 0..4, &[4]);
    let loss = loss(&parameter, &graph.constant("target", &target, &[4]));
    let stored = Persistent::new("loss", DType::F32, 1);
    let state = Graph::state_buffer();
    graph.store(&loss, &state, &stored);
    graph.hold(&state);
    graph.backward(&loss)?;
    let device = Device::cpu()?;
    device.write(&values, &x)?;
    graph.compile(&device)?.run(1)?;
    Ok((device.read::<f32>(&stored)?[0], device.read(&grads)?))
}

#[test]
fn binary_cross_entropy_of_certain_probabilities_is_finite() -> Result<(), Error> {
    let loss = |x: &Tensor, target: &Tensor| x.binary_cross_entropy(target, LossReduction::Sum);
    let (loss, grads) = loss_of([1.0, 0.0, 1.0, 0.5], [1.0, 0.0, 0.0, 1.0], loss)?;
    assert!((loss - 100.693_15).abs() < 1e-4, "a logarithm is at least -100");
    assert_eq!(grads, [0.0, 0.0, 1e12, -2.0], "as PyTorch's");
    Ok(())
}

/// Where PyTorch's gradients are NaN.
#[test]
fn a_prediction_or_target_that_is_nan_has_such_a_gradient() -> Result<(), Error> {
    type Loss = fn(&Tensor, &Tensor) -> Tensor;
    let losses: [(&str, Loss); 7] = [
        ("huber", |x, t| x.huber_loss(t, 1.0, LossReduction::Sum)),
        ("smooth_l1", |x, t| x.smooth_l1_loss(t, 2.0, LossReduction::Sum)),
        ("binary_cross_entropy", |x, t| x.binary_cross_entropy(t, LossReduction::Sum)),
        ("focal", |x, t| x.focal_loss(t, 0.25, 2.0, LossReduction::Sum)),
        ("poisson_nll", |x, t| (x * t).poisson_nll_loss(t, LossReduction::Sum)),
        ("kl_div of a product", |x, t| x.kl_div(&(x * t), LossReduction::Sum)),
        ("mse", |x, t| x.mse_loss(t, &x.graph().constant("weight", &[1.0; 4], &[4]), Reduction::Sum)),
    ];
    for (name, loss) in losses {
        let (loss, grads) = loss_of([f32::NAN, 0.5, 0.5, 0.25], [0.5, f32::NAN, 0.25, 0.5], loss)?;
        assert!(loss.is_nan() && grads[..2].iter().all(|grad| grad.is_nan()), "{name}: {loss}, {grads:?}");
        assert!(grads[2..].iter().all(|grad| grad.is_finite()), "{name}: {grads:?}");
    }
    let inf = f32::INFINITY;
    for loss in [losses[0].1, losses[1].1] {
        assert_eq!(loss_of([inf, -inf, 0.0, 3.0], [0.0, 0.0, inf, 0.0], loss)?, (inf, vec![1.0, -1.0, -1.0, 1.0]));
    }
    Ok(())
}

#[test]
fn kl_div_of_targets_that_are_not_probabilities() -> Result<(), Error> {
    let kl_div = |x: &Tensor, target: &Tensor| x.kl_div(target, LossReduction::Sum);
    let (loss, grads) = loss_of([-1.0; 4], [-1.0, 0.0, -0.0, 0.5], kl_div)?;
    assert!(loss.is_nan(), "{loss}");
    assert_eq!(grads, [1.0, 0.0, 0.0, -0.5], "as PyTorch's");
    let (loss, grads) = loss_of([-f32::INFINITY, -1.0, -1.0, -1.0], [0.0, 0.0, -0.0, 1.0], kl_div)?;
    assert_eq!((loss, grads), (1.0, vec![0.0, 0.0, 0.0, -1.0]), "a target of 0 adds nothing");
    Ok(())
}

#[test]
fn functions_of_nan_have_the_gradients_of_pytorch() -> Result<(), Error> {
    let nan = f32::NAN;
    let gradients = |f: fn(&Tensor) -> Tensor, x| Ok::<_, Error>(loss_of(x, [0.0; 4], |x, _| f(x).sum(..))?.1);
    let relu: [fn(&Tensor) -> Tensor; 2] = [|x| x.relu(), |x| x.activate(Activation::relu())];
    for relu in relu {
        assert_eq!(gradients(relu, [nan, -1.0, 0.0, 2.0])?, [1.0, 0.0, 0.0, 1.0]);
    }
    let by_columns = |f: fn(&Tensor) -> Tensor| gradients(f, [1.0, 5.0, 1.0, 7.0]);
    assert_eq!(by_columns(|x| x.reshape(&[4, 1]).var(1, 2))?, [-0.0; 4]);
    assert_eq!(by_columns(|x| x.reshape(&[2, 2]).var(1, 4))?, [2.0, -2.0, 3.0, -3.0]);
    assert!(by_columns(|x| x.reshape(&[4, 1]).var(1, 1))?.iter().all(|grad| grad.is_nan()));
    assert!(by_columns(|x| x.reshape(&[4, 1]).std(1, 2))?.iter().all(|grad| grad.is_nan()));
    Ok(())
}

#[test]
fn a_limit_that_is_not_a_number_is_refused() {
    let nan = f32::NAN;
    let message = |name: &str| format!("clamp: {name} = NaN, expected a number, which may be infinite");
    check_refused(|graph| parameter(graph, &[3]).clamp(nan, 2.0), &message("low"));
    check_refused(|graph| parameter(graph, &[3]).clamp(0.0, nan), &message("high"));
    let graph = Graph::inference("net");
    graph.constant("x", &[1.0], &[1]).clamp(-f32::INFINITY, f32::INFINITY);
    graph.check().expect("limits may be infinite");
}

/// The terms of the cross-entropy have kinks at 0, their sum has none. Constants computed with PyTorch's
/// `binary_cross_entropy_with_logits`.
#[test]
fn focal_loss_is_smooth_at_zero() -> Result<(), Error> {
    let loss = |x: &Tensor, target: &Tensor| x.focal_loss(target, 0.25, 2.0, LossReduction::Sum);
    let (loss, grads) = loss_of([0.0, 0.0, -0.0, 1.5], [1.0, 0.0, 0.25, 1.0], loss)?;
    assert!((loss - 0.283_266_76).abs() < 1e-6, "{loss}");
    let expected = [-0.074_571_7, 0.223_715_1, 0.093_214_616, -0.004_257_778_6];
    assert!(grads.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{grads:?}");
    Ok(())
}

#[test]
fn a_difference_is_computed_by_one_kernel() -> Result<(), Error> {
    let graph = Graph::inference("one");
    let x = graph.constant("x", &[1.0; 6], &[2, 3]);
    let mean = graph.constant("mean", &[1.0; 3], &[3]);
    let inv_std = graph.constant("inv_std", &[1.0; 3], &[3]);
    let [a, b, c] = [0, 1, 2].map(Expr::input);
    graph.apply(ElementwiseOperation::new("standardise", (a - b) * c), &[&x, &mean, &inv_std]);
    assert_eq!(graph.with_program(|program| program.n_kernels()), 1);
    Ok(())
}

#[test]
fn elementwise_functions_of_integers_are_refused() {
    check_refused(
        |graph| graph.constant_codes("codes", &[1, 2], &[2]).exp(),
        "exp: `a` is u32, expected f32, f16 or bf16; cast it first",
    );
}

#[test]
fn an_expression_of_more_inputs_than_tensors_is_refused() {
    check_refused(
        |graph| parameter(graph, &[2]).map(|x| x + Expr::input(1)),
        "map: the expression `x0 + x1` (number of inputs: 1), expected a tensor for each input that it reads",
    );
}

#[test]
fn a_division_by_zero_is_a_value() -> Result<(), Error> {
    let graph = Graph::inference("quotients");
    let x = graph.constant("x", &[1.0; 2], &[2]);
    let y = x.activate(Activation::relu()).div(&graph.constant("zeros", &[0.0; 2], &[2]));
    assert_eq!(y.shape(), [2]);
    graph.check()
}

/// `where(x^1.5 < 2, x, 0)` has gradients 1 and 0, although the derivative of the root of a negative number is NaN. The gradients
/// are PyTorch's.
#[test]
fn no_gradient_passes_through_a_comparison() -> Result<(), Error> {
    let graph = Graph::training("net");
    let (values, grads) = (Persistent::new("x", DType::F32, 3), Persistent::new("grads", DType::F32, 3));
    let x = graph.parameter(&values, &grads, 0..3, &[3]);
    let (two, zero) = (graph.constant("two", &[2.0], &[1]), graph.constant("zero", &[0.0], &[1]));
    let root = x.map(|x| x.powf(1.5));
    graph.backward(&(root.less(&two).where_(&x, &zero).sum(..) + root.equal(&two).where_(&x, &zero).sum(..)))?;
    let device = Device::cpu()?;
    device.write(&values, &[1.0_f32, 3.0, -1.0])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(&grads)?, [1.0, 0.0, 0.0]);
    Ok(())
}
