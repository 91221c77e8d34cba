//! Invalid sizes are refused with the names of the kernel and the size, before anything is recorded or executed.

use brisk_kernels::*;

#[track_caller]
fn refuses(kernel: impl Kernel, expected: &str) {
    let error = kernel.check().expect_err("a size that makes no sense");
    assert_eq!(error.to_string(), expected, "{kernel:?}");
}

fn none(kernel: &str, size: &str) -> String {
    format!("{kernel}: {size} is 0, expected 1 to 2^32 - 1")
}

#[test]
fn zero_is_refused() {
    let bce = BceWithLogits { n: 0, reduction: Reduction::Mean, pos_weight: 1.0 };
    let mse = MseLoss { n_rows: 1, n_cols: 0, reduction: Reduction::Mean };
    refuses(Map::unary(0, |x| x.relu()), &none("map", "number of elements"));
    refuses(Map::flat(0, Activation::relu().grad()), &none("map", "number of elements"));
    refuses(Map::binary(0, |a, b| a + b), &none("map", "number of elements"));
    refuses(BatchRows { first: 0, n: 0 }, &none("batch_rows", "n"));
    refuses(bce.loss(), &none("map_reduce", "number of elements"));
    refuses(bce.grad(), &none("map", "number of elements"));
    refuses(MapReduce::of(Reducer::Sum, &[0, 1], &[0]), &none("map_reduce", "number of elements"));
    let embedding = Embedding { n: 1, n_entries: 0, dim: 1, n_index_cols: 1, index_col: 0 };
    refuses(ConcatColumns { n_rows: 1, widths: vec![] }, &none("concat_columns", "number of matrices"));
    refuses(ConcatColumns { n_rows: 1, widths: vec![3, 0] }, &none("concat_columns", "width"));
    refuses(embedding, &none("embedding", "n_entries"));
    refuses(EmbeddingGrad { forward: embedding, padding: None }, &none("embedding_grad", "n_entries"));
    refuses(GatherCategories { first_row: 0, n_table_rows: 0, n_cols: 1, n: 1 }, &none("gather_categories", "n_table_rows"));
    refuses(GatherRows { dtype: DType::F32, first_row: 0, n_table_rows: 1, n_cols: 0, n: 1 }, &none("gather_rows", "n_cols"));
    refuses(Map::binary(0, |a, b| a * b), &none("map", "number of elements"));
    refuses(ShiftColumns { n_rows: 1, n_x_cols: 1, n_y_cols: 0, shift: 0 }, &none("shift_columns", "n_y_cols"));
    refuses(mse.loss(), &none("map_reduce", "number of elements"));
    refuses(mse.grad(), &none("map", "number of elements"));
    refuses(StoreRows { n: 1, n_cols: 1, n_total: 0 }, &none("store_rows", "n_total"));
    refuses(
        Matmul { n_batch: 1, m: 1, n: 1, k: 0, transpose: Transpose::None, epilogue: Epilogue::none() },
        &none("matmul", "k"),
    );
}

#[test]
fn more_elements_than_an_index_reaches_are_refused() {
    let many = 1 << 17;
    refuses(
        Matmul { n_batch: 1, m: many, n: many, k: 1, transpose: Transpose::None, epilogue: Epilogue::none() },
        "matmul: y is 17179869184, expected at most 2^32 - 1 elements",
    );
    refuses(
        GatherRows { dtype: DType::U8, first_row: 0, n_table_rows: many, n_cols: many, n: 1 },
        "gather_rows: table is 17179869184, expected at most 2^32 - 1 elements",
    );
    refuses(
        GatherRows { dtype: DType::F32, first_row: 1 << 32, n_table_rows: 1, n_cols: 1, n: 1 },
        "gather_rows: last row is 4294967297, expected 1 to 2^32 - 1",
    );
    refuses(Map::binary(1 << 33, |a, b| a + b), "map: number of elements is 8589934592, expected 1 to 2^32 - 1");
}

/// Sizes whose product is beyond `usize` are refused like other large ones; nothing wraps and nothing panics.
#[test]
fn sizes_that_overflow_are_refused() {
    let huge = [usize::MAX, usize::MAX / 2, 1 << 63, (1 << 32) + 1];
    for (i, a) in huge.into_iter().enumerate() {
        let b = huge[(i + 1) % huge.len()];
        let images = Images { n_images: a, height: 3, width: b, n_channels: a };
        let kernels: [Box<dyn Kernel>; 16] = [
            Box::new(Matmul {
                n_batch: 1,
                m: a,
                n: b,
                k: a,
                transpose: Transpose::B,
                epilogue: Epilogue::bias(&Activation::relu()),
            }),
            Box::new(Matmul { n_batch: 1, m: 3, n: b, k: a, transpose: Transpose::Both, epilogue: Epilogue::none() }),
            Box::new(Matmul { n_batch: a, m: b, n: a, k: b, transpose: Transpose::A, epilogue: Epilogue::none() }),
            Box::new(Conv2d { shape: ConvShape::dense(images, b, Window::square(3, 1)), epilogue: Epilogue::none() }),
            Box::new(Conv2dGradInput { shape: ConvShape::dense(images, b, Window::square(1, 0)), epilogue: Epilogue::none() }),
            Box::new(Conv2dGradWeight { shape: ConvShape::dense(images, b, Window::square(3, 1)) }),
            Box::new(GatherRows { dtype: DType::U8, first_row: b, n_table_rows: a, n_cols: b, n: a }),
            Box::new(GatherCategories { first_row: 0, n_table_rows: b, n_cols: a, n: b }),
            Box::new(BatchRows { first: a, n: b }),
            Box::new(ConcatColumns { n_rows: a, widths: vec![a, b] }),
            Box::new(ShiftColumns { n_rows: a, n_x_cols: b, n_y_cols: a, shift: 1 }),
            Box::new(StoreRows { n: a, n_cols: b, n_total: a }),
            Box::new(Cast { n: a, from: DType::F32, to: DType::Bf16 }),
            Box::new(Map {
                shape: vec![a, b],
                inputs: vec![MapInput::new(&[a, b], DType::F32)],
                outputs: Map::unary(1, |x| x.exp()).outputs,
            }),
            Box::new(MapReduce::of(Reducer::Sum, &[a, b], &[0])),
            Box::new(MapReduce::of(Reducer::Sum, &[b, a], &[0, 1])),
        ];
        for kernel in kernels {
            let error = kernel.check().expect_err("no memory holds its arguments");
            assert!(matches!(error, Error::Size { .. }), "{kernel:?}: {error}");
            assert!(kernel.args().iter().any(|arg| arg.len > u32::MAX as usize), "{kernel:?}");
        }
    }
}

#[test]
fn arguments_that_mean_nothing_are_refused() {
    let embedding = Embedding { n: 2, n_entries: 3, dim: 1, n_index_cols: 2, index_col: 2 };
    refuses(embedding, "embedding: index_col is 2, expected a column of `index`");
    refuses(
        EmbeddingGrad { forward: Embedding { index_col: 0, ..embedding }, padding: Some(3) },
        "embedding_grad: padding is 3, expected an entry of the table",
    );
    refuses(
        GatherRows { dtype: DType::Bf16, first_row: 0, n_table_rows: 1, n_cols: 1, n: 1 },
        "gather_rows: a table of Bf16 is not supported, expected F32 or U8",
    );
    refuses(
        ShiftColumns { n_rows: 1, n_x_cols: 1, n_y_cols: 1, shift: -(1 << 31) },
        "shift_columns: shift is 2147483648, expected less than 2^31 either way",
    );
}

#[test]
fn zero_is_refused_along_rows() {
    let softmax = Softmax { n_rows: 2, n_cols: 0, form: SoftmaxForm::Log };
    refuses(softmax, &none("log_softmax", "n_cols"));
    refuses(SoftmaxGrad { forward: softmax }, &none("log_softmax_grad", "n_cols"));
    let layer_norm = LayerNorm { n_rows: 0, n_cols: 3, eps: 1e-5, affine: Affine::None };
    refuses(layer_norm, &none("layer_norm", "n_rows"));
    refuses(LayerNormGrad { forward: layer_norm }, &none("layer_norm_grad", "n_rows"));
    refuses(layer_norm.weight_grad(), &none("map_reduce", "number of elements"));
    let max = MapReduce::of(Reducer::Max, &[3, 0, 2], &[1]);
    refuses(max, &none("map_reduce", "number of elements"));
    refuses(clip_by_norm(0, 1.0).expect("a limit"), &none("map", "number of elements"));
    refuses(clip_by_value(0, 1.0).expect("a limit"), &none("map", "number of elements"));
    refuses(Unscale { n: 0 }, &none("unscale", "n"));
    let products = Matmul { n_batch: 0, m: 1, n: 1, k: 1, transpose: Transpose::None, epilogue: Epilogue::none() };
    refuses(products, &none("matmul", "n_batch"));
    refuses(Correct { n_rows: 0, n_classes: 2 }, &none("correct", "n_rows"));
    refuses(CrossEntropy::new(0, 2), &none("cross_entropy", "n_rows"));
    refuses(CrossEntropyGrad { forward: CrossEntropy::new(2, 0) }, &none("cross_entropy_grad", "n_classes"));
}
