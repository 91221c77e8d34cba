use brisk_kernels::expr::{Evaluator, Expr, Operand};
use brisk_kernels::{
    Activation, Adapter, Arg, Dispatch, Epilogue, EpilogueOperand, Error, Kernel, Map, MapReduce, Matmul, MatmulFamily, Reducer,
    Signature, Tiles, Transpose, TwinArgs, bytemuck,
};

use crate::close::{GRADIENT, Tolerance, assert_close};
use crate::gpu::gpu;
use crate::random::Random;
use crate::run::*;
use crate::samples::output_grad;

const TRANSPOSES: [Transpose; 4] = [Transpose::None, Transpose::A, Transpose::B, Transpose::Both];
fn activations() -> [Activation; 5] {
    [Activation::identity(), Activation::relu(), Activation::celu(0.5), Activation::sigmoid(), Activation::tanh()]
}

/// The gradient through an activation and the scale of dropout after it, from the result of both.
fn scaled_grad(activation: &Activation) -> Epilogue {
    if activation.is_identity() {
        return Epilogue::none(); // Its gradient needs no result.
    }
    let grad = activation.grad_from_output().expect("it follows from the output");
    Epilogue::with_matrix(grad.substitute(&[Expr::input(0) * 1.25, Expr::input(1) / 1.25]))
}

fn plain(m: usize, n: usize, k: usize) -> Matmul {
    Matmul { n_batch: 1, m, n, k, transpose: Transpose::None, epilogue: Epilogue::none() }
}

fn given(random: &mut Random, matmul: &Matmul) -> Vec<Words> {
    let read = |arg: &Arg| arg.access == brisk_kernels::Access::Read;
    matmul.args().into_iter().filter(read).map(|arg| words(&random.floats(arg.len))).collect()
}

/// The product by its definition, with sums in f64.
fn by_definition(matmul: &Matmul, given: &[Words]) -> Vec<f32> {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let (a, b) = (floats(&given[0]), floats(&given[1]));
    let mut y = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let a_at = |i| if transpose.a() { a[i * m + row] } else { a[row * k + i] };
            let b_at = |i| if transpose.b() { b[col * k + i] } else { b[i * n + col] };
            y.push((0..k).map(|i| f64::from(a_at(i)) * f64::from(b_at(i))).sum::<f64>() as f32);
        }
    }
    let operand: Vec<f32> = match matmul.epilogue.operand() {
        Some(EpilogueOperand::Row) => floats(&given[2]).repeat(m),
        Some(_) => floats(&given[2]).to_vec(),
        None => vec![0.0; m * n],
    };
    Evaluator::new(std::slice::from_ref(matmul.epilogue.expr())).run_in_place(&mut y, &[Operand::Slice(&operand)]);
    y
}

#[track_caller]
fn check_twin(random: &mut Random, matmul: Matmul) {
    let given = given(random, &matmul);
    let found = twin_floats(&matmul, &given);
    assert_close(&format!("{matmul:?}"), &found, &by_definition(&matmul, &given), Tolerance::of_sum(matmul.k));
}

#[test]
fn twin_equals_hand_worked_numbers() {
    let (a, b) = (words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), words(&[1.0, 0.0, 2.0, -1.0, 0.0, 3.0]));
    // a: [2, 3], b: [3, 2].
    assert_eq!(twin_floats(&plain(2, 2, 3), &[a.clone(), b.clone()]), [5.0, 7.0, 14.0, 13.0], "a b");
    let turned = Matmul { transpose: Transpose::Both, ..plain(3, 3, 2) };
    // aᵀ: [3, 2] of a stored [2, 3], bᵀ: [2, 3] of b stored [3, 2].
    assert_eq!(twin_floats(&turned, &[a, b]), [1.0, -2.0, 12.0, 2.0, -1.0, 15.0, 3.0, 0.0, 18.0], "aᵀ bᵀ");
}

#[test]
fn twin_equals_the_definition_for_all_transposes_and_epilogues() {
    let mut random = Random::new(1);
    for transpose in TRANSPOSES {
        for act in activations() {
            let epilogues =
                [Epilogue::none(), Epilogue::activation(&act), Epilogue::bias(&act), output_grad(&act), scaled_grad(&act)];
            for epilogue in epilogues {
                for (m, n, k) in [(1, 1, 1), (5, 7, 3), (33, 17, 29), (70, 64, 20)] {
                    check_twin(&mut random, Matmul { n_batch: 1, m, n, k, transpose, epilogue: epilogue.clone() });
                }
            }
        }
    }
}

#[test]
fn twin_equals_the_definition_for_degenerate_and_tiled_shapes() {
    let mut random = Random::new(2);
    let shapes =
        [(1, 1, 300), (1, 300, 1), (300, 1, 1), (1, 257, 129), (513, 1, 255), (257, 129, 1), (515, 130, 61), (64, 256, 1024)];
    for (m, n, k) in shapes {
        for transpose in TRANSPOSES {
            check_twin(&mut random, Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::bias(&Activation::relu()) });
        }
    }
}

/// Around the sizes of a block and a panel, for any vector width, and of the parts into which K is divided.
#[test]
fn twin_equals_the_definition_at_the_edges_of_blocks() {
    let mut random = Random::new(10);
    for m in [2, 5, 6, 7, 11, 12, 13, 31, 32, 33, 48, 49] {
        for n in [2, 7, 15, 16, 17, 31, 32, 33] {
            for transpose in TRANSPOSES {
                check_twin(&mut random, Matmul { transpose, ..plain(m, n, 40) });
            }
        }
    }
    for k in [2, 511, 512, 513, 1030] {
        for (m, n) in [(30, 37), (100, 70)] {
            for transpose in TRANSPOSES {
                check_twin(&mut random, Matmul { transpose, ..plain(m, n, k) });
            }
        }
    }
}

/// A row of the result does not depend on how many there are.
#[test]
fn rows_have_the_same_bits_in_any_number() {
    let mut random = Random::new(11);
    let (n, k) = (40, 600);
    let (a, b) = (random.floats(200 * k), words(&random.floats(n * k)));
    let product = |m: usize| twin_floats(&Matmul { transpose: Transpose::B, ..plain(m, n, k) }, &[words(&a[..m * k]), b.clone()]);
    let all = product(200);
    for m in [2, 7, 32, 33, 64, 150] {
        assert!(product(m) == all[..m * n], "{m} rows");
    }
}

#[test]
fn a_packed_operand_gives_the_same_bits() {
    let mut random = Random::new(12);
    for (m, n, k) in [(2, 5, 3), (7, 33, 40), (100, 70, 600)] {
        for transpose in [Transpose::None, Transpose::B] {
            let matmul = Matmul { transpose, epilogue: Epilogue::bias(&Activation::relu()), ..plain(m, n, k) };
            let [a, b, bias] = [m * k, n * k, n].map(|len| random.floats(len));
            let packing = matmul.packing().expect("both sides are matrices");
            let mut packed = vec![f32::NAN; packing.len()];
            packing.pack(&b, &mut packed);
            let (declared, mut y) = (matmul.args(), vec![0.0; m * n]);
            let mut args = TwinArgs::new(&declared);
            args.set_packed(&packed);
            [&a, &b, &bias].into_iter().for_each(|x| args.push_read(bytemuck::cast_slice(x)));
            args.push_write(bytemuck::cast_slice_mut(&mut y));
            matmul.twin(&mut args);
            assert!(y == twin_floats(&matmul, &[words(&a), words(&b), words(&bias)]), "{matmul:?}");
        }
    }
    assert_eq!(plain(1, 40, 40).packing(), None, "each element is used once");
}

#[test]
fn nan_passes_through_on_the_twin() {
    for act in activations() {
        for (m, n, k) in [(1, 1, 1), (3, 1, 4), (2, 5, 1), (40, 40, 40)] {
            let mut a = vec![1.0; m * k];
            a[0] = f32::NAN;
            let matmul = Matmul { epilogue: Epilogue::bias(&act), ..plain(m, n, k) };
            let y = twin_floats(&matmul, &[words(&a), words(&vec![1.0; k * n]), words(&vec![0.0; n])]);
            assert!(y[..n].iter().all(|y| y.is_nan()), "{matmul:?}: {:?}", &y[..n]);
            assert!(y[n..].iter().all(|y| y.is_finite()), "{matmul:?}: other rows");
        }
    }
}

#[test]
fn nan_passes_through_saturating_epilogues_of_each_family() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    for family in [MatmulFamily::Direct, MatmulFamily::Tiled] {
        // With invocations of one column, of vectors, and with only one column.
        for (m, n, k) in [(3, 5, 2), (3, 8, 4), (3, 1, 2)] {
            for act in [Activation::sigmoid(), Activation::tanh()] {
                let matmul = Matmul { epilogue: Epilogue::bias(&act), ..plain(m, n, k) };
                let mut a = vec![1.0; m * k];
                a[k] = f32::NAN;
                if family.runs_on(&adapter) {
                    gpu_equals_twin(&By(family, matmul), &[words(&a), words(&vec![1.0; k * n]), words(&vec![0.0; n])]);
                }
            }
        }
    }
}

/// The loss of a linear layer and its three gradients: every product that a layer needs.
#[test]
fn gradients_of_a_layer_equal_finite_differences() {
    let mut random = Random::new(3);
    let (m, n, k) = (24, 10, 12);
    let act = Activation::tanh();
    let forward = Matmul { transpose: Transpose::B, epilogue: Epilogue::bias(&act), ..plain(m, n, k) };
    let (x, w, bias, grad_y) = (random.floats(m * k), random.floats(n * k), random.floats(n), random.floats(m * n));
    let y = |x: &[f32], w: &[f32], bias: &[f32]| twin_floats(&forward, &[words(x), words(w), words(bias)]);
    let out = y(&x, &w, &bias);
    let dz = twin_floats(
        &Map::flat(m * n, act.grad_from_output().expect("tanh's derivative follows from its output")),
        &[words(&grad_y), words(&out)],
    );
    let grad_x = twin_floats(&plain(m, k, n), &[words(&dz), words(&w)]);
    let grad_w = twin_floats(&Matmul { transpose: Transpose::A, ..plain(n, k, m) }, &[words(&dz), words(&x)]);
    let grad_bias = twin_floats(&MapReduce::of(Reducer::Sum, &[m, n], &[0]), &[words(&dz)]);
    let step = 0.005;
    for _ in 0..3 {
        let (along_x, along_w, along_bias) = (random.floats(m * k), random.floats(n * k), random.floats(n));
        let pairs = [
            ("grad_x", dot(&grad_x, &along_x), slope_along(&x, &along_x, step, |x| dot(&grad_y, &y(x, &w, &bias)))),
            ("grad_w", dot(&grad_w, &along_w), slope_along(&w, &along_w, step, |w| dot(&grad_y, &y(&x, w, &bias)))),
            (
                "grad_bias",
                dot(&grad_bias, &along_bias),
                slope_along(&bias, &along_bias, step, |bias| dot(&grad_y, &y(&x, &w, bias))),
            ),
        ];
        for (what, found, expected) in pairs {
            assert!(GRADIENT.holds(found, expected), "{what}: {found} != {expected}");
        }
    }
}

/// The product with one family of dispatches, whatever the adapter.
#[derive(Debug)]
struct By(MatmulFamily, Matmul);

impl Kernel for By {
    fn signature(&self) -> Signature {
        self.1.signature()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.1.dispatches_by(self.0, adapter)
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.1.twin(args);
    }
}

#[track_caller]
fn check_gpu(random: &mut Random, family: MatmulFamily, matmul: Matmul) {
    // Families that this device cannot run have returned an error.
    let runs = gpu().is_some_and(|gpu| family.runs_on(gpu.recorder.adapter()));
    if !runs {
        return;
    }
    let given = given(random, &matmul);
    gpu_equals_twin_within(&By(family, matmul.clone()), &given, Tolerance::of_sum(matmul.k));
}

#[test]
fn direct_equals_twin() {
    let family = MatmulFamily::Direct;
    let mut random = Random::new(4);
    // Sizes around a block of rows, a block of columns and a part of `k`, with n a multiple of four or not.
    let shapes = [
        (1, 1, 1),
        (1, 4, 1),
        (3, 5, 7),
        (24, 32, 16),
        (25, 36, 17),
        (23, 28, 15),
        (48, 64, 32),
        (50, 132, 9),
        (65, 31, 33),
        (97, 100, 28),
        (70, 1, 40),
        (1, 40, 70),
        (100, 72, 36),
        (31, 136, 4),
        (8, 64, 12),
        (9, 72, 1),
        (7, 56, 3),
        (17, 129, 5),
        (65, 8, 20),
        (3, 2, 256),
    ];
    for (m, n, k) in shapes {
        for transpose in TRANSPOSES {
            check_gpu(&mut random, family, Matmul { transpose, ..plain(m, n, k) });
        }
    }
    let celu = Activation::celu(0.5);
    for epilogue in
        [Epilogue::activation(&celu), Epilogue::bias(&Activation::sigmoid()), output_grad(&celu), Epilogue::bias(&celu)]
    {
        check_gpu(&mut random, family, Matmul { epilogue: epilogue.clone(), ..plain(26, 36, 8) });
        check_gpu(&mut random, family, Matmul { epilogue: epilogue.clone(), ..plain(26, 40, 8) });
        check_gpu(&mut random, family, Matmul { epilogue: epilogue.clone(), ..plain(13, 40, 7) });
        check_gpu(&mut random, family, Matmul { epilogue: epilogue.clone(), ..plain(13, 41, 7) });
        check_gpu(&mut random, family, Matmul { epilogue, transpose: Transpose::B, ..plain(13, 3, 8) });
    }
}

/// Each activation in each epilogue: as single elements, with few columns, and as vectors.
#[test]
fn epilogues_equal_twin() {
    let mut random = Random::new(8);
    for (m, n, k) in [(5, 7, 3), (5, 9, 3), (5, 12, 4)] {
        for act in activations() {
            for epilogue in [Epilogue::activation(&act), Epilogue::bias(&act), output_grad(&act)] {
                check_gpu(&mut random, MatmulFamily::Direct, Matmul { epilogue, ..plain(m, n, k) });
            }
        }
        // With the input of the activation, and a residual.
        let (gelu, residual) = (Activation::gelu(), Expr::input(0) + Expr::input(1));
        for epilogue in [Epilogue::bias(&gelu), Epilogue::with_matrix(gelu.grad()), Epilogue::with_matrix(residual.relu())] {
            check_gpu(&mut random, MatmulFamily::Direct, Matmul { epilogue, ..plain(m, n, k) });
        }
    }
}

#[test]
fn register_blocks_equal_twin_at_the_size_of_a_layer() {
    let mut random = Random::new(5);
    let relu = Epilogue::bias(&Activation::relu());
    let direct = MatmulFamily::Direct;
    check_gpu(&mut random, direct, Matmul { transpose: Transpose::B, epilogue: relu, ..plain(300, 256, 28) });
    check_gpu(&mut random, direct, Matmul { transpose: Transpose::A, ..plain(256, 28, 300) });
}

/// Barriers are extremely slow on a software adapter, so there are few and small products.
#[test]
fn tiled_equals_twin() {
    let mut random = Random::new(6);
    for (m, n, k) in [(64, 64, 16), (1, 4, 1), (65, 68, 17), (70, 63, 40)] {
        check_gpu(&mut random, MatmulFamily::Tiled, plain(m, n, k));
    }
    for transpose in TRANSPOSES {
        let epilogue = Epilogue::bias(&Activation::relu());
        check_gpu(&mut random, MatmulFamily::Tiled, Matmul { transpose, epilogue, ..plain(67, 33, 21) });
        let epilogue = output_grad(&Activation::tanh());
        check_gpu(&mut random, MatmulFamily::Tiled, Matmul { transpose, epilogue, ..plain(20, 72, 20) });
    }
}

/// Tiles of every size: within one tile, across several with edges, and parts of k that end within a tile.
#[test]
fn tiles_of_every_size_equal_twin() {
    let mut random = Random::new(9);
    let other = Tiles { invocations: [16, 8], blocks: [2, 1], depth: 8 };
    for tiles in [Tiles::SMALL, Tiles::MEDIUM, Tiles::LARGE, other, Tiles { invocations: [8, 16], blocks: [1, 2], depth: 4 }] {
        for (m, n, k) in [(1_usize, 4, 4), (35, 36, 20), (132, 68, 12), (64, 132, 24)] {
            for transpose in TRANSPOSES {
                let m = if transpose.a() { m.next_multiple_of(4) } else { m };
                let matmul = Matmul { transpose, epilogue: Epilogue::bias(&Activation::relu()), ..plain(m, n, k) };
                check_gpu(&mut random, MatmulFamily::TiledBy(tiles), matmul);
            }
        }
        let matmul = Matmul { transpose: Transpose::A, ..plain(20, 12, 1030) };
        let parts = matmul.args().pop().map_or(0, |arg| arg.len);
        assert_eq!(parts, 3 * 20 * 12, "three runs, of 512, 512 and 6 places");
        check_gpu(&mut random, MatmulFamily::TiledBy(tiles), matmul);
    }
}

#[test]
fn tiles_beyond_the_limits_of_a_device_are_refused() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let huge = MatmulFamily::TiledBy(Tiles { invocations: [64, 64], ..Tiles::LARGE });
    let error = plain(8, 8, 8).dispatches_by(huge, &adapter).expect_err("no device has so many invocations");
    let ending = "expected invocations and workgroup memory within the device's limits; take smaller tiles";
    assert!(error.to_string().ends_with(ending), "{error}");
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(7);
    let shapes =
        [(1024, 256, 256), (1024, 256, 28), (1024, 1, 256), (1, 512, 512), (2000, 64, 1), (28, 256, 1024), (300, 300, 256)];
    for (m, n, k) in shapes {
        for transpose in TRANSPOSES {
            let matmul = Matmul { transpose, epilogue: Epilogue::bias(&Activation::relu()), ..plain(m, n, k) };
            same_bits_on_any_pool(&matmul, &given(&mut random, &matmul));
        }
    }
}
