//! Replicas that stream rows: each reads only its part, and the run is the same.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use brisk_loader::{Hint, Lanes, Layout, Order, RowBuffers, RowSelection, RowSource, Rows, Shard};
use brisk_nn::{Activation, Dropout, Linear, Sequential};
use brisk_tensor::Precision;
use brisk_train::{
    Binary, Checkpoint, DataParallel, DataParallelConfig, Error, Feed, FeedChoice, FeedConfig, FeedReason, FitReport, Model,
    RowDigest, Scorer, Standardisation, Trainable, Trainer, TrainerConfig, run_threads,
};

use crate::gpu::cpu;
use crate::replicas::{CONFIG, check_alike, check_same_bits};
use crate::run::{N_COLS, Ready, Setting, Weighted, history, into_folder, quiet, rows};

/// A source that counts how often each row is read, by all replicas together.
struct Counted<S> {
    rows: S,
    fingerprint: Option<u64>,
    times: Vec<AtomicU32>,
    /// This row cannot be read.
    broken: Option<usize>,
    reads_blocks: bool,
}

impl<S: RowSource> Counted<S> {
    fn new(rows: S) -> Self {
        let times = (0..rows.n_rows()).map(|_| AtomicU32::new(0)).collect();
        Self { rows, fingerprint: Some(7), times, broken: None, reads_blocks: true }
    }

    /// How often rows were read, if all were read equally often; since the last call.
    #[track_caller]
    fn taken(&self) -> u32 {
        let times: BTreeSet<u32> = self.times.iter().map(|times| times.swap(0, Ordering::SeqCst)).collect();
        assert_eq!(times.len(), 1, "some rows are read more often than others: {times:?}");
        times.into_iter().next().expect("there are rows")
    }
}

impl<S: RowSource<Error = brisk_loader::Error>> RowSource for Counted<S> {
    type Feature = S::Feature;
    type Error = brisk_loader::Error;

    fn layout(&self) -> Layout {
        Layout { reads_blocks: self.reads_blocks, ..self.rows.layout() }
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, S::Feature>) -> Result<(), Self::Error> {
        rows.for_each_block(|_, rows| {
            for &row in rows {
                if self.broken == Some(row as usize) {
                    return Err(brisk_loader::Error::Decode { row, cause: "the disk is on fire".into() });
                }
                self.times[row as usize].fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        })?;
        self.rows.gather(rows, into)
    }

    fn fingerprint(&self) -> Option<u64> {
        self.fingerprint
    }
}

fn streamed(order: Option<Order>) -> FeedConfig {
    // A few batches.
    FeedConfig { choice: FeedChoice::Streamed, chunk_bytes: 5_000, order, ..FeedConfig::default() }
}

fn lanes(batch_rows: u32, n_lanes: u32) -> Order {
    Order::Lanes(Lanes { seed: Some(3), batch_rows, n_lanes, block_rows: 7, window_blocks: 2 })
}

/// Rows of different weights, some of which are 0: in batches of 64 in order, those of the first half of the fourth batch, which
/// is the first of two parts, and of the whole fifth.
fn weighted(rows: Rows) -> Rows {
    let weight = |row: usize| if (192..224).contains(&row) || (256..320).contains(&row) { 0.0 } else { (row % 5) as f32 * 0.7 };
    let weights = (0..rows.n_rows()).map(weight).collect::<Vec<_>>();
    rows.with_weights(weights).expect("a weight a row")
}

/// The report and the weights of each replica.
fn fit<S: RowSource<Feature = f32>>(
    n: usize,
    (train, valid): (&S, &S),
    feed: &FeedConfig,
    config: &TrainerConfig,
) -> Result<Vec<(FitReport, Vec<f32>)>, Error> {
    run_threads(n, &CONFIG, |replica| {
        let (ready, device) = (Setting::default().ready(), cpu(1));
        let Ready { model, params, adam, .. } = &ready;
        let trainer = Trainer::new(&device).config(config.clone()).feed(feed).replicas(replica);
        let training = trainer.prepare(Trainable::new(model, params, adam), &Binary::new(), train, valid)?;
        assert!(training.train_rows().fact().is_streamed() == (feed.choice == FeedChoice::Streamed), "the rows come as asked");
        Ok((training.fit(&mut quiet())?, device.read(params.values())?))
    })
}

#[test]
fn each_row_is_read_once_per_pass() -> Result<(), Error> {
    let config = TrainerConfig { max_epochs: 2, ..Setting::default().config };
    for n in [1, 2, 3, 4, 5] {
        // Batches of 64, the last of 27, and one evaluated batch of 1024 besides a short one.
        let [train, valid] = [rows(0, 731), rows(731, 1300)].map(Counted::new);
        for order in [Some(lanes(64, 4)), Some(Order::Shuffled { seed: 3 }), None] {
            let runs = fit(n, (&train, &valid), &streamed(order.clone()), &config)?;
            check_same_bits(&runs);
            assert_eq!(train.taken(), 1 + 2, "{n} replicas, {order:?}: what is known before the first step, and two epochs");
            assert_eq!(valid.taken(), 1 + 2, "{n} replicas, {order:?}: what is known before the first step, and two validations");
        }
    }
    // So are rows with weights: each replica knows the weights of all.
    let [train, valid] = [weighted(rows(0, 731)), weighted(rows(731, 1300))].map(Counted::new);
    for n in [1, 2, 3] {
        for order in [Some(lanes(64, 4)), Some(Order::Sequential), None] {
            check_same_bits(&fit(n, (&train, &valid), &streamed(order.clone()), &config)?);
            assert_eq!([train.taken(), valid.taken()], [1 + 2; 2], "{n} replicas, {order:?}: rows with weights");
        }
    }
    // Without a fingerprint, replicas compare digests of all rows.
    let [train, valid] = [rows(0, 731), rows(731, 100)].map(|rows| Counted { fingerprint: None, ..Counted::new(rows) });
    fit(3, (&train, &valid), &streamed(None), &config)?;
    assert_eq!(train.taken(), 3 + 2, "each replica reads all rows once");
    Ok(())
}

#[test]
fn the_run_is_that_of_resident_rows() -> Result<(), Error> {
    let config = TrainerConfig { seed: 3, ..Setting::default().config };
    let (train, valid) = (rows(0, 731), rows(731, 1300));
    check_run((&train, &valid), &Order::Shuffled { seed: 3 }, &config)?;
    let (train, valid) = (weighted(train), weighted(valid));
    check_run((&train, &valid), &Order::Shuffled { seed: 3 }, &config)?;
    check_run((&train, &valid), &Order::Sequential, &config)
}

fn check_run((train, valid): (&Rows, &Rows), order: &Order, config: &TrainerConfig) -> Result<(), Error> {
    let order = Some(order.clone());
    for n in [2, 3, 5] {
        let resident = FeedConfig { choice: FeedChoice::Resident, order: order.clone(), ..FeedConfig::default() };
        let expected = fit(n, (train, valid), &resident, config)?;
        for chunk_bytes in [0, 5_000, 1 << 30] {
            let feed = FeedConfig { chunk_bytes, ..streamed(order.clone()) };
            let found = fit(n, (train, valid), &feed, config)?;
            check_same_bits(&found);
            assert!(found[0].1 == expected[0].1, "{n} replicas, chunks of {chunk_bytes} bytes: weights");
            for (found, expected) in history(&found[0].0).into_iter().zip(history(&expected[0].0)) {
                assert_eq!(found, expected, "{n} replicas, chunks of {chunk_bytes} bytes: training loss and AUC");
            }
            let losses = [&found, &expected].map(|runs| runs[0].0.history[0].get("valid_loss").expect("it has one"));
            assert!((losses[0] - losses[1]).abs() < 1e-6, "{losses:?}");
        }
    }
    // By lanes, the runs of all numbers of replicas are the same.
    let feed = streamed(Some(lanes(64, 4)));
    let single = &fit(1, (train, valid), &feed, config)?[0];
    for n in [2, 3, 4, 5] {
        check_alike(single, &fit(n, (train, valid), &feed, config)?[0], 1e-5);
    }
    Ok(())
}

/// Random numbers of a layer belong to rows of the whole batch, in whichever place of its part a replica has them.
#[test]
fn dropout_is_that_of_resident_rows() -> Result<(), Error> {
    let (train, valid) = (rows(0, 211), rows(211, 100));
    let run = |choice| {
        let outputs = run_threads(3, &DataParallelConfig::default(), |replica| {
            let mut model = Model::new(3, |params| {
                Sequential(vec![
                    Box::new(Linear::new(params, "first", N_COLS, 16, Activation::relu())),
                    Box::new(Dropout::new(0.5)),
                    Box::new(Linear::new(params, "head", 16, 1, Activation::identity())),
                ])
            });
            let feed = FeedConfig { choice, order: Some(Order::Shuffled { seed: 1 }), ..streamed(None) };
            let mut trainer = Trainer::new(&cpu(1)).feed(&feed).batch_rows(40).max_epochs(2).seed(1).replicas(replica);
            trainer.fit(&mut model, &Binary::new(), &train, &valid)?;
            model.predict(&valid)
        })?;
        Ok::<_, Error>(outputs)
    };
    assert!(run(FeedChoice::Streamed)? == run(FeedChoice::Resident)?, "outputs are bit-identical");
    Ok(())
}

#[test]
fn another_number_of_replicas_continues_within_an_epoch() -> Result<(), Error> {
    let (train, valid) = (rows(0, 731), rows(731, 1300));
    // Twelve batches an epoch: five on four replicas, ten more on three, the rest on one.
    check_resumed(&train, &valid, [(4, Some(5)), (3, Some(15)), (1, None)])?;
    // More replicas than lanes, each of which two of them share.
    check_resumed(&train, &valid, [(8, Some(5)), (3, Some(15)), (5, None)])?;
    check_resumed(&weighted(train), &weighted(valid), [(4, Some(5)), (3, Some(15)), (1, None)])
}

/// One run, parts of which are on these numbers of replicas, up to these steps.
fn check_resumed(train: &Rows, valid: &Rows, parts: [(usize, Option<usize>); 3]) -> Result<(), Error> {
    let config = TrainerConfig { max_epochs: 2, ..Setting::default().config };
    let feed = streamed(Some(lanes(64, 4)));
    let whole = &fit(1, (train, valid), &feed, &config)?[0];
    let root = tempfile::tempdir().expect("a temporary folder");
    let (_, folder) = into_folder(root.path());
    let mut last: Option<Checkpoint> = None;
    for (n, max_steps) in parts {
        let config = TrainerConfig { max_steps, ..config.clone() };
        let runs = run_threads(n, &CONFIG, |replica| {
            let (ready, device) = (Setting::default().ready(), cpu(1));
            let Ready { model, params, adam, .. } = &ready;
            let trainer = Trainer::new(&device).config(config.clone()).feed(&feed).replicas(replica);
            let training = trainer.prepare(Trainable::new(model, params, adam), &Binary::new(), train, valid)?;
            let mut outputs = quiet();
            outputs.folder = Some(folder.clone());
            let report = match &last {
                None => training.fit(&mut outputs)?,
                Some(checkpoint) => training.resume(checkpoint, &mut outputs)?,
            };
            Ok::<_, Error>((report, device.read::<f32>(params.values())?))
        })?;
        check_same_bits(&runs);
        if max_steps.is_none() {
            let worst = runs[0].1.iter().zip(&whole.1).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-4, "weights differ by {worst}");
            let (found, expected) = (history(&runs[0].0), history(&whole.0));
            let (found, expected) = (found[found.len() - 1], expected[expected.len() - 1]);
            assert!((found.0 - expected.0).abs() < 1e-5 && (found.1 - expected.1).abs() < 1e-4, "{found:?}, {expected:?}");
        }
        last = Some(Checkpoint::load(folder.last())?);
    }
    Ok(())
}

/// Bytes that are computed: 4000 rows of 16,384, of which a MiB is read at a time by one replica.
struct Wide;

const WIDE_COLS: usize = 16_384;

impl RowSource for Wide {
    type Feature = u8;
    type Error = brisk_loader::Error;

    fn layout(&self) -> Layout {
        Layout::new(4000, WIDE_COLS)
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, u8>) -> Result<(), Self::Error> {
        into.check(&rows, &self.layout())?;
        into.for_each_row(&rows, &self.layout(), |row, into| {
            let of_col = |col: usize| (row as usize * 31 + col * (row as usize % 7)) as u8;
            into.features.into_iter().for_each(|features| features.iter_mut().zip(0..).for_each(|(x, col)| *x = of_col(col)));
            into.labels.into_iter().for_each(|labels| labels[0] = (row % 2) as f32);
            Ok(())
        })
    }
}

#[test]
fn what_is_known_of_rows_does_not_depend_on_the_replicas() -> Result<(), Error> {
    let mut known: Vec<(RowDigest, Standardisation)> = Vec::new();
    for n in [1, 3, 4] {
        let train = Counted::new(Wide);
        let found = run_threads(n, &DataParallelConfig::default(), |replica| {
            let device = cpu(1);
            let mut builder = brisk_nn::ParametersBuilder::new();
            let model = Linear::new(&mut builder, "head", WIDE_COLS, 1, Activation::identity());
            let params = builder.build(3);
            let adam = brisk_nn::Adam::new(&params);
            let feed = streamed(None);
            let trainer = Trainer::new(&device).batch_rows(64).feed(&feed).replicas(replica);
            let mine = Counted::new(&train);
            let training = trainer.prepare(Trainable::new(&model, &params, &adam), &Binary::new(), &mine, &mine)?;
            let n_read: u32 = mine.times.iter().map(|times| times.load(Ordering::SeqCst)).sum();
            // A MiB is 63 of these rows.
            assert!(n_read as usize <= 2 * (4000 / n + 63), "one of {n} replicas read {n_read} rows");
            Ok::<_, Error>((training.row_digests()[0], training.scale().clone()))
        })?;
        assert_eq!(train.taken(), 2, "{n} replicas: once as training rows, once as validation rows");
        known.extend(found);
    }
    let first = &known[0];
    assert!(known.iter().all(|(digest, scale)| *digest == first.0 && *scale == first.1), "bit-identical");
    assert_eq!(first.0, RowDigest::of("train", &Wide)?);
    assert!(first.1 == Standardisation::of("train", &Wide)?);
    // Against a plain sum over one column.
    let column: Vec<f64> = (0..4000_usize).map(|row| f64::from((row * 31 + 5 * (row % 7)) as u8)).collect();
    let mean = column.iter().sum::<f64>() / 4000.0;
    let std = (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
    assert!((f64::from(first.1.mean()[5]) - mean).abs() < 1e-4, "mean {mean}");
    assert!((f64::from(first.1.inv_std()[5]) * std - 1.0).abs() < 1e-5, "deviation {std}");
    Ok(())
}

/// The errors of all replicas, whose rows cannot be used.
fn errors(n: usize, prepare: impl Fn(&DataParallel) -> Result<(), Error> + Sync) -> Vec<String> {
    let found = run_threads(n, &DataParallelConfig::default(), |replica| {
        Ok::<_, Error>(prepare(replica).expect_err("the rows cannot be used").to_string())
    });
    found.expect("all replicas find out together")
}

fn prepare<S: RowSource<Feature = f32>>(replica: &DataParallel, train: &S, valid: &S, feed: &FeedConfig) -> Result<(), Error> {
    let (ready, device) = (Setting::default().ready(), cpu(1));
    let Ready { model, params, adam, .. } = &ready;
    let trainer = Trainer::new(&device).config(ready.config()).feed(feed).replicas(replica);
    trainer.prepare(Trainable::new(model, params, adam), &Binary::new(), train, valid).map(drop)
}

#[test]
fn each_replica_names_a_wrong_value_whichever_read_it() {
    // So few rows are one section, which the last replica reads.
    let valid = Counted::new(rows(500, 200));
    let mut features = rows(0, 500).features().to_vec();
    features[123 * N_COLS + 4] = f32::NAN;
    let train = Counted::new(Rows::new(features, rows(0, 500).labels().to_vec(), N_COLS).expect("a label a row"));
    let found = errors(3, |replica| prepare(replica, &train, &valid, &streamed(None)));
    assert!(found.iter().all(|error| *error == found[0] && error.contains("row 123") && error.contains("NaN")), "{found:?}");

    let broken = Counted { broken: Some(77), ..Counted::new(rows(0, 500)) };
    let found = errors(3, |replica| prepare(replica, &broken, &valid, &streamed(None)));
    assert!(found.iter().all(|error| error.contains("the disk is on fire") && error.contains("77")), "{found:?}");

    let weights = vec![1.0; 499].into_iter().chain([-1.0]).collect::<Vec<_>>();
    let [weighted, valid] = [(rows(0, 500), weights), (rows(500, 200), vec![1.0; 200])]
        .map(|(rows, weights)| Counted::new(Weighted { rows, weights }));
    let found = errors(2, |replica| prepare(replica, &weighted, &valid, &streamed(None)));
    assert!(found.iter().all(|error| *error == found[0] && error.contains("row 499") && error.contains("-1")), "{found:?}");
}

/// The fingerprint of a table depends on the file that it was imported from.
#[test]
fn rows_of_other_fingerprints_are_compared_by_their_digests() -> Result<(), Error> {
    let prepare = |first_row: usize| {
        run_threads(2, &DataParallelConfig::default(), |replica| {
            let rank = replica.rank();
            let train = Counted { fingerprint: Some(7 + rank as u64), ..Counted::new(rows(rank * first_row, 500)) };
            prepare(replica, &train, &Counted::new(rows(500, 200)), &streamed(None))?;
            Ok::<_, Error>(train.taken())
        })
    };
    assert_eq!(prepare(0)?, [1, 1], "each reads all rows");
    let error = prepare(1).expect_err("the rows differ").to_string();
    let expected = "`train rows` differs between rank 0 and rank 1: 500 rows of 5 columns with digest ";
    assert!(error.starts_with(expected), "{error}");
    Ok(())
}

/// For any number of replicas.
#[test]
fn streamed_rows_of_a_source_that_reads_blocks_are_shuffled_by_blocks() -> Result<(), Error> {
    let source = |reads_blocks| [rows(0, 731), rows(731, 300)].map(|rows| Counted { reads_blocks, ..Counted::new(rows) });
    let [by_blocks, in_memory] = [source(true), source(false)];
    let facts = |n: usize, [train, valid]: &[Counted<_>; 2], feed: &(dyn Fn(usize) -> FeedConfig + Sync), batch_rows: usize| {
        run_threads(n, &DataParallelConfig::default(), |replica| {
            let (ready, device) = (Setting::default().ready(), cpu(1));
            let Ready { model, params, adam, .. } = &ready;
            let trainer = Trainer::new(&device).batch_rows(batch_rows).seed(5).feed(&feed(replica.rank())).replicas(replica);
            let training = trainer.prepare(Trainable::new(model, params, adam), &Binary::new(), train, valid)?;
            let rows = training.train_rows();
            Ok::<_, Error>((rows.order().clone(), rows.fact().clone()))
        })
    };
    let lanes = |batch_rows, n_lanes| {
        let order = Order::by_blocks(batch_rows, (N_COLS + 1) * size_of::<f32>(), 5);
        assert!(matches!(order, Order::Lanes(lanes) if lanes.n_lanes == n_lanes && lanes.seed == Some(5)), "{order}");
        order
    };
    let blocks = |batch_rows| Order::by_blocks(batch_rows, (N_COLS + 1) * size_of::<f32>(), 5);
    let over_all = Order::Shuffled { seed: 5 };
    let (streams, resident) = (|_: usize| streamed(None), |_: usize| FeedConfig::default());
    for n in [1, 2, 3] {
        for (batch_rows, expected) in [(64, lanes(64, 4)), (90, lanes(90, 5)), (24, blocks(24)), (37, blocks(37))] {
            let found = facts(n, &by_blocks, &streams, batch_rows)?;
            assert!(found.iter().all(|(order, _)| *order == expected), "{n} replicas, batches of {batch_rows}: {found:?}");
        }
        for (source, feed) in [(&in_memory, &streams as &(dyn Fn(usize) -> FeedConfig + Sync)), (&by_blocks, &resident)] {
            let found = facts(n, source, feed, 64)?;
            assert!(found.iter().all(|(order, _)| *order == over_all), "{n} replicas, over all rows: {found:?}");
        }
    }
    assert!(matches!(blocks(24), Order::Blocks { seed: 5, window_blocks: 16, .. }), "24 rows are too few for two lanes");
    // If one has no room for them, all stream.
    let one = |rank: usize| FeedConfig { budget_bytes: Some(if rank == 1 { 100 } else { 1 << 30 }), ..FeedConfig::default() };
    let found = facts(2, &by_blocks, &one, 64)?;
    assert!(found.iter().all(|(order, _)| *order == lanes(64, 4)), "{found:?}");
    let found = found.into_iter().map(|(_, fact)| fact).collect::<Vec<_>>();
    assert!(matches!(found[..], [FeedReason::StreamedForOrder { .. }, FeedReason::StreamedBeyondBudget { .. }]), "{found:?}");
    Ok(())
}

#[test]
fn rows_of_another_part_are_refused() {
    let valid = Counted::new(rows(500, 200));
    let refused = |feed: FeedConfig| {
        let found = errors(2, |replica| prepare(replica, &Counted::new(rows(0, 500)), &valid, &feed));
        found.into_iter().next().expect("two replicas")
    };
    let error = refused(streamed(Some(lanes(60, 4))));
    assert!(error.starts_with("order: ") && error.contains("60 rows") && error.contains("64 rows"), "{error}");
    let error = refused(FeedConfig { rank: Shard::parts(0, 3), ..streamed(None) });
    assert!(error.starts_with("rank: ") && error.contains("rank 0 of 3"), "{error}");
    let device = cpu(1);
    let train = rows(0, 100);
    let feed = |rank| Feed::new(&device, "train", &train, Order::Sequential, 10, &FeedConfig { rank, ..streamed(None) });
    for (rank, part) in [(Shard::blocks(0, 2), "rank: "), (Shard::parts(2, 2), "rank: "), (Shard::parts(0, 11), "batch_rows: ")] {
        let error = feed(rank).map(drop).expect_err("no such part").to_string();
        assert!(error.starts_with(part), "{error}");
    }
    let ready = Setting::default().ready();
    let scale = Standardisation::none(N_COLS);
    let feed = feed(Shard::parts(1, 2)).expect("a part");
    let error = Scorer::new(&device, &ready.model, &ready.params, &feed, &scale, Precision::F32).map(drop);
    let error = error.expect_err("it does not read the other part").to_string();
    assert!(error.starts_with("rank: ") && error.contains("rank 1 of 2"), "{error}");
}

#[test]
fn scores_are_in_the_order_of_the_table() -> Result<(), Error> {
    let test = Counted::new(rows(0, 333));
    let (ready, device) = (Setting::default().ready(), cpu(1));
    let scale = Standardisation::of("test", &rows(0, 333))?;
    scale.write(&device)?;
    ready.params.write_initial(&device)?;
    let whole = Feed::new(&device, "test", &test, Order::Sequential, 50, &streamed(None))?;
    let expected = Scorer::new(&device, &ready.model, &ready.params, &whole, &scale, Precision::F32)?.scores()?;
    test.taken();
    for n in [2, 3] {
        let found = run_threads(n, &DataParallelConfig::default(), |replica| {
            let (ready, device) = (Setting::default().ready(), cpu(1));
            scale.write(&device)?;
            ready.params.write_initial(&device)?;
            let order = Order::Lanes(Lanes { seed: None, batch_rows: 50, n_lanes: 5, block_rows: 9, window_blocks: 2 });
            let config = FeedConfig { rank: replica.shard(), ..streamed(None) };
            let feed = Feed::new(&device, "test", &test, order, 50, &config)?;
            Scorer::with_replicas(&device, &ready.model, &ready.params, &feed, &scale, Precision::F32, replica)?.scores()
        })?;
        assert_eq!(test.taken(), 1, "{n} replicas compare fingerprints, and each reads its part");
        assert!(found.iter().all(|scores| *scores == expected), "{n} replicas");
    }
    Ok(())
}

/// What is announced to a source under data parallel: only the blocks of the replica's lanes.
#[test]
fn replicas_announce_what_they_read() -> Result<(), Error> {
    struct Announced(Rows, Vec<AtomicU32>);
    impl RowSource for Announced {
        type Feature = f32;
        type Error = brisk_loader::Error;
        fn layout(&self) -> Layout {
            Layout { reads_blocks: true, ..self.0.layout() }
        }
        fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Self::Error> {
            self.0.gather(rows, into)
        }
        fn hint(&self, rows: RowSelection<'_>, hint: Hint) {
            if let (RowSelection::Range(rows), Hint::WillNeed) = (rows, hint) {
                self.1[rows].iter().for_each(|times| _ = times.fetch_add(1, Ordering::SeqCst));
            }
        }
        fn fingerprint(&self) -> Option<u64> {
            Some(7)
        }
    }
    let announced = |n: usize| Announced(rows(0, n), (0..n).map(|_| AtomicU32::new(0)).collect());
    let config = TrainerConfig { max_epochs: 1, ..Setting::default().config };
    let (train, valid) = (announced(731), announced(1300));
    fit(4, (&train, &valid), &streamed(None), &config)?;
    for source in [train, valid] {
        let times: BTreeSet<u32> = source.1.iter().map(|times| times.load(Ordering::SeqCst)).collect();
        assert_eq!(times, BTreeSet::from([2]), "each row, by one replica, before the first step and in the epoch");
    }
    Ok(())
}
