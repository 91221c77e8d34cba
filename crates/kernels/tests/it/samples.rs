//! A kernel of each kind, in every form that chooses a different module, and adapters that choose differently.

use brisk_kernels::expr::Expr;
use brisk_kernels::*;

use crate::rules::{Descent, Everything};

/// The samples with their floats as f32, f16 and bf16, and those whose WGSL is generated from an expression.
pub(crate) fn every_sample() -> impl Iterator<Item = Box<dyn Kernel>> {
    let in_types = samples().into_iter().chain(samples_in(DType::F16)).chain(samples_in(DType::Bf16));
    in_types.chain(crate::map_samples::maps()).chain(crate::map_samples::reductions())
}

/// The samples with their floats stored in 16 bits.
fn samples_in(dtype: DType) -> impl Iterator<Item = Box<dyn Kernel>> {
    samples().into_iter().map(move |kernel| {
        let given = kernel.args().into_iter().filter(|arg| arg.access != Access::Scratch);
        let dtypes: Vec<DType> = given.map(|arg| if arg.dtype == DType::F32 { dtype } else { arg.dtype }).collect();
        stored(kernel, &dtypes).unwrap_or_else(|error| panic!("{error}"))
    })
}

pub(crate) fn dispatches(kernel: &dyn Kernel, adapter: &Adapter) -> Vec<Dispatch> {
    kernel.check().unwrap_or_else(|error| panic!("{error}"));
    kernel.dispatches(adapter).unwrap_or_else(|error| panic!("{error}"))
}

/// A kernel of each kind, in every form that chooses different WGSL.
fn samples() -> Vec<Box<dyn Kernel>> {
    let relu = Activation::relu();
    let bce = BceWithLogits { n: 5, reduction: Reduction::Mean, pos_weight: 1.0 };
    let mse = MseLoss { n_rows: 3, n_cols: 2, reduction: Reduction::Sum };
    let embedding = Embedding { n: 5, n_entries: 3, dim: 2, n_index_cols: 2, index_col: 1 };
    let gather = Gather { n_outer: 2, n_x: 5, n: 3, n_inner: 4, index: GatherIndex::Each };
    let select = Gather { index: GatherIndex::Shared, ..gather };
    let mut samples: Vec<Box<dyn Kernel>> = vec![
        Box::new(Update::new("descent", Descent { decay: 0.0 }, 7)),
        Box::new(Update::new("descent", Descent { decay: 0.0 }, 8)),
        Box::new(Update::new("everything", Everything, 8).table_len(2)),
        Box::new(Map::binary(7, |a, b| a + b)),
        Box::new(MapInPlace { map: Map::binary(7, |x, sum| sum + x), input: 1 }),
        Box::new(Advance),
        Box::new(BatchRows { first: 3, n: 7 }),
        Box::new(bce.loss()),
        Box::new(bce.grad()),
        Box::new(Cast { n: 7, from: DType::F32, to: DType::F16 }),
        Box::new(ArgMax { n_outer: 2, n: 5, n_inner: 3 }),
        Box::new(augment_images(DType::F32, 0)),
        Box::new(augment_images(DType::U8, 7)),
        Box::new(ArgMax { n_outer: 2, n: 500, n_inner: 3 }),
        Box::new(MapReduce::of(Reducer::Sum, &[70, 3], &[0])),
        Box::new(CumulativeSum { n_outer: 2, n: 5, n_inner: 3, order: SumOrder::Forward }),
        Box::new(CumulativeSum { n_outer: 2, n: 500, n_inner: 3, order: SumOrder::Reverse }),
        Box::new(ConcatColumns { n_rows: 3, widths: vec![2, 5] }),
        Box::new(embedding),
        Box::new(EmbeddingGrad { forward: embedding, padding: None }),
        Box::new(EmbeddingGrad { forward: Embedding { n_entries: 1000, ..embedding }, padding: Some(0) }),
        Box::new(FirstNonFinite { place: 3 }),
        Box::new(gather),
        Box::new(GatherGrad { forward: gather }),
        Box::new(select),
        Box::new(GatherGrad { forward: select }),
        Box::new(GatherCategories { first_row: 0, n_table_rows: 9, n_cols: 3, n: 4 }),
        Box::new(GatherRows { dtype: DType::F32, first_row: 0, n_table_rows: 9, n_cols: 3, n: 4 }),
        Box::new(GatherRows { dtype: DType::U8, first_row: 7, n_table_rows: 9, n_cols: 3, n: 4 }),
        Box::new(MixRows { n: 5, cut: None, seed: 1 }),
        Box::new(MixRows { n: 5, cut: Some([4, 3, 2]), seed: 1 }),
        Box::new(mse.loss()),
        Box::new(mse.grad()),
        Box::new(Update::new("everything", Everything, 7).table_len(2)),
        Box::new(ShiftColumns { n_rows: 3, n_x_cols: 5, n_y_cols: 2, shift: 1 }),
        Box::new(StoreRows { n: 4, n_cols: 3, n_total: 9 }),
    ];
    samples.extend(row_samples());
    samples.extend(activation_samples());
    for transpose in [Transpose::None, Transpose::A, Transpose::B, Transpose::Both] {
        let plain = [Epilogue::none(), Epilogue::activation(&relu), Epilogue::bias(&relu), output_grad(&relu)];
        for epilogue in plain.into_iter().chain(dropouts()) {
            for (n, k) in [(1, 40), (9, 40), (300, 39), (300, 40), (320, 48), (304, 39), (304, 40)] {
                samples.push(Box::new(Matmul { n_batch: 1, m: 256, n, k, transpose, epilogue: epilogue.clone() }));
            }
        }
    }
    let thin = Matmul { n_batch: 1, m: 1, n: 40, k: 1029, transpose: Transpose::A, epilogue: Epilogue::none() };
    samples.push(Box::new(thin.clone()));
    samples.push(Box::new(Matmul { m: 70, k: 1, transpose: Transpose::None, epilogue: output_grad(&relu), ..thin }));
    let shape = BatchNormShape { n_rows: 70, n_channels: 3, n_groups: 1 };
    let large = BatchNormShape { n_rows: 40 * 64, ..shape };
    samples.extend(
        [shape, large].map(|shape| Box::new(BatchNormStats { shape, n_weights: 0, eps: 1e-5, momentum: 0.1 }) as Box<dyn Kernel>),
    );
    samples.push(Box::new(BatchNormStats { shape, n_weights: 35, eps: 1e-5, momentum: 0.1 }));
    samples.push(Box::new(shape.weighted_grad_factors(35)));
    samples.push(Box::new(shape.weighted_grad_x(35)));
    samples.push(Box::new(BatchNormFrozenStats { n_channels: 3, eps: 1e-5 }));
    samples.push(Box::new(shape.normalise(&relu)));
    samples.push(Box::new(shape.activation_grad(&Activation::gelu())));
    for shape in [shape, BatchNormShape { n_groups: 2, ..shape }] {
        samples.push(Box::new(shape.grad_sums()));
        samples.push(Box::new(shape.grad_bias()));
        samples.push(Box::new(shape.grad_weight()));
        samples.push(Box::new(shape.grad_x()));
        samples.push(Box::new(shape.frozen_grad_x()));
    }
    let pool = PoolShape::global(Images { n_images: 3, height: 4, width: 4, n_channels: 5 });
    let mean = AvgPool2d { shape: pool, divisor: PoolDivisor::Padded };
    samples.push(Box::new(MaxPool2d { shape: pool }));
    samples.push(Box::new(MaxPool2dGrad { shape: pool }));
    samples.push(Box::new(mean));
    samples.push(Box::new(AvgPool2dGrad { forward: mean }));
    for (n_channels, n_out) in [(3, 5), (64, 64)] {
        let x = Images { n_images: 64, height: 8, width: 8, n_channels };
        let shape = ConvShape::dense(x, n_out, Window::square(3, 1));
        for epilogue in [Epilogue::none(), Epilogue::activation(&relu), Epilogue::bias(&relu)].into_iter().chain(dropouts()) {
            samples.push(Box::new(Conv2d { shape, epilogue }));
        }
        for epilogue in [Epilogue::none(), output_grad(&relu)] {
            samples.push(Box::new(Conv2dGradInput { shape, epilogue }));
        }
        samples.push(Box::new(Conv2dGradWeight { shape }));
    }
    for (n_channels, n_out) in [(3, 3), (64, 128)] {
        let x = Images { n_images: 4, height: 8, width: 8, n_channels };
        let shape = ConvShape { x, n_out, window: Window::square(3, 2), dilation: [2, 2], n_groups: n_channels };
        for epilogue in [Epilogue::none(), Epilogue::bias(&relu)].into_iter().chain(dropouts()) {
            samples.push(Box::new(Conv2d { shape, epilogue }));
        }
        for epilogue in [Epilogue::none(), output_grad(&relu)] {
            samples.push(Box::new(Conv2dGradInput { shape, epilogue }));
        }
        samples.push(Box::new(Conv2dGradWeight { shape }));
    }
    samples
}

fn augment_images(dtype: DType, first_row: usize) -> AugmentImages {
    let augmentation = ImageAugmentation { pad: 1, ..ImageAugmentation::default() };
    AugmentImages { dtype, first_row, n_table_rows: 9, image: [4, 4, 3], crop: [4, 4], n: 5, augmentation }
}

/// Kernels that process rows, narrow and wide, and kernels over gradients and parameters.
fn row_samples() -> Vec<Box<dyn Kernel>> {
    let mut samples: Vec<Box<dyn Kernel>> = vec![
        Box::new(clip_by_norm(7, 1.0).expect("a limit")),
        Box::new(clip_by_value(7, 1.0).expect("a limit")),
        Box::new(Unscale { n: 7 }),
        Box::new(SkipIncomplete { every: 3, n_batches: 8 }),
        Box::new(UpdateScale::default()),
        Box::new(Matmul { n_batch: 3, m: 5, n: 7, k: 9, transpose: Transpose::B, epilogue: Epilogue::none() }),
        Box::new(Matmul { n_batch: 3, m: 32, n: 64, k: 16, transpose: Transpose::B, epilogue: Epilogue::none() }),
        Box::new(Map::dropout(7, 0.5, Draws { seed: 1, stream: 2, ..Draws::default() })),
        Box::new(SkipWeightless { every: 3, n_batches: 8 }),
    ];
    samples.extend(group_samples());
    for n_cols in [5, 500, 5000] {
        let softmax = Softmax { n_rows: 3, n_cols, form: SoftmaxForm::Probability };
        samples.push(Box::new(softmax));
        samples.push(Box::new(SoftmaxGrad { forward: softmax }));
        for affine in [Affine::None, Affine::Weight, Affine::WeightAndBias] {
            let layer_norm = LayerNorm { n_rows: 3, n_cols, eps: 1e-5, affine };
            samples.push(Box::new(layer_norm));
            samples.push(Box::new(LayerNormGrad { forward: layer_norm }));
            samples.push(Box::new(layer_norm.weight_grad()));
        }
        for op in [Reducer::Mean, Reducer::Max, Reducer::Norm] {
            samples.push(Box::new(MapReduce::of(op, &[2, n_cols, 3], &[1])));
        }
        samples.push(Box::new(Correct { n_rows: 3, n_classes: n_cols }));
        for class_weights in [ClassWeights::Equal, ClassWeights::Given] {
            let cross_entropy = CrossEntropy { class_weights, ..CrossEntropy::new(3, n_cols) };
            samples.push(Box::new(cross_entropy));
            samples.push(Box::new(CrossEntropyGrad { forward: cross_entropy }));
        }
    }
    samples
}

/// Each activation in each kernel that supports it.
fn activation_samples() -> Vec<Box<dyn Kernel>> {
    let celu = Activation::celu(0.5);
    let from_output = [Activation::identity(), Activation::relu(), celu, Activation::sigmoid(), Activation::tanh()];
    let mut samples: Vec<Box<dyn Kernel>> = Vec::new();
    for activation in from_output.clone() {
        samples.push(Box::new(Map::flat(7, activation.grad_from_output().expect("it follows from the output"))));
        samples.push(Box::new(BatchNormShape { n_rows: 70, n_channels: 4, n_groups: 1 }.normalise(&activation)));
        for epilogue in [Epilogue::activation(&activation), Epilogue::bias(&activation), output_grad(&activation)] {
            for (n, k) in [(1, 40), (9, 40), (40, 40)] {
                samples.push(Box::new(Matmul {
                    n_batch: 1,
                    m: 25,
                    n,
                    k,
                    transpose: Transpose::None,
                    epilogue: epilogue.clone(),
                }));
            }
        }
    }
    for activation in from_output.into_iter().chain([Activation::gelu(), Activation::gelu_tanh(), Activation::silu()]) {
        for epilogue in [Epilogue::bias(&activation), Epilogue::with_matrix(activation.grad())] {
            if epilogue.expr().reads(1) {
                samples.push(Box::new(Matmul { n_batch: 1, m: 25, n: 40, k: 40, transpose: Transpose::None, epilogue }));
            }
        }
        samples.push(Box::new(Map::flat(7, activation.forward.clone())));
        samples.push(Box::new(Map::flat(7, activation.grad())));
    }
    samples
}

/// Kernels for some of the parameters in a flat buffer.
fn group_samples() -> Vec<Box<dyn Kernel>> {
    let runs = Runs { n: 100, starts: vec![3, 50], len: 40 };
    vec![
        Box::new(GatherRuns { runs: runs.clone() }),
        Box::new(ScaleRuns { runs, to: 1.0, eps: 1e-7 }),
        Box::new(Update::new("descent", Descent { decay: 0.0 }, 100).grouped()),
        Box::new(Update::new("descent", Descent { decay: 0.0 }, 101).grouped()),
        Box::new(NewtonSchulzFactor { n_batch: 2, n: 3, coefficients: [1.0; 3] }),
    ]
}

/// One adapter for each set of modules that kernels choose from.
pub(crate) fn adapters() -> [Adapter; 7] {
    let (plain, f16) = (wgpu::Features::empty(), wgpu::Features::SHADER_F16);
    let kinds = [
        (AdapterKind::Software, plain, None, false),
        (AdapterKind::Software, f16, None, false),
        (AdapterKind::Hardware, plain, None, false),
        (AdapterKind::Hardware, f16, None, false),
        (AdapterKind::Hardware, f16, None, true),
        (AdapterKind::Hardware, CoopShape::FEATURES, Some(CoopShape::Sixteen), false),
        (AdapterKind::Hardware, CoopShape::FEATURES, Some(CoopShape::Eight), false),
    ];
    kinds.map(|(kind, features, coop, f16_accumulation)| {
        let n_lanes = if kind == AdapterKind::Hardware { 32 } else { 8 };
        // Adapters with tensor cores have more workgroup memory than the minimum.
        let max_compute_workgroup_storage_size = if coop.is_some() { 32 << 10 } else { 16 << 10 };
        Adapter::new("sample", kind)
            .with_features(features)
            .with_limits(wgpu::Limits { max_compute_workgroup_storage_size, ..wgpu::Limits::default() })
            .with_subgroups([n_lanes; 2])
            .with_coop(coop)
            .with_f16_accumulation(f16_accumulation)
    })
}

/// The gradient through an activation, from its output. That of the identity does not read the output.
/// Epilogues with dropout: of an activation, of an activation with a bias, and followed by the derivative of an activation.
pub(crate) fn dropouts() -> [Epilogue; 3] {
    let draws = Draws { seed: 5, stream: 1, part: 2, first: 3 };
    let drop = |x: Expr, number: usize| Expr::input(number).lt(0.25).select(0.0, x / 0.75);
    let [sum, argument] = [0, 1].map(Expr::input);
    [
        Epilogue::map(drop(sum.relu(), 1)).with_draws(draws),
        Epilogue::with_row(drop((&sum + &argument).relu(), 2)).with_draws(draws),
        Epilogue::with_matrix(Activation::gelu().grad().substitute(&[drop(sum, 2), argument])).with_draws(draws),
    ]
}

pub(crate) fn output_grad(activation: &Activation) -> Epilogue {
    if activation.is_identity() {
        return Epilogue::none();
    }
    Epilogue::with_matrix(activation.grad_from_output().expect("it follows from the output"))
}
