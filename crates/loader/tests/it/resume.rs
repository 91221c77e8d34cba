use std::sync::Arc;
use std::thread;

use brisk_loader::{
    Ahead, Batching, Error, Layout, Loader, Order, RowBuffers, RowSelection, RowSource, Rows, Shard, State, WeightedDraws, split,
};

use crate::batches::{Owned, taken};
use crate::source::numbered;

fn orders() -> [Batching; 4] {
    let draws = WeightedDraws::new(&(0..1003).map(f64::from).collect::<Vec<_>>(), 1003).unwrap();
    let batching = || Batching::of(32);
    [batching(), batching().shuffled(4), batching().shuffled_blocks(4, 50, 3), batching().weighted(4, Arc::new(draws))]
}

/// Saved as text after `k` batches and resumed: bit-identical to the end, with workers and without.
#[test]
fn a_run_goes_on_bit_for_bit() {
    let source = numbered(1003, 3);
    for batching in orders() {
        let mut loader = Loader::new(&source, batching.clone()).unwrap();
        let whole = taken(loader.epoch(9));
        for k in [0, 1, whole.len() / 2, whole.len() - 1, whole.len()] {
            let mut batches = loader.epoch(9);
            for _ in 0..k {
                batches.next_batch().unwrap();
            }
            let line = batches.state().to_string();
            drop(batches);
            let state: State = line.parse().unwrap();
            assert_eq!(taken(loader.resume(&state).unwrap()), whole[k..], "{line}");
            thread::scope(|scope| {
                for workers in [1, 3] {
                    let mut ahead = loader.prefetch(scope, Ahead { depth: 5, workers });
                    let mut batches = ahead.resume(&state).unwrap();
                    for (i, expected) in whole[k..].iter().enumerate() {
                        // Batches that are ready but not taken are not consumed.
                        assert_eq!(batches.state().position, (((k + i) * 32) as u64).min(1003));
                        assert_eq!(&Owned::from(batches.next_batch().unwrap().unwrap()), expected, "{line}, {workers} workers");
                    }
                    assert!(batches.next_batch().unwrap().is_none());
                }
            });
        }
    }
}

#[test]
fn a_run_goes_on_with_other_batches_and_ranks() {
    let source = numbered(1000, 1);
    let ids = |batches: &[Owned]| batches.iter().flat_map(|batch| batch.ids[..batch.rows].to_vec()).collect::<Vec<_>>();
    for batching in orders().into_iter().take(3) {
        let mut loader = Loader::new(&source, batching.clone()).unwrap();
        let whole = ids(&taken(loader.epoch(2)));
        let mut batches = loader.epoch(2);
        for _ in 0..5 {
            batches.next_batch().unwrap();
        }
        let state = batches.state();
        drop(batches);
        for size in [1, 7, 100, 2000] {
            let mut other = Loader::new(&source, Batching { size, ..batching.clone() }).unwrap();
            assert_eq!(ids(&taken(other.resume(&state).unwrap())), whole[160..], "batches of {size}");
        }
        let ranks = [0, 1, 2, 3].map(|rank| {
            let batching = Batching { size: 8, ..batching.clone() }.shard(Shard::blocks(rank, 4));
            taken(Loader::new(&source, batching).unwrap().resume(&state).unwrap())
        });
        let dealt: Vec<u32> =
            (0..ranks[0].len()).flat_map(|index| ranks.iter().flat_map(move |rank| ids(&rank[index..=index]))).collect();
        assert_eq!(dealt, whole[160..], "four ranks");
    }
}

/// The cost of resuming does not depend on the position: only the remaining rows are gathered from the source.
#[test]
fn nothing_is_replayed() {
    let source = crate::prefetch::Faulty::new(numbered(100_000, 1), 0);
    let batching = Batching::of(100);
    let mut loader = Loader::new(&source, batching).unwrap();
    let state = State { position: 99_900, ..loader.epoch(0).state() };
    // Row 0, which fails, is the first in order; it is not gathered.
    assert_eq!(taken(loader.resume(&state).unwrap()).len(), 1);
    assert_eq!(source.n_gathered(), 100);
}

/// Rows with a fingerprint.
struct Marked(Rows, Option<u64>);

impl RowSource for Marked {
    type Feature = f32;
    type Error = Error;
    fn layout(&self) -> Layout {
        self.0.layout()
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Error> {
        self.0.gather(rows, into)
    }
    fn fingerprint(&self) -> Option<u64> {
        self.1
    }
}

#[track_caller]
fn check_refused(saved: (usize, Option<u64>, Batching), found: (usize, Option<u64>, Batching), expected: &str) {
    let loader = |(n, fingerprint, batching)| Loader::new(Marked(numbered(n, 1), fingerprint), batching).unwrap();
    let state = loader(saved).epoch(1).state();
    let mut found = loader(found);
    let result = found.resume(&state).map(drop);
    match expected {
        "" => result.unwrap(),
        expected => assert!(result.unwrap_err().to_string().starts_with(expected), "expected: {expected}"),
    }
    thread::scope(|scope| {
        let mut ahead = found.prefetch(scope, Ahead::default());
        assert_eq!(ahead.resume(&state).is_ok(), expected.is_empty(), "ahead as in place");
    });
}

#[test]
fn a_state_of_other_rows_is_refused() {
    let batching = || Batching::of(10).shuffled(3);
    check_refused((100, Some(1), batching()), (100, Some(1), batching()), "");
    check_refused((100, None, batching()), (100, Some(1), batching()), "");
    check_refused((100, Some(1), batching()), (100, None, batching()), "");
    let expected = "state of another source: its fingerprint of the rows was 0000000000000001, here it is 0000000000000002";
    check_refused((100, Some(1), batching()), (100, Some(2), batching()), expected);
    let expected = "state of another source: its number of rows was 100, here it is 101";
    check_refused((100, None, batching()), (101, None, batching()), expected);
    let expected = "state of another source: its order was shuffled:3, here it is shuffled:4";
    check_refused((100, None, batching()), (100, None, Batching::of(10).shuffled(4)), expected);
    let expected = "state of another source: its order was shuffled:3, here it is blocks:3:10:2";
    check_refused((100, None, batching()), (100, None, Batching::of(10).shuffled_blocks(3, 10, 2)), expected);
    let weighted = |weight| {
        let draws = WeightedDraws::new(&[[1.0; 99].as_slice(), &[weight]].concat(), 100).unwrap();
        Batching::of(10).weighted(3, Arc::new(draws))
    };
    check_refused((100, None, weighted(1.5)), (100, None, weighted(1.5)), "");
    check_refused(
        (100, None, weighted(1.5)),
        (100, None, weighted(1.6)),
        "state of another source: its order was weighted:3:100:",
    );
}

#[test]
fn a_part_has_a_fingerprint_of_its_own() {
    let source = Marked(numbered(100, 1), Some(5));
    let [train, valid] = split(&source, 1, [0.5, 0.5]).unwrap();
    let [other, _] = split(&source, 2, [0.5, 0.5]).unwrap();
    let [again, _] = split(&source, 1, [0.5, 0.5]).unwrap();
    assert_eq!(train.fingerprint(), again.fingerprint());
    assert_ne!(train.fingerprint(), valid.fingerprint());
    assert_ne!(train.fingerprint(), other.fingerprint());
    assert!(train.fingerprint().is_some());
    assert_eq!(split(&source.0, 1, [0.5, 0.5]).unwrap()[0].fingerprint(), None);
}

#[test]
fn a_state_is_one_line() {
    let state = State { epoch: 3, position: 7, n_rows: 9, fingerprint: Some(0xAB), order: Order::Sequential.to_string() };
    let line = "brisk-loader 1 epoch=3 position=7 n_rows=9 fingerprint=00000000000000ab order=sequential";
    assert_eq!(state.to_string(), line);
    assert_eq!(format!("{line}\n").parse::<State>().unwrap(), state);
    for text in
        ["", "brisk-loader 2 epoch=3", &line[..40], &line.replace("position=7", "position=x"), &line.replace("epoch", "age")]
    {
        let error = text.parse::<State>().unwrap_err();
        assert!(error.to_string().starts_with(&format!("`{text}` is not the state of a loader")), "found: {error}");
    }
    let beyond = State { position: 1_000_000, n_rows: 10, fingerprint: None, ..state };
    let error = Loader::new(numbered(10, 1), Batching::of(2)).unwrap().resume(&beyond).unwrap_err();
    assert!(matches!(error, Error::Position { position: 1_000_000, n_rows: 10 }), "found: {error}");
}
