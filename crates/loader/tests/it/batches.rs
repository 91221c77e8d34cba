use brisk_loader::{
    Ahead, Batch, Batching, Epoch, Error, LastBatch, Loader, Make, Order, Remainder, RowSource, Rows, Shard, split,
};

use crate::source::{described, labelled, numbered};

/// A batch that owns its memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    pub(crate) index: usize,
    pub(crate) features: Vec<f32>,
    pub(crate) labels: Vec<f32>,
    pub(crate) weights: Vec<f32>,
    pub(crate) categories: Vec<u32>,
    pub(crate) ids: Vec<u32>,
    pub(crate) rows: usize,
}

impl From<Batch<'_>> for Owned {
    fn from(batch: Batch<'_>) -> Self {
        let Batch { index, features, labels, weights, categories, ids, rows, .. } = batch;
        let (features, labels, weights) = (features.to_vec(), labels.to_vec(), weights.to_vec());
        Self { index, features, labels, weights, categories: categories.to_vec(), ids: ids.to_vec(), rows }
    }
}

pub(crate) fn all<S: RowSource<Feature = f32>>(source: S, batching: &Batching, epoch: u32) -> Vec<Owned> {
    from(source, batching, epoch, 0)
}

pub(crate) fn from<S: RowSource<Feature = f32>>(source: S, batching: &Batching, epoch: u32, position: usize) -> Vec<Owned> {
    let mut loader = Loader::new(source, batching.clone()).unwrap();
    taken(loader.epoch_from(epoch, position).unwrap())
}

/// All batches of an epoch.
pub(crate) fn taken<S: RowSource, M: Make<S, Out = f32>>(mut batches: Epoch<'_, S, M>) -> Vec<Owned> {
    let mut all = Vec::new();
    let n = batches.len();
    while let Some(batch) = batches.next_batch().unwrap() {
        all.push(batch.into());
        assert_eq!(batches.len(), n - all.len(), "len() counts what is left");
    }
    assert_eq!(all.len(), n, "len() is exact");
    all
}

/// Checks that each real row has the values of its id, in the expected order, and that all other rows have weight 0.
#[track_caller]
fn check(n_rows: usize, batching: &Batching, expected_rows: &[usize], expected_slots: &[usize]) {
    let source = numbered(n_rows, 3);
    for epoch in [0, 5] {
        let batches = all(&source, batching, epoch);
        assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), expected_rows, "real rows");
        assert_eq!(batches.iter().map(|batch| batch.labels.len()).collect::<Vec<_>>(), expected_slots, "slots");
        let shuffle = batching.order.shuffle(n_rows as u32, epoch);
        let mut position = 0;
        for (index, batch) in batches.iter().enumerate() {
            assert_eq!(batch.index, index, "batches count from 0");
            for slot in 0..batch.labels.len() {
                let features = &batch.features[slot * 3..][..3];
                if slot < batch.rows {
                    let row = shuffle.as_ref().map_or(position, |shuffle| shuffle.row(position));
                    position += 1;
                    assert_eq!((batch.ids[slot], batch.labels[slot], batch.weights[slot]), (row, row as f32, 1.0), "row {row}");
                    assert_eq!(features, [0, 1, 2].map(|col| (row * 3 + col) as f32), "row {row}");
                } else {
                    assert_eq!((batch.ids[slot], batch.labels[slot], batch.weights[slot]), (u32::MAX, 0.0, 0.0), "padding");
                    assert_eq!(features, [0.0; 3], "padding");
                }
            }
        }
    }
}

#[test]
fn the_last_batch_is_padded_dropped_or_short() {
    for batching in [Batching::of(4), Batching::of(4).shuffled(42)] {
        check(10, &batching, &[4, 4, 2], &[4, 4, 4]);
        check(10, &batching.clone().last(LastBatch::Drop), &[4, 4], &[4, 4]);
        check(10, &batching.clone().last(LastBatch::Short), &[4, 4, 2], &[4, 4, 2]);
        check(8, &batching, &[4, 4], &[4, 4]);
        check(3, &batching, &[3], &[4]);
        check(3, &batching.clone().last(LastBatch::Drop), &[], &[]);
        check(0, &batching, &[], &[]);
        check(1, &batching.clone().last(LastBatch::Short), &[1], &[1]);
    }
}

#[test]
fn large_batches_are_gathered_in_blocks() {
    for size in [255, 256, 257, 511, 512, 513, 2000] {
        let rows = |n: usize| (0..n.div_ceil(size)).map(|i| size.min(n - i * size)).collect::<Vec<_>>();
        for n in [1999, 2000, 4001] {
            for batching in [Batching::of(size), Batching::of(size).shuffled(1)] {
                check(n, &batching, &rows(n), &vec![size; n.div_ceil(size)]);
            }
        }
    }
}

#[test]
fn long_runs_are_copied_by_the_pool() {
    check(100_001, &Batching::of(90_000), &[90_000, 10_001], &[90_000; 2]);
}

/// Categories and weights stay with their rows, for every way of gathering.
#[test]
fn categories_and_weights_come_with_their_rows() {
    let shards = [Shard::WHOLE, Shard::blocks(1, 3), Shard::distributed_sampler(2, 3, Remainder::Repeat)];
    for n_cols in [0, 3] {
        let source = described(1000, n_cols);
        let [part, _] = split(&source, 4, [0.9, 0.1]).unwrap();
        for size in [7, 300, 900] {
            for shard in shards {
                for batching in [Batching::of(size).shard(shard), Batching::of(size).shuffled(3).shard(shard)] {
                    let batches = all(&source, &batching, 0);
                    assert_eq!(
                        crate::prefetch::prefetched(&source, &batching, 0, 0, Ahead::default()),
                        batches,
                        "gathered ahead"
                    );
                    for batch in batches.into_iter().chain(all(&source, &batching.clone().last(LastBatch::Short), 1)) {
                        check_described(&batch, |id| id);
                    }
                    for batch in all(&part, &batching, 0) {
                        check_described(&batch, |id| part.row(id));
                    }
                }
            }
        }
    }
}

fn check_described(batch: &Owned, row_of: impl Fn(u32) -> u32) {
    for (slot, &id) in batch.ids.iter().enumerate() {
        let categories = &batch.categories[slot * 2..][..2];
        if id == u32::MAX {
            assert_eq!((categories, batch.weights[slot]), (&[0, 0][..], 0.0), "padding");
            continue;
        }
        let row = row_of(id);
        let weight = if slot < batch.rows { row as f32 + 0.5 } else { 0.0 };
        assert_eq!((categories, batch.weights[slot]), (&[2 * row + 1000, 2 * row + 1001][..], weight), "row {row}");
    }
}

#[test]
fn bytes_stay_bytes() {
    let source = Rows::new((0..=255).collect::<Vec<u8>>(), vec![1.0; 64], 4).unwrap();
    let mut loader = Loader::new(&source, Batching::of(48)).unwrap();
    let mut batches = loader.epoch(0);
    assert_eq!(batches.next_batch().unwrap().unwrap().features, (0..192).collect::<Vec<u8>>());
    let last = batches.next_batch().unwrap().unwrap();
    assert_eq!(last.features, (192..=255).chain([0; 128]).collect::<Vec<u8>>(), "padding is the type's default");
}

#[test]
fn weights_recover_after_a_padded_batch() {
    let source = numbered(10, 1);
    let mut loader = Loader::new(&source, Batching::of(4)).unwrap();
    for epoch in 0..2 {
        let mut batches = loader.epoch(epoch);
        let mut total = 0.0;
        while let Some(batch) = batches.next_batch().unwrap() {
            total += batch.weights.iter().sum::<f32>();
        }
        assert_eq!(total, 10.0, "weights of epoch {epoch}");
    }
}

#[test]
fn a_run_goes_on_where_it_was() {
    let source = numbered(1003, 2);
    for batching in [Batching::of(64), Batching::of(64).shuffled(7), Batching::of(64).shuffled(7).last(LastBatch::Drop)] {
        let whole = all(&source, &batching, 3);
        let mut loader = Loader::new(&source, batching.clone()).unwrap();
        let mut batches = loader.epoch(3);
        for taken in 0..=whole.len() {
            let position = batches.position();
            assert_eq!(from(&source, &batching, 3, position), whole[taken..], "resumed after {taken} batches");
            batches.next_batch().unwrap();
        }
    }
}

#[test]
fn a_run_goes_on_with_another_batch_size() {
    let source = numbered(1000, 2);
    let batching = Batching::of(64).shuffled(7);
    let ids = |batches: &[Owned]| batches.iter().flat_map(|batch| batch.ids[..batch.rows].to_vec()).collect::<Vec<_>>();
    let whole = ids(&all(&source, &batching, 0));
    assert_eq!(ids(&from(&source, &Batching { size: 100, ..batching.clone() }, 0, 5 * 64)), whole[5 * 64..]);
}

#[test]
fn any_thread_count_gives_the_same_batches() {
    let source = numbered(5000, 4);
    let batching = Batching::of(1500).shuffled(3);
    let expected = all(&source, &batching, 1);
    for n_threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        assert_eq!(pool.install(|| all(&source, &batching, 1)), expected, "on {n_threads} threads");
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_numbers() {
    #[track_caller]
    fn check(result: Result<Loader<&Rows>, Error>, expected: &str) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "found: {error}");
    }
    let rows = numbered(10, 3);
    check(Loader::new(&rows, Batching::of(0)), "a batch of 0 rows of 3 columns");
    check(Loader::new(&rows, Batching::of(usize::MAX / 2)), "cannot be made");
    // More than any machine has, and fewer bytes than `isize::MAX`.
    check(Loader::new(&rows, Batching::of(1 << 47)), "a batch of 140737488355328 rows of 3 columns cannot be made");
    check(Loader::new(&rows, Batching::of(1).shard(brisk_loader::Shard::blocks(4, 4))), "rank 4 of a world of 4");
    check(Loader::new(&rows, Batching::of(1).shard(brisk_loader::Shard::blocks(0, 0))), "rank 0 of a world of 0");
    check(Loader::new(&numbered(10, 0), Batching::of(1)), "10 rows of 0 columns and 0 categories");
    let mut loader = Loader::new(&rows, Batching { order: Order::Sequential, ..Batching::of(4) }).unwrap();
    let error = loader.epoch_from(0, 11).unwrap_err();
    assert!(error.to_string().starts_with("cannot resume at position 11 of 10 rows"), "found: {error}");
}

#[test]
fn the_source_s_own_error_comes_with_the_batch() {
    let source = crate::prefetch::Faulty::new(numbered(100, 2), 50);
    let mut loader = Loader::new(&source, Batching::of(8)).unwrap();
    let mut batches = loader.epoch(0);
    let error = loop {
        match batches.next_batch() {
            Ok(batch) => assert!(batch.is_some(), "the bad row was passed over"),
            Err(error) => break error,
        }
    };
    let Error::Source { batch: 6, cause } = &error else { panic!("found: {error}") };
    assert_eq!(cause.downcast_ref::<crate::prefetch::Fault>(), Some(&crate::prefetch::Fault { row: 50 }));
}

/// Padding has labels of 0, and repeated rows have their labels, however batches are made.
#[test]
fn batches_have_all_labels_of_their_rows() {
    let rows = labelled(1000, 3);
    let uneven = Shard::distributed_sampler(2, 3, Remainder::Repeat);
    for batching in [Batching::of(300).shuffled(7), Batching::of(300), Batching::of(64).shuffled(3).shard(uneven)] {
        let expected = all(&rows, &batching, 2);
        for batch in &expected {
            let labels = batch.ids.iter().flat_map(|&id| match id {
                u32::MAX => [0.0; 3],
                id => [0, 1, 2].map(|label| (10 * id + label) as f32),
            });
            assert_eq!(batch.labels, labels.collect::<Vec<_>>(), "batch {}", batch.index);
        }
        let loader = Loader::new(&rows, batching.clone()).unwrap();
        let ahead = std::thread::scope(|scope| {
            let mut prefetch = loader.prefetch(scope, Ahead { depth: 2, workers: 2 });
            let mut batches = prefetch.epoch(2);
            let mut found = Vec::new();
            while let Some(batch) = batches.next_batch().unwrap() {
                found.push(Owned::from(batch));
            }
            found
        });
        assert_eq!(ahead, expected, "batches gathered ahead");
        let mut mapped = Loader::new(&rows, batching)
            .unwrap()
            .map_rows(2, |row, _, features: &mut [f32]| {
                features.copy_from_slice(&[row.label, row.labels[2]]);
                Ok::<(), Error>(())
            })
            .unwrap();
        for (batch, expected) in taken(mapped.epoch(2)).iter().zip(&expected) {
            let labels = expected.labels.chunks_exact(3).flat_map(|labels| [labels[0], labels[2]]);
            assert_eq!((&batch.features, &batch.labels), (&labels.collect::<Vec<_>>(), &expected.labels), "mapped batches");
        }
    }
}
