use std::convert::Infallible;
use std::thread;

use brisk_loader::{Ahead, Batch, Batching, Error, Key, LastBatch, Loader, Make, Remainder, Row, RowSource, Rows, Shard, Subset};

use crate::batches::{Owned, taken};
use crate::source::described;

/// Bytes that depend on their row and column.
fn bytes(n: usize, n_cols: usize) -> Rows<Vec<u8>> {
    let features = (0..n * n_cols).map(|i| (i % 251) as u8).collect();
    Rows::new(features, (0..n).map(|row| row as f32).collect(), n_cols).unwrap()
}

/// A crop of three of eight columns and a flip, both drawn by key and id, converted to floats.
fn augmented(row: Row<'_, u8>, key: Key, out: &mut [f32]) -> Result<(), Infallible> {
    let left = (key.random(row.id, 0) % 6) as usize;
    let is_flipped = key.random(row.id, 1) & 1 == 1;
    for (col, out) in out.iter_mut().enumerate() {
        *out = f32::from(row.features[left + if is_flipped { 2 - col } else { col }]) / 255.0;
    }
    Ok(())
}

fn ahead<S: RowSource, M: Make<S, Out = f32> + Send>(loader: &Loader<S, M>, epoch: u32, ahead: Ahead) -> Vec<Owned>
where
    Loader<S, M>: Sync,
{
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, ahead);
        let mut batches = ahead.epoch(epoch);
        let mut all = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            all.push(batch.into());
        }
        all
    })
}

#[test]
fn rows_are_augmented_alike_by_any_number_of_threads() {
    let source = bytes(1003, 8);
    let shards = [Shard::WHOLE, Shard::distributed_sampler(1, 3, Remainder::Repeat)];
    for (shard, last) in shards.into_iter().flat_map(|shard| [LastBatch::Pad, LastBatch::Short].map(|last| (shard, last))) {
        let batching = Batching::of(200).shuffled(7).shard(shard).last(last);
        let mut loader = Loader::new(&source, batching).unwrap().map_rows(3, augmented).unwrap();
        for epoch in 0..2 {
            let key = Key { seed: 7, epoch };
            let expected = taken(loader.epoch(epoch));
            for batch in &expected {
                assert_eq!(batch.features.len(), batch.ids.len() * 3);
                for (slot, &id) in batch.ids.iter().enumerate() {
                    let mut row = [0.0; 3];
                    if id != u32::MAX {
                        let features = &source.features()[id as usize * 8..][..8];
                        augmented_by_hand(features, key, id, &mut row);
                    }
                    assert_eq!(batch.features[slot * 3..][..3], row, "row {id}");
                    assert_eq!(batch.labels[slot], if id == u32::MAX { 0.0 } else { id as f32 }, "label of row {id}");
                    assert_eq!(batch.weights[slot], if slot < batch.rows { 1.0 } else { 0.0 }, "weight of row {id}");
                }
            }
            for n_threads in [1, 3] {
                assert_eq!(loader.run(n_threads, |loader| taken(loader.epoch(epoch))).unwrap(), expected, "{n_threads} threads");
            }
            for setting in [Ahead { depth: 1, workers: 1 }, Ahead { depth: 4, workers: 3 }] {
                assert_eq!(ahead(&loader, epoch, setting), expected, "{setting:?}");
            }
        }
    }
}

/// The same as `augmented`, computed only from the keys.
fn augmented_by_hand(features: &[u8], key: Key, id: u32, out: &mut [f32; 3]) {
    let left = (key.random(id, 0) % 6) as usize;
    let mut crop = [features[left], features[left + 1], features[left + 2]];
    if key.random(id, 1) % 2 == 1 {
        crop.reverse();
    }
    *out = crop.map(|byte| f32::from(byte) / 255.0);
}

/// Computed by an implementation of the specification in another language.
#[test]
fn a_key_is_pinned() {
    let key = Key { seed: 42, epoch: 3 };
    let expected: [u64; 3] = [0x88D9_DA05_D22A_E3B6, 0x829F_0826_5238_7740, 0xA38E_F3DD_E303_7B53];
    assert_eq!([key.random(0, 0), key.random(7, 1), key.random(u32::MAX, u32::MAX)], expected);
}

#[test]
fn a_whole_batch_is_mapped_with_all_that_comes_with_it() {
    let source = described(100, 4);
    let batching = Batching::of(32).shuffled(1);
    let plain = crate::batches::all(&source, &batching, 5);
    let scale = 0.5;
    // A sum over the batch, which cannot be computed from a single row.
    let total = |batch: &Batch<'_>| batch.features.iter().sum::<f32>() * scale;
    let map = |batch: &Batch<'_>, key: Key, out: &mut [f64]| {
        assert_eq!(key, Key { seed: 1, epoch: 5 });
        out.fill(f64::from(total(batch)));
        Ok::<(), Infallible>(())
    };
    let mut loader = Loader::new(&source, batching).unwrap().map(1, map).unwrap();
    let mut batches = loader.epoch(5);
    for plain in &plain {
        let batch = batches.next_batch().unwrap().unwrap();
        assert_eq!(batch.features, vec![f64::from(plain.features.iter().sum::<f32>() * scale); 32]);
        assert_eq!((batch.labels, batch.weights), (&plain.labels[..], &plain.weights[..]));
        assert_eq!((batch.categories, batch.ids), (&plain.categories[..], &plain.ids[..]));
        assert_eq!((batch.index, batch.rows), (plain.index, plain.rows));
    }
    assert!(batches.next_batch().unwrap().is_none());
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("no image")]
struct NoImage;

/// Checks the error of a transform that fails or panics at row 505, without workers and with.
#[track_caller]
fn check_fault(transform: impl Fn(Row<'_, u8>, Key, &mut [f32]) -> Result<(), NoImage> + Send + Sync, check: impl Fn(&Error)) {
    let source = bytes(1000, 4);
    let mut loader = Loader::new(&source, Batching::of(100)).unwrap().map_rows(4, transform).unwrap();
    let mut batches = loader.epoch(0);
    for _ in 0..5 {
        batches.next_batch().unwrap().unwrap();
    }
    check(&batches.next_batch().unwrap_err());
    check(&batches.next_batch().unwrap_err());
    drop(batches);
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 3, workers: 2 });
        for _ in 0..2 {
            let mut batches = ahead.epoch(0);
            for _ in 0..5 {
                batches.next_batch().unwrap().unwrap();
            }
            check(&batches.next_batch().unwrap_err());
            check(&batches.next_batch().unwrap_err());
        }
    });
}

#[test]
fn an_error_names_batch_and_row() {
    let transform = |row: Row<'_, u8>, _: Key, _: &mut [f32]| if row.id == 505 { Err(NoImage) } else { Ok(()) };
    check_fault(transform, |error| {
        assert_eq!(error.to_string(), format!("batch 5 could not be transformed, at row 505: {NoImage}"));
        let Error::Transform { cause, .. } = error else { panic!("found: {error}") };
        assert_eq!(cause.downcast_ref::<NoImage>(), Some(&NoImage));
    });
}

#[test]
fn a_panic_names_batch_and_row() {
    let transform = |row: Row<'_, u8>, _: Key, _: &mut [f32]| {
        assert!(row.id != 505, "a bad image");
        Ok(())
    };
    check_fault(transform, |error| {
        assert_eq!(error.to_string(), "panicked while making batch 5, at row 505: a bad image");
    });
}

/// Users look up the row in the file, so the error does not give the row of the split.
#[test]
fn the_row_of_an_error_is_that_of_the_source() {
    let source = bytes(1000, 4);
    let reversed = Subset::of_rows(&source, (0..1000).rev().collect::<Vec<_>>()).unwrap();
    let check = |transform: fn(u32) -> Result<(), NoImage>, expected: &str| {
        let transform = |row: Row<'_, u8>, _: Key, _: &mut [f32]| transform(row.id);
        let mut loader = Loader::new(&reversed, Batching::of(1000)).unwrap().map_rows(4, transform).unwrap();
        let error = loader.epoch(0).next_batch().map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(|row| if row == 5 { Err(NoImage) } else { Ok(()) }, "at row 994");
    check(|row| if row == 5 { panic!("a bad image") } else { Ok(()) }, "at row 994: a bad image");
}

#[test]
fn a_map_of_batches_fails_with_the_batch() {
    let source = bytes(100, 1);
    let map = |batch: &Batch<'_, u8>, _: Key, _: &mut [f32]| if batch.index == 2 { Err(NoImage) } else { Ok(()) };
    let mut loader = Loader::new(&source, Batching::of(10)).unwrap().map(1, map).unwrap();
    let mut batches = loader.epoch(0);
    batches.next_batch().unwrap();
    batches.next_batch().unwrap();
    assert_eq!(batches.next_batch().unwrap_err().to_string(), format!("batch 2 could not be transformed: {NoImage}"));
}

#[test]
fn batches_that_no_memory_holds_are_refused() {
    let source = bytes(10, 1);
    let map = |_: &Batch<'_, u8>, _: Key, _: &mut [f32]| Ok::<(), Infallible>(());
    let error = Loader::new(&source, Batching::of(1000)).unwrap().map(usize::MAX / 1000, map).unwrap_err();
    assert!(matches!(error, Error::BatchSize { size: 1000, .. }), "found: {error}");
}
