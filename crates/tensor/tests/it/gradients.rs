//! The gradients of every differentiable operation, and how they are added up.

use brisk_tensor::{
    Activation, BatchNormOptions, Conv2dOptions, Graph, Pool2d, PoolDivisor, Reduction, Rounding, Statistics, Tensor, Transpose,
};

use crate::finite_difference::check_gradients;
use crate::random::Random;

fn fused() -> [Activation; 5] {
    [Activation::identity(), Activation::relu(), Activation::celu(0.7), Activation::sigmoid(), Activation::tanh()]
}

fn of_input() -> [Activation; 4] {
    [Activation::elu(0.7), Activation::gelu(), Activation::gelu_tanh(), Activation::silu()]
}

fn constant(graph: &Graph, shape: &[usize], value: impl Fn(usize) -> f32) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
    graph.constant("constant", &values, shape)
}

fn count(kernels: &[&str], name: &str) -> usize {
    kernels.iter().filter(|kernel| **kernel == name).count()
}

#[test]
fn linear_with_a_bias() {
    for activation in fused().into_iter().chain(of_input()) {
        check_gradients(&[&[6, 5], &[4, 5], &[4]], |_, p| p[0].linear(&p[1], Some(&p[2]), activation.clone()));
    }
}

#[test]
fn linear_without_a_bias() {
    for activation in fused().into_iter().chain(of_input()) {
        check_gradients(&[&[6, 5], &[4, 5]], |_, p| p[0].linear(&p[1], None, activation.clone()));
    }
}

#[test]
fn linear_of_one_row_one_column_and_of_many() {
    for [m, k, n] in [[1, 1, 1], [1, 7, 3], [9, 1, 2], [3, 8, 1], [33, 17, 19]] {
        check_gradients(&[&[m, k], &[n, k], &[n]], |_, p| p[0].linear(&p[1], Some(&p[2]), Activation::tanh()));
    }
}

#[test]
fn linear_of_rows_in_several_dimensions() {
    for activation in [Activation::identity(), Activation::tanh(), Activation::gelu()] {
        check_gradients(&[&[2, 3, 5], &[4, 5], &[4]], |_, p| {
            let y = p[0].linear(&p[1], Some(&p[2]), activation.clone());
            assert_eq!(y.shape(), [2, 3, 4]);
            y
        });
    }
}

#[test]
fn matmul_with_every_transpose() {
    let (m, n, k) = (4, 3, 5);
    for (transpose, a, b) in [
        (Transpose::None, [m, k], [k, n]),
        (Transpose::A, [k, m], [k, n]),
        (Transpose::B, [m, k], [n, k]),
        (Transpose::Both, [k, m], [n, k]),
    ] {
        check_gradients(&[&a, &b], |_, p| {
            let y = p[0].matmul(&p[1], transpose);
            assert_eq!(y.shape(), [m, n], "{transpose:?}");
            y
        });
    }
}

#[test]
fn conv2d() {
    for activation in fused().into_iter().chain(of_input()) {
        check_gradients(&[&[2, 5, 4, 3], &[4, 3, 3, 3], &[4]], |_, p| {
            p[0].conv2d(&p[1], Some(&p[2]), [1, 1], [1, 1], activation.clone())
        });
    }
    for (kernel, stride, padding) in [([1, 1], [1, 1], [0, 0]), ([2, 3], [2, 1], [0, 2]), ([5, 1], [3, 2], [1, 0])] {
        check_gradients(&[&[2, 5, 4, 3], &[2, kernel[0], kernel[1], 3]], |_, p| {
            p[0].conv2d(&p[1], None, stride, padding, Activation::tanh())
        });
    }
}

#[test]
fn conv2d_with_groups_and_dilation() {
    let options = Conv2dOptions { padding: [1, 1], n_groups: 4, ..Conv2dOptions::default() };
    for activation in fused().into_iter().chain(of_input()) {
        let options = Conv2dOptions { activation, ..options.clone() };
        check_gradients(&[&[2, 4, 5, 4], &[4, 3, 3, 1], &[4]], |_, p| p[0].conv2d_with(&p[1], Some(&p[2]), &options));
    }
    for (n_out, n_groups, stride, dilation) in
        [(6, 2, [1, 1], [1, 1]), (3, 1, [1, 2], [2, 1]), (8, 4, [2, 1], [2, 3]), (2, 2, [2, 2], [1, 2])]
    {
        let options = Conv2dOptions { stride, padding: [2, 3], dilation, n_groups, activation: Activation::tanh() };
        let kernels =
            check_gradients(&[&[2, 5, 4, 4], &[n_out, 2, 3, 4 / n_groups]], |_, p| p[0].conv2d_with(&p[1], None, &options));
        let names = ["conv2d", "conv2d_grad_input", "conv2d_grad_weight"];
        assert!(names.iter().all(|name| count(&kernels, name) == 1), "{kernels:?}");
    }
}

#[test]
fn convolutions_take_the_slope_of_the_activation_below_in_the_product() {
    for stride in [[1, 1], [2, 2]] {
        let kernels = check_gradients(&[&[4, 3, 3, 2], &[3, 3, 3, 4]], |graph, p| {
            let x = graph.constant("x", &Random::new(3).floats(2 * 6 * 6 * 2), &[2, 6, 6, 2]);
            let hidden = x.conv2d(&p[0], None, [1, 1], [1, 1], Activation::celu(0.3));
            hidden.conv2d(&p[1], None, stride, [1, 1], Activation::identity())
        });
        assert_eq!(count(&kernels, "map"), 0, "{kernels:?}");
    }
    let kernels = check_gradients(&[&[4, 3, 3, 2], &[4, 3, 3, 1]], |graph, p| {
        let x = graph.constant("x", &Random::new(3).floats(2 * 6 * 6 * 2), &[2, 6, 6, 2]);
        let hidden = x.conv2d(&p[0], None, [1, 1], [1, 1], Activation::celu(0.3));
        hidden.conv2d_with(&p[1], None, &Conv2dOptions { n_groups: 4, ..Conv2dOptions::default() })
    });
    assert_eq!(count(&kernels, "map"), 0, "{kernels:?}");
}

#[test]
fn pooling() {
    let overlapping = Pool2d { stride: [2, 1], padding: [1, 0], rounding: Rounding::Up, ..Pool2d::square(3) };
    for pool in [Pool2d::square(2), overlapping] {
        check_gradients(&[&[2, 6, 5, 3]], |_, p| p[0].max_pool2d(&pool));
        for divisor in [PoolDivisor::Padded, PoolDivisor::Inside] {
            check_gradients(&[&[2, 6, 5, 3]], |_, p| p[0].avg_pool2d(&pool, divisor));
        }
    }
    check_gradients(&[&[2, 6, 5, 3]], |_, p| p[0].global_max_pool2d());
    check_gradients(&[&[2, 6, 5, 3]], |_, p| p[0].global_avg_pool2d());
}

#[test]
fn batch_norm() {
    let statistics =
        [Statistics::Batch { n_groups: 1, momentum: 0.1 }, Statistics::Batch { n_groups: 3, momentum: 0.1 }, Statistics::Running];
    for (statistics, activation) in
        statistics.into_iter().flat_map(|s| [Activation::celu(0.7), Activation::tanh(), Activation::gelu()].map(|act| (s, act)))
    {
        let options = |graph: &Graph| {
            let (mean, var) = (constant(graph, &[4], |i| 0.1 * i as f32), constant(graph, &[4], |i| 0.4 + 0.2 * i as f32));
            (mean, var)
        };
        check_gradients(&[&[6, 3, 2, 4], &[4], &[4]], |graph, p| {
            let (running_mean, running_var) = &options(graph);
            let (weight, bias) = (Some(&p[1]), Some(&p[2]));
            p[0].batch_norm(&BatchNormOptions {
                weight,
                bias,
                running_mean,
                running_var,
                statistics,
                eps: 1e-3,
                activation: activation.clone(),
            })
        });
        // A frozen scale, rows without pixels, and no bias.
        check_gradients(&[&[12, 4]], |graph, p| {
            let (running_mean, running_var) = &options(graph);
            let scale = constant(graph, &[4], |i| 1.0 + i as f32);
            let weight = Some(&scale);
            p[0].batch_norm(&BatchNormOptions {
                weight,
                bias: None,
                running_mean,
                running_var,
                statistics,
                eps: 1e-3,
                activation: activation.clone(),
            })
        });
        check_gradients(&[&[4]], |graph, p| {
            let (running_mean, running_var) = &options(graph);
            let x = graph.constant("x", &Random::new(6).floats(24), &[6, 4]);
            let bias = Some(&p[0]);
            x.batch_norm(&BatchNormOptions {
                weight: None,
                bias,
                running_mean,
                running_var,
                statistics,
                eps: 1e-3,
                activation: activation.clone(),
            })
        });
    }
}

#[test]
fn activate() {
    for activation in fused().into_iter().chain(of_input()) {
        check_gradients(&[&[41]], |_, p| p[0].activate(activation.clone()));
    }
}

#[test]
fn embedding() {
    // Few entries and many, some of them in no row, some in several; a code beyond the table.
    for (n_entries, dim) in [(1, 1), (4, 3), (100, 2)] {
        check_gradients(&[&[n_entries, dim]], |graph, p| {
            let codes = graph.constant_codes("codes", &[9, 0, 9, 3, 9, 3, 9, 1000, 9, 99], &[5, 2]);
            p[0].embedding(&codes, 1, None)
        });
    }
}

#[test]
fn columns_side_by_side_and_cut_out() {
    check_gradients(&[&[4, 3], &[4, 1], &[4, 2]], |_, p| {
        let all = p[0].concat_columns(&[&p[1], &p[2], &p[0]]);
        assert_eq!(all.shape(), [4, 9]);
        all.columns(1..5)
    });
}

#[test]
fn columns_of_what_went_through_an_activation() {
    check_gradients(&[&[4, 3], &[5, 3], &[2, 7]], |_, p| {
        let hidden = p[0].linear(&p[1], None, Activation::tanh());
        let both = hidden.concat_columns(&[&hidden.columns(1..3)]);
        both.linear(&p[2], None, Activation::identity())
    });
}

#[test]
fn multiply() {
    check_gradients(&[&[4, 3], &[4, 3]], |_, p| p[0].multiply(&p[1]));
    check_gradients(&[&[4, 3]], |_, p| p[0].multiply(&p[0]));
}

#[test]
fn bce_with_logits() {
    for reduction in [Reduction::Mean, Reduction::Sum] {
        for pos_weight in [1.0, 2.5] {
            check_gradients(&[&[7]], |graph, p| {
                let target = constant(graph, &[7], |i| (i % 2) as f32);
                // Rows of padding among them.
                let weight = constant(graph, &[7], |i| if i < 5 { 1.0 + i as f32 } else { 0.0 });
                p[0].bce_with_logits(&target, &weight, reduction, pos_weight)
            });
        }
    }
}

#[test]
fn mse_loss() {
    for reduction in [Reduction::Mean, Reduction::Sum] {
        check_gradients(&[&[5, 3]], |graph, p| {
            let target = constant(graph, &[5, 3], |i| i as f32 / 10.0);
            let weight = constant(graph, &[5], |row| [1.0, 2.0, 0.5, 1.0, 0.0][row]);
            p[0].mse_loss(&target, &weight, reduction)
        });
    }
}

#[test]
fn a_network_of_two_layers_takes_the_slope_of_its_activation_in_the_product() {
    for activation in fused() {
        let kernels = check_gradients(&[&[6, 4], &[6], &[1, 6], &[1]], |graph, p| {
            let x = graph.constant("x", &Random::new(3).floats(8 * 4), &[8, 4]);
            let target = constant(graph, &[8], |row| (row % 2) as f32);
            let weight = constant(graph, &[8], |_| 1.0);
            let hidden = x.linear(&p[0], Some(&p[1]), activation.clone());
            let logits = hidden.linear(&p[2], Some(&p[3]), Activation::identity());
            logits.bce_with_logits(&target, &weight, Reduction::Mean, 1.0)
        });
        assert_eq!(count(&kernels, "map"), 1, "{activation:?}: the gradient of the loss, in {kernels:?}");
    }
}

#[test]
fn a_network_whose_activation_needs_its_input() {
    for activation in of_input() {
        let kernels = check_gradients(&[&[3, 4], &[2, 3]], |graph, p| {
            let x = graph.constant("x", &Random::new(3).floats(5 * 4), &[5, 4]);
            x.linear(&p[0], None, activation.clone()).linear(&p[1], None, activation.clone())
        });
        assert_eq!(count(&kernels, "map"), 4, "two activations and their derivatives, {activation:?}: {kernels:?}");
    }
}

#[test]
fn a_parameter_used_twice_gets_the_sum() {
    let kernels = check_gradients(&[&[4, 4], &[4]], |graph, p| {
        let x = graph.constant("x", &Random::new(4).floats(12), &[3, 4]);
        let y = x.linear(&p[0], Some(&p[1]), Activation::tanh());
        y.linear(&p[0], Some(&p[1]), Activation::identity())
    });
    assert_eq!(count(&kernels, "map"), 4, "a sum and its copy for the weight, and for the bias: {kernels:?}");
}

#[test]
fn a_parameter_used_three_times_gets_the_sum() {
    check_gradients(&[&[4, 4]], |_, p| p[0].matmul(&p[0], Transpose::A).matmul(&p[0], Transpose::B));
}

#[test]
fn a_layers_output_used_twice_goes_through_its_activation_once() {
    for activation in fused().into_iter().skip(1) {
        let kernels = check_gradients(&[&[3, 4], &[3, 3]], |graph, p| {
            let x = graph.constant("x", &Random::new(8).floats(20), &[5, 4]);
            let h = x.linear(&p[0], None, activation.clone());
            h.linear(&p[1], None, Activation::identity()).matmul(&h, Transpose::B)
        });
        assert_eq!(count(&kernels, "map"), 2, "a sum, then the derivative, {activation:?}: {kernels:?}");
    }
}

#[test]
fn a_layers_output_multiplied_by_itself() {
    check_gradients(&[&[3, 4]], |graph, p| {
        let x = graph.constant("x", &Random::new(8).floats(20), &[5, 4]);
        let h = x.linear(&p[0], None, Activation::sigmoid());
        h.matmul(&h, Transpose::B)
    });
}

#[test]
fn another_shape_of_the_same_tensor_shares_its_gradient() {
    check_gradients(&[&[6, 2]], |_, p| {
        let h = p[0].activate(Activation::tanh());
        h.reshape(&[3, 4]).matmul(&h.reshape(&[4, 3]), Transpose::None)
    });
}

#[test]
fn a_loss_may_be_a_parameter() {
    let kernels = check_gradients(&[&[]], |_, p| p[0].clone());
    assert_eq!(kernels, ["map"], "a copy of the one");
}

#[test]
fn what_has_no_part_in_the_loss_gets_no_gradient_and_costs_nothing() {
    let kernels = check_gradients(&[&[2, 3]], |graph, p| {
        let x = graph.constant("x", &[1.0; 6], &[2, 3]);
        x.matmul(&p[0], Transpose::B)
    });
    assert_eq!(count(&kernels, "matmul"), 2, "forward and the weight's, none for the input: {kernels:?}");
}
