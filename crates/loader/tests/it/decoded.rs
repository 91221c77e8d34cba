use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use brisk_loader::{Ahead, Batching, Decoded, Error, Loader, RowBuffers, RowSelection, RowSource, row_source_conformance};

use crate::batches::all;
use crate::source::numbered;

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("not an image")]
struct NotAnImage;

fn decode(row: u32, features: &mut [f32]) -> Result<f32, NotAnImage> {
    for (col, feature) in features.iter_mut().enumerate() {
        *feature = (row as usize * 3 + col) as f32;
    }
    Ok(row as f32)
}

#[test]
fn decoded_rows_are_rows() {
    for n in [0, 1, 700] {
        row_source_conformance(&Decoded::new(n, 3, decode));
    }
    let decoded = Decoded::new(1003, 3, decode);
    for batching in [Batching::of(100), Batching::of(100).shuffled(3), Batching::of(7).shuffled(3)] {
        let expected = all(numbered(1003, 3), &batching, 1);
        assert_eq!(all(&decoded, &batching, 1), expected, "as if they lay in memory");
        assert_eq!(crate::prefetch::prefetched(&decoded, &batching, 1, 0, Ahead { depth: 2, workers: 3 }), expected);
    }
}

/// Two rows are decoded at once, even of a small batch: each waits until the other one has started.
#[test]
fn a_small_batch_is_decoded_by_all_threads() {
    for batching in [Batching::of(4), Batching::of(4).shuffled(1)] {
        let n_inside = AtomicUsize::new(0);
        let decoded = Decoded::new(4, 1, |_, _: &mut [u8]| {
            n_inside.fetch_add(1, Ordering::SeqCst);
            for _ in 0..10_000 {
                if n_inside.load(Ordering::SeqCst) >= 2 {
                    return Ok(1.0);
                }
                thread::sleep(Duration::from_millis(1));
            }
            Err(NotAnImage)
        });
        let mut loader = Loader::new(&decoded, batching).unwrap();
        let labels = loader.run(2, |loader| loader.epoch(0).next_batch().unwrap().unwrap().labels.to_vec()).unwrap();
        assert_eq!(labels, [1.0; 4]);
    }
}

#[track_caller]
fn check_fault(decode: impl Fn(u32, &mut [f32]) -> Result<f32, NotAnImage> + Sync, check: impl Fn(&Error)) {
    let decoded = Decoded::new(1000, 3, decode);
    let mut loader = Loader::new(&decoded, Batching::of(100)).unwrap();
    let mut batches = loader.epoch_from(0, 500).unwrap();
    check(&batches.next_batch().unwrap_err());
    drop(batches);
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 3, workers: 2 });
        let mut batches = ahead.epoch(0);
        for _ in 0..5 {
            batches.next_batch().unwrap().unwrap();
        }
        check(&batches.next_batch().unwrap_err());
        check(&batches.next_batch().unwrap_err());
    });
}

#[test]
fn an_error_names_batch_and_row() {
    check_fault(
        |row, _| if row == 505 { Err(NotAnImage) } else { Ok(0.0) },
        |error| {
            let Error::Source { batch: 5, cause } = error else { panic!("found: {error}") };
            let Some(Error::Decode { row: 505, cause }) = cause.downcast_ref() else { panic!("found: {cause}") };
            assert_eq!(cause.downcast_ref::<NotAnImage>(), Some(&NotAnImage));
            assert_eq!(error.to_string(), format!("batch 5 could not be gathered: row 505 could not be decoded: {NotAnImage}"));
        },
    );
}

#[test]
fn a_panic_names_batch_and_row() {
    let decode = |row, _: &mut [f32]| {
        assert!(row != 505, "bad magic");
        Ok(0.0)
    };
    check_fault(decode, |error| {
        assert!(matches!(error, Error::Source { batch: 5, .. }), "found: {error}");
        assert_eq!(error.to_string(), "batch 5 could not be gathered: panicked while decoding row 505: bad magic");
    });
    let beyond = Decoded::new(10, 3, decode);
    let beyond = beyond.gather(RowSelection::Numbers(&[10]), RowBuffers::new(&mut [0.0; 3], &mut [0.0])).unwrap_err();
    assert!(matches!(beyond, Error::RowOutOfRange { row: 10, n_rows: 10 }), "found: {beyond}");
}
