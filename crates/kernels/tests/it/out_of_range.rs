//! Kernels whose indices come from data receive values beyond the range. Both executors give the same results, and nothing
//! outside the kernel's arguments changes: each argument is between guard words in a larger buffer.

use brisk_kernels::*;

use crate::close::{DEFAULT, assert_close};
use crate::gpu::{Gpu, gpu};
use crate::random::Random;
use crate::rules::{Descent, Everything};
use crate::run::*;

/// Guard words before and after an argument: 256 bytes, to which every adapter aligns bindings.
const GUARD_WORDS: usize = 64;
const GUARD: u32 = 0x7FC0_60A4;

/// An argument's words between guards.
fn guarded(words: &[u32]) -> Words {
    [&[GUARD; GUARD_WORDS], words, &[GUARD; GUARD_WORDS]].concat()
}

/// The words between the guards, which have not changed.
#[track_caller]
fn unguarded<'a>(what: &str, words: &'a [u32]) -> &'a [u32] {
    let (before, rest) = words.split_at(GUARD_WORDS);
    let (inside, after) = rest.split_at(rest.len() - GUARD_WORDS);
    assert!(before.iter().chain(after).all(|word| *word == GUARD), "{what}: a neighbour was written");
    inside
}

#[track_caller]
fn run_guarded_on_twin(kernel: &dyn Kernel, given: &[Words]) -> Vec<Words> {
    let args = kernel.args();
    let mut held: Vec<Words> = buffers(&args, given).iter().map(|words| guarded(words)).collect();
    let mut twin_args = TwinArgs::new(&args);
    for (arg, words) in args.iter().zip(&mut held) {
        let bytes = &mut bytemuck::cast_slice_mut(words)[4 * GUARD_WORDS..][..arg.len_bytes()];
        if arg.access.writes() { twin_args.push_write(bytes) } else { twin_args.push_read(bytes) }
    }
    kernel.twin(&mut twin_args);
    let unguarded = |(arg, words): (&Arg, &Words)| unguarded(&format!("twin of {kernel:?}: {}", arg.name), words).to_vec();
    results(&args, args.iter().zip(&held).map(unguarded).collect())
}

#[track_caller]
fn run_guarded_on_gpu(gpu: &mut Gpu, kernel: &dyn Kernel, given: &[Words]) -> Vec<Words> {
    let args = kernel.args();
    let words = buffers(&args, given);
    let held: Vec<wgpu::Buffer> = words.iter().map(|words| upload(gpu, &guarded(words))).collect();
    let binding = |(words, buffer)| wgpu::BufferBinding {
        buffer,
        offset: 4 * GUARD_WORDS as u64,
        size: std::num::NonZero::new(4 * <[u32]>::len(words) as u64),
    };
    let bindings: Vec<_> = words.iter().map(Vec::as_slice).zip(&held).map(binding).collect();
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    gpu.recorder.record(kernel, &bindings, &mut encoder).unwrap_or_else(|error| panic!("{error}"));
    gpu.queue.submit([encoder.finish()]);
    let read = |((arg, words), buffer): ((&Arg, &Words), &wgpu::Buffer)| {
        let found = download(gpu, buffer, words.len() + 2 * GUARD_WORDS);
        unguarded(&format!("{kernel:?} on the GPU: {}", arg.name), &found).to_vec()
    };
    results(&args, args.iter().zip(&words).zip(&held).map(read).collect())
}

/// The twin's results, after a comparison with the GPU's.
#[track_caller]
fn check(kernel: &dyn Kernel, given: &[Words]) -> Vec<Words> {
    kernel.check().unwrap_or_else(|error| panic!("{error}"));
    let expected = run_guarded_on_twin(kernel, given);
    if let Some(mut gpu) = gpu() {
        let found = run_guarded_on_gpu(&mut gpu, kernel, given);
        drop(gpu);
        let written = kernel.args().into_iter().filter(|arg| matches!(arg.access, Access::Write | Access::ReadWrite));
        for ((arg, found), expected) in written.zip(&found).zip(&expected) {
            let what = format!("{kernel:?}: {}", arg.name);
            match arg.dtype {
                DType::F32 => assert_close(&what, floats(found), floats(expected), DEFAULT),
                _ => assert_eq!(found, expected, "{what}"),
            }
        }
    }
    expected
}

/// Indices most of which are not below `n`: the first ones beyond, those whose product with a row's length wraps around, and the
/// largest.
fn indices(n: u32) -> Words {
    vec![n - 1, n, n.wrapping_add(1), 0, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX, 0x5555_5556]
}

/// States in which the batch, the step and the number of skipped steps are far beyond any table.
const STATES: [[u32; STATE_LEN]; 3] =
    [[u32::MAX, u32::MAX, 0, u32::MAX], [1 << 31, 0, 0, u32::MAX], [u32::MAX, u32::MAX, u32::MAX, 0]];

#[test]
fn gather_reads_index_0() {
    let mut random = Random::new(1);
    for n_inner in [1, 3] {
        let n_x = 4;
        let index: Words = indices(n_x as u32).iter().flat_map(|&at| vec![at; n_inner]).collect();
        let kernel = Gather { n_outer: 1, n_x, n: index.len() / n_inner, n_inner, index: GatherIndex::Each };
        let x = random.floats(n_x * n_inner);
        let y = check(&kernel, &[words(&x), index.clone()]);
        assert_eq!(floats(&y[0])[n_inner..2 * n_inner], x[..n_inner], "index {n_x} is read as 0");
        check(&GatherGrad { forward: kernel }, &[words(&random.floats(index.len())), index]);
    }
}

#[test]
fn rows_beyond_a_table_are_zeros_and_beyond_a_window_stay() {
    let mut random = Random::new(2);
    for first_row in [0, 5, u32::MAX as usize - 4] {
        for dtype in [DType::F32, DType::U8] {
            let rows = indices((first_row + 4) as u32);
            let kernel = GatherRows { dtype, first_row, n_table_rows: 4, n_cols: 4, n: rows.len() };
            let table = if dtype == DType::U8 { vec![0x0102_0304; 4] } else { words(&random.floats(16)) };
            let mut given = vec![table, rows, words(&random.floats(4)), words(&[1.0, 2.0, 3.0, 4.0])];
            if first_row > 0 {
                given.push(words(&[7.0; 40]));
            }
            let y = check(&kernel, &given);
            let expected = if first_row == 0 { [0.0; 4] } else { [7.0; 4] };
            assert_eq!(floats(&y[0])[4..8], expected, "the row after the last one, from row {first_row}");

            let augmentation = ImageAugmentation { pad: 1, flip: Flip::Random, ..ImageAugmentation::default() };
            let (n, image, crop) = (kernel.n, [2, 2, 1], [2, 2]);
            let kernel = AugmentImages { dtype, first_row, n_table_rows: 4, image, crop, n, augmentation };
            given.splice(2..2, [given[1].clone(), order_in_epoch(sequential_order(4, 1, 0), u32::MAX).to_vec()]);
            let y = check(&kernel, &given);
            assert_eq!(floats(&y[0])[4..8], expected, "the image after the last one, from row {first_row}");
        }
        let rows = indices((first_row + 4) as u32);
        let kernel = GatherCategories { first_row, n_table_rows: 4, n_cols: 3, n: rows.len() };
        let mut given = vec![(1..13).collect(), rows];
        if first_row > 0 {
            given.push(vec![99; 30]);
        }
        let y = check(&kernel, &given);
        assert_eq!(y[0][3..6], if first_row == 0 { [0; 3] } else { [99; 3] }, "the row after the last one, from row {first_row}");
    }
}

/// Rows beyond any table, epochs without rows and with the maximum number, and tables of quantiles that belong to no
/// distribution: not ascending, random, or all the largest number, with which a rectangle would reach beyond the image on all
/// sides.
#[test]
fn mixing_stays_within_rows_and_images() {
    let mut random = Random::new(6);
    let noise: Words = (0..N_QUANTILES).map(|_| random.next() as u32).collect();
    let descending = (0..N_QUANTILES as u32).map(|i| u32::MAX - (i << 22).wrapping_sub(i / 1024)).collect();
    for quantiles in [vec![0; N_QUANTILES], vec![u32::MAX; N_QUANTILES], descending, noise] {
        for n_rows in [0, 1, 4, 1 << 31, u32::MAX] {
            for cut in [None, Some([1, 1, 1]), Some([5, 7, 3]), Some([300, 2, 1])] {
                let rows = indices(n_rows.max(1));
                let kernel = MixRows { n: rows.len(), cut, seed: u64::MAX };
                let order = order_in_epoch(sequential_order(n_rows, u32::MAX, u32::MAX), u32::MAX).to_vec();
                let mixed = check(&kernel, &[rows, order, quantiles.clone()]);
                assert!(mixed[0].iter().all(|partner| *partner < n_rows.max(1)), "partners of {n_rows} rows: {:?}", mixed[0]);
                let [height, width, n_channels] = cut.unwrap_or([1; 3]);
                let [shares, lines, columns] = [1, 2, 3].map(|i| floats(&mixed[i]));
                for (row, share) in shares.iter().enumerate() {
                    let lines = &lines[row * height..][..height];
                    let columns = &columns[row * width * n_channels..][..width * n_channels];
                    let is_box = lines.iter().chain(columns).all(|part| [0.0, 1.0].contains(part));
                    assert!(cut.is_none() || is_box, "{kernel:?}: a rectangle of {lines:?} and {columns:?}");
                    let mean = |parts: &[f32]| parts.iter().sum::<f32>() / parts.len() as f32;
                    assert!((0.0..=1.0).contains(share), "{kernel:?}: share {share}");
                    assert!((share - mean(lines) * mean(columns)).abs() < 1e-6, "{kernel:?}: share {share} of what is replaced");
                }
            }
        }
    }
}

#[test]
fn embedding_reads_and_trains_entry_0() {
    let mut random = Random::new(3);
    // Sums in blocks of rows, and along chains of rows.
    for n_entries in [3, 100] {
        let index = indices(n_entries);
        let forward = Embedding { n: index.len(), n_entries: n_entries as usize, dim: 3, n_index_cols: 1, index_col: 0 };
        let weight = random.floats(forward.n_entries * 3);
        let y = check(&forward, &[words(&weight), index.clone()]);
        assert_eq!(floats(&y[0])[3..6], weight[..3], "code {n_entries} is read as 0");
        for padding in [None, Some(0)] {
            check(&EmbeddingGrad { forward, padding }, &[words(&random.floats(index.len() * 3)), index.clone()]);
        }
    }
}

#[test]
fn a_label_that_is_no_class_gives_nan_or_is_incorrect() {
    let mut random = Random::new(4);
    for n_classes in [3_u32, 500] {
        let target = indices(n_classes);
        let n_rows = target.len();
        let logits = words(&random.floats(n_rows * n_classes as usize));
        let row_weights = words(&vec![1.0; n_rows]);
        for class_weights in [ClassWeights::Equal, ClassWeights::Given] {
            for ignored in [None, Some(u32::MAX)] {
                let kernel = CrossEntropy {
                    class_weights,
                    ignored,
                    label_smoothing: 0.1,
                    ..CrossEntropy::new(n_rows, n_classes as usize)
                };
                let mut given = vec![logits.clone(), target.clone(), row_weights.clone()];
                if class_weights == ClassWeights::Given {
                    given.push(words(&vec![0.5; n_classes as usize]));
                }
                let [loss, rows]: [Words; 2] = check(&kernel, &given).try_into().expect("two results");
                assert!(floats(&loss)[0].is_nan(), "{kernel:?}");
                given.insert(0, words(&[1.0]));
                // A finite divisor, so that the rows with valid classes have gradients.
                given.extend([words(&[1.0, 1.0]), rows]);
                let grad = check(&CrossEntropyGrad { forward: kernel }, &given);
                let is_nan = |row: usize| floats(&grad[0])[row * n_classes as usize].is_nan();
                assert_eq!([is_nan(0), is_nan(1), is_nan(3)], [false, true, false], "{kernel:?}: rows of valid classes");
            }
        }
        let y = check(&Correct { n_rows, n_classes: n_classes as usize }, &[logits, target]);
        assert!(floats(&y[0])[4..].iter().all(|correct| *correct == 0.0), "a label that is no class is never predicted");
    }
}

#[test]
fn a_batch_beyond_the_result_is_left_out() {
    for batch in indices(3) {
        let kernel = StoreRows { n: 2, n_cols: 3, n_total: 5 };
        let y = check(&kernel, &[words(&[1.0; 6]), vec![batch, 0, 0, 0], words(&[0.0; 15])]);
        let n_stored = floats(&y[0]).iter().filter(|y| **y == 1.0).count();
        let expected = match batch {
            0 | 1 => 6,
            2 => 3,
            _ => 0,
        };
        assert_eq!(n_stored, expected, "batch {batch}");
    }
}

#[test]
fn positions_beyond_an_order_are_padding() {
    let keys = [9, 8, 7, 6, 5, 4, 3, 2];
    for state in STATES {
        for (stride, offset) in [(1, 0), (u32::MAX, u32::MAX), (70, 1 << 31)] {
            for order in [sequential_order(7, stride, offset), shuffled_order(7, 3, keys, stride, offset)] {
                let y = check(&BatchRows { first: 5, n: 70 }, &[order.to_vec(), state.to_vec()]);
                assert!(y[0].iter().all(|row| *row < 7), "rows of a table of 7: {:?}", y[0]);
            }
        }
        check(&Advance, &[state.to_vec()]);
    }
}

#[test]
fn optimizers_use_the_last_learning_rate() {
    let n = 70;
    let mut random = Random::new(5);
    let [grads, params, moments] = std::array::from_fn(|_| words(&random.floats(n)));
    // Squares of gradients are not negative.
    let squares = words(&[0.5; 70]);
    let lr = words(&[0.1, 0.2]);
    let groups = words(&[1.0, 0.01, -1.0, 0.0]);
    let runs = Runs { n, starts: vec![3, 20, 60], len: 10 };
    for state in STATES {
        let state = state.to_vec();
        let descent = Update::new("descent", Descent { decay: 0.01 }, n).table_len(2);
        let mut given = vec![grads.clone(), lr.clone(), state.clone(), moments.clone(), params.clone()];
        let stepped = check(&descent, &given);
        if state[2] == 0 {
            let mut last_batch = given.clone();
            last_batch[2][0] = 1;
            assert_eq!(stepped, run_twin(&descent, &last_batch), "batch {} uses the last rate", state[0]);
        }
        given.insert(3, groups.clone());
        check(&descent.grouped(), &given);
        let everything = Update::new("everything", Everything, n).table_len(2);
        let [first, second] = [0.5, 2.0].map(|number| words(&[number]));
        check(&everything, &[grads.clone(), squares.clone(), first, second, lr.clone(), state.clone(), params.clone()]);
        let scale = ScaleRuns { runs: runs.clone(), to: 2.0, eps: 1e-6 };
        check(&scale, &[words(&[1.0, 2.0, 3.0]), state.clone(), params.clone()]);
        check(&SkipIncomplete { every: 3, n_batches: 8 }, &[state]);
    }
}
