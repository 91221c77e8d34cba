//! A run gives the same result however rows reach the device: resident, in windows or streamed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brisk_loader::{ColumnMoments, Layout, Order, RowBuffers, RowSelection, RowSource, Rows, WeightedDraws};
use brisk_nn::tensor::Graph;
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, CategoricalColumn, Linear, Mlp, MlpConfig, ParametersBuilder, Schedule,
    Sequential,
};
use brisk_program::{Device, Selection};
use brisk_train::{
    Binary, Ended, Error, FeedChoice, FeedConfig, FeedElement, FeedReason, FitReport, Model, Outputs, RowDigest, Standardisation,
    StopFlag, Trainable, Trainer, TrainerConfig,
};

use crate::gpu::{cpu, gpu};
use crate::run::{Before, N_COLS, Ready, Setting, Weighted, history, noise, quiet, rows};

const COLUMNS: [CategoricalColumn; 2] = [CategoricalColumn { n_codes: 4, dim: 2 }, CategoricalColumn { n_codes: 90, dim: 3 }];

fn codes(n: usize) -> Vec<u32> {
    (0..n).flat_map(|row| [(row * 7 % 4) as u32, (row * row % 90) as u32]).collect()
}

/// Rows with two categorical columns, and weights from 0 to 2.
fn with_all(rows: Rows) -> Rows {
    let n = rows.n_rows();
    let weights: Vec<f32> = (0..n).map(|row| (row % 5) as f32 * 0.5).collect();
    rows.with_categories(codes(n), 2).and_then(|rows| rows.with_weights(weights)).expect("a code a column, a weight a row")
}

/// `rows` as bytes.
fn in_bytes(rows: &Rows) -> Rows<Vec<u8>> {
    let bytes = rows.features().iter().map(|x| (x * 40.0 + 128.0) as u8).collect();
    Rows::new(bytes, rows.labels().to_vec(), N_COLS).expect("as many labels as rows")
}

/// The results of a run, to be compared bit by bit.
#[derive(Debug, PartialEq)]
struct Outcome {
    history: Vec<(f64, f64)>,
    values: Vec<f32>,
}

struct Run<'a, S> {
    train: &'a S,
    valid: &'a S,
    columns: &'a [CategoricalColumn],
    batch_rows: usize,
}

impl<S: RowSource<Feature: FeedElement>> Run<'_, S> {
    fn fit(
        &self,
        device: &Device,
        feed: &FeedConfig,
        outputs: &mut Outputs,
    ) -> Result<(FitReport, Outcome, [FeedReason; 2]), Error> {
        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: self.train.n_cols(), hidden: vec![8], n_outputs: 1, activation: Activation::tanh() };
        let model = Mlp::with_categories(&mut builder, &sizes, self.columns);
        let params = builder.build(3);
        let adam = Adam::new(&params);
        let schedule = Schedule::step(5e-3, 5, 0.9);
        let config = TrainerConfig { batch_rows: self.batch_rows, max_epochs: 3, schedule, seed: 11, ..TrainerConfig::default() };
        let trainer = Trainer::new(device).config(config).feed(feed).prepare(
            Trainable::new(&model, &params, &adam),
            &Binary::new(),
            self.train,
            self.valid,
        )?;
        let facts = [trainer.train_rows().fact().clone(), trainer.valid_rows().fact().clone()];
        let report = trainer.fit(outputs)?;
        let planned = Graph::planned_peak_bytes(&trainer.graphs())?;
        assert_eq!(device.allocated_bytes(), planned, "what is held is what was planned, {}", facts[0]);
        let outcome = Outcome { history: history(&report), values: device.read(params.values())? };
        Ok((report, outcome, facts))
    }

    fn outcome(&self, device: &Device, feed: &FeedConfig) -> Result<(Outcome, [FeedReason; 2]), Error> {
        self.fit(device, feed, &mut quiet()).map(|(_, outcome, facts)| (outcome, facts))
    }
}

fn resident() -> FeedConfig {
    FeedConfig { choice: FeedChoice::Resident, ..FeedConfig::default() }
}

fn streamed(chunk_bytes: usize) -> FeedConfig {
    FeedConfig { choice: FeedChoice::Streamed, chunk_bytes, ..FeedConfig::default() }
}

/// Streams in chunks of one batch, of several with a short last chunk, and of more than there are.
fn check_streamed<S: RowSource<Feature: FeedElement>>(device: &Device, run: &Run<'_, S>) -> Result<(), Error> {
    let (expected, facts) = run.outcome(device, &resident())?;
    assert!(facts.iter().all(|fact| matches!(fact, FeedReason::ResidentAsked { .. })), "{facts:?}");
    for chunk_bytes in [0, 7_000, 1 << 30] {
        let (found, facts) = run.outcome(device, &streamed(chunk_bytes))?;
        assert!(facts.iter().all(|fact| matches!(fact, FeedReason::StreamedAsked { .. })), "{facts:?}");
        assert!(found == expected, "{}: {found:?} where resident rows give {expected:?}", facts[0]);
    }
    Ok(())
}

#[test]
fn a_streamed_run_is_the_resident_run_to_the_bit() -> Result<(), Error> {
    let (train, valid) = (rows(0, 731), rows(731, 1500));
    check_streamed(&cpu(2), &Run { train: &train, valid: &valid, columns: &[], batch_rows: 50 })?;
    let (train, valid) = (with_all(train), with_all(valid));
    check_streamed(&cpu(2), &Run { train: &train, valid: &valid, columns: &COLUMNS, batch_rows: 50 })?;
    check_streamed(&cpu(2), &Run { train: &train, valid: &valid, columns: &COLUMNS, batch_rows: 5000 })?;
    let (train, valid) = (in_bytes(&train), in_bytes(&valid));
    check_streamed(&cpu(2), &Run { train: &train, valid: &valid, columns: &[], batch_rows: 43 })
}

#[test]
fn a_streamed_run_on_a_gpu_is_the_resident_run() -> Result<(), Error> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let (train, valid) = (with_all(rows(0, 300)), with_all(rows(300, 100)));
    let run = Run { train: &train, valid: &valid, columns: &COLUMNS, batch_rows: 64 };
    let (expected, _) = run.outcome(&gpu, &resident())?;
    for chunk_bytes in [0, 5_000] {
        let (found, _) = run.outcome(&gpu, &streamed(chunk_bytes))?;
        for (found, expected) in found.history.iter().zip(&expected.history) {
            let off = (found.0 - expected.0).abs().max((found.1 - expected.1).abs());
            assert!(off <= 1e-5, "loss and AUC are {found:?}, {expected:?} with resident rows");
        }
    }
    Ok(())
}

/// A device that can bind at most this many bytes.
fn lowered(selection: Selection, max_bytes: usize) -> Device {
    Device::builder().selection(selection).threads(2).max_binding_bytes(max_bytes).open().expect("the device opens")
}

fn check_windows<S: RowSource<Feature: FeedElement>>(selection: &Selection, run: &Run<'_, S>) -> Result<(), Error> {
    let (expected, _) = run.outcome(&lowered(selection.clone(), usize::MAX), &resident())?;
    for config in [resident(), streamed(20_000)] {
        let (found, facts) = run.outcome(&lowered(selection.clone(), 7_000), &config)?;
        assert!(found == expected, "{}, in windows: {found:?}, whole: {expected:?}", facts[0]);
    }
    Ok(())
}

#[test]
fn a_table_in_windows_trains_as_the_whole_to_the_bit() -> Result<(), Error> {
    // 24 kB of features, 4.8 kB of labels and weights, 9.6 kB of codes; the scores of 150 rows are read at once.
    let (train, valid) = (with_all(rows(0, 1200)), with_all(rows(1200, 150)));
    let run = Run { train: &train, valid: &valid, columns: &COLUMNS, batch_rows: 50 };
    check_windows(&Selection::Cpu, &run)?;
    let (train_bytes, valid_bytes) = (in_bytes(&rows(0, 3000)), in_bytes(&valid));
    check_windows(&Selection::Cpu, &Run { train: &train_bytes, valid: &valid_bytes, columns: &[], batch_rows: 50 })?;
    if gpu().is_some() {
        let train = with_all(rows(0, 500));
        check_windows(&Selection::Index(0), &Run { train: &train, ..run })?;
    }
    Ok(())
}

#[test]
fn more_scores_than_can_be_bound_are_read_in_turns() -> Result<(), Error> {
    let (train, valid) = (rows(0, 100), rows(100, 5_000));
    let run = Run { train: &train, valid: &valid, columns: &[], batch_rows: 50 };
    let expected = run.outcome(&cpu(2), &resident())?.0;
    // 20 kB of scores; 36 kB for the activations of the 1024 rows that are scored together.
    assert_eq!(run.outcome(&lowered(Selection::Cpu, 36 << 10), &resident())?.0, expected, "turns of several batches");
    let many = rows(100, 20_000);
    let run = Run { valid: &many, ..run };
    let expected = run.outcome(&cpu(2), &resident())?.0;
    assert_eq!(run.outcome(&lowered(Selection::Cpu, 36 << 10), &resident())?.0, expected, "80 kB of scores in three turns");
    Ok(())
}

#[test]
fn rows_are_resident_if_they_fit_and_the_fact_says_why() -> Result<(), Error> {
    let (train, valid) = (rows(0, 1000), rows(1000, 200));
    let run = Run { train: &train, valid: &valid, columns: &[], batch_rows: 100 };
    let facts = |budget_bytes| {
        let feed = FeedConfig { budget_bytes, chunk_bytes: 5_000, ..FeedConfig::default() };
        run.outcome(&cpu(1), &feed).map(|(_, facts)| facts)
    };
    // 24 bytes per row.
    let fits = |len_bytes, budget_bytes| FeedReason::ResidentFits { len_bytes, budget_bytes: Some(budget_bytes) };
    assert_eq!(facts(Some(30_000))?, [fits(24_000, 30_000), fits(4_800, 6_000)], "both fit, one after the other");
    let beyond = FeedReason::StreamedBeyondBudget { len_bytes: 24_000, budget_bytes: 10_000, chunk_bytes: 4_800 };
    assert_eq!(facts(Some(10_000))?, [beyond.clone(), fits(4_800, 5_200)], "what a chunk leaves is the other's");
    assert_eq!(beyond.to_string(), "streamed in chunks of 0.0 MiB: 0.0 MiB of rows, a budget of 0.0 MiB", "a line for people");
    assert!(facts(None)?.iter().all(|fact| !fact.is_streamed()), "a few kilobytes fit anywhere");
    Ok(())
}

#[test]
fn an_order_that_the_host_computes_is_streamed() -> Result<(), Error> {
    let (train, valid) = (rows(0, 500), rows(500, 200));
    let run = Run { train: &train, valid: &valid, columns: &[], batch_rows: 30 };
    let draws = WeightedDraws::new(&vec![1.0; 500], 770).expect("weights to draw by");
    let orders =
        [Order::Blocks { seed: 4, block_rows: 16, window_blocks: 5 }, Order::Weighted { seed: 4, draws: Arc::new(draws) }];
    for order in orders {
        let feed = |choice, chunk_bytes| FeedConfig { choice, chunk_bytes, order: Some(order.clone()), ..FeedConfig::default() };
        let (expected, [fact, valid_fact]) = run.outcome(&cpu(2), &feed(FeedChoice::Auto, 1 << 20))?;
        assert!(matches!(fact, FeedReason::StreamedForOrder { .. }) && !valid_fact.is_streamed(), "{fact}, {valid_fact}");
        assert_eq!(run.outcome(&cpu(2), &feed(FeedChoice::Auto, 3_000))?.0, expected, "smaller chunks of {order}");
        let shuffled = run.outcome(&cpu(2), &streamed(3_000))?.0;
        assert!(shuffled != expected, "{order} is another order than all rows shuffled");
        let error = run.outcome(&cpu(2), &feed(FeedChoice::Resident, 0)).expect_err("no kernel computes it");
        assert!(
            matches!(&error, Error::Setting { name: "order", .. }) && error.to_string().contains("or stream them"),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn bytes_stay_bytes_on_the_device() -> Result<(), Error> {
    let train = in_bytes(&rows(0, 100));
    let rows = brisk_train::ResidentRows::upload(&cpu(1), "train", &train)?;
    assert_eq!(rows.len_bytes(), 100 * (N_COLS + 4), "a byte a feature and a label");
    Ok(())
}

#[test]
fn weights_count_as_so_many_rows() -> Result<(), Error> {
    let (plain, valid) = (rows(0, 60), rows(60, 100));
    let weights: Vec<f32> = (0..60).map(|row| [0.0, 1.0, 3.0][row % 3]).collect();
    let twice = |values: &[f32], width: usize| -> Vec<f32> {
        let repeated = values.chunks(width).zip(&weights).flat_map(|(row, &weight)| vec![row; weight as usize]);
        repeated.flatten().copied().collect()
    };
    let repeated = Rows::new(twice(plain.features(), N_COLS), twice(plain.labels(), 1), N_COLS).expect("as many labels as rows");
    let weighted = plain.with_weights(weights.clone()).expect("a weight a row");
    // The moments of columns are those of the unchanged rows: there the two differ, and only the first loss is compared with
    // standardised inputs.
    let loss = |train: &Rows| -> Result<f64, Error> {
        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![4], n_outputs: 1, activation: Activation::tanh() };
        let model = Mlp::new(&mut builder, &sizes);
        let params = builder.build(1);
        let device = cpu(1);
        params.write_initial(&device)?;
        let scale = brisk_train::Standardisation::of("plain", &rows(0, 60))?;
        scale.write(&device)?;
        let resident = brisk_train::ResidentRows::upload(&device, "train", train)?;
        let (graph, state) = (Graph::inference("loss"), Graph::state_buffer());
        let batch = resident.record(&graph, &scale, &state, 100);
        resident.set_order(&device, Order::Sequential, 0, 100)?;
        let logits = batch.forward(&model, &params.bind(&graph));
        let loss = logits.bce_with_logits(&batch.labels, &batch.weights, brisk_nn::tensor::Reduction::Mean, 1.0);
        let result = brisk_nn::tensor::Persistent::new("loss", brisk_nn::tensor::DType::F32, 1);
        graph.store(&loss, &state, &result);
        graph.advance(&state);
        graph.compile(&device)?.run(1)?;
        Ok(f64::from(device.read::<f32>(&result)?[0]))
    };
    let (found, expected) = (loss(&weighted)?, loss(&repeated)?);
    assert!((found - expected).abs() <= 1e-6, "{found}, and {expected} with rows repeated");
    let run = Run { train: &weighted, valid: &valid, columns: &[], batch_rows: 20 };
    assert!(run.outcome(&cpu(1), &resident())?.0.history.iter().all(|(loss, _)| loss.is_finite()), "weights of 0 do no harm");
    Ok(())
}

#[test]
fn categories_are_learnt() -> Result<(), Error> {
    // The label depends only on the codes.
    let label = |codes: &[u32]| f32::from(u8::from((codes[0] + codes[1] / 10).is_multiple_of(2)));
    let make = |first: usize, n: usize| -> Rows {
        let codes: Vec<u32> = codes(first + n)[2 * first..].to_vec();
        let labels = codes.chunks(2).map(label).collect();
        let noise = (first..first + n).map(|row| noise(row, 0)).collect();
        Rows::new(noise, labels, 1).and_then(|rows| rows.with_categories(codes, 2)).expect("two codes a row")
    };
    let (train, valid) = (make(0, 4000), make(4000, 1000));
    let columns = [CategoricalColumn::of(4), CategoricalColumn::of(90)];
    let run = Run { train: &train, valid: &valid, columns: &columns, batch_rows: 32 };
    let auc = run.fit(&cpu(2), &FeedConfig::default(), &mut quiet())?.0.best_value;
    assert!(auc > 0.9, "the codes say which class it is: {auc}");
    Ok(())
}

#[track_caller]
fn refused<S: RowSource<Feature: FeedElement>>(run: &Run<'_, S>, choice: FeedChoice) -> String {
    let feed = FeedConfig { choice, ..FeedConfig::default() };
    run.outcome(&cpu(1), &feed).expect_err("these rows cannot be trained on").to_string()
}

#[test]
fn rows_that_do_not_fit_the_model_are_refused() -> Result<(), Error> {
    let (plain, coded) = (rows(0, 100), with_all(rows(0, 100)));
    let message = |train: &Rows, valid: &Rows, columns: &[CategoricalColumn]| {
        refused(&Run { train, valid, columns, batch_rows: 10 }, FeedChoice::Auto)
    };
    let expected =
        "train rows: 2 categorical columns per row, expected 0; give the model an embedding for each, or leave the columns out";
    assert_eq!(message(&coded, &coded, &[]), expected);
    let expected =
        "valid rows: 0 categorical columns per row, expected 2; give the model an embedding for each, or leave the columns out";
    assert_eq!(message(&coded, &plain, &COLUMNS), expected);
    let few = [COLUMNS[0], CategoricalColumn { n_codes: 9, dim: 1 }];
    let expected = "train rows: the code of categorical column 1 of row 3 is 9, expected one below 9, the number of codes of the model; give the model more, or replace the code by 0, which stands for unknown";
    assert_eq!(message(&coded, &coded, &few), expected);
    for (weight, expected) in [(-1.0, "-1"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut weights = vec![1.0; 100];
        weights[42] = weight;
        let weighted = Weighted { rows: rows(0, 100), weights };
        let expected = format!("train rows: the weight of row 42 is {expected}, expected a finite number, 0 or more");
        for choice in [FeedChoice::Resident, FeedChoice::Streamed] {
            let run = Run { train: &weighted, valid: &weighted, columns: &[], batch_rows: 10 };
            assert_eq!(refused(&run, choice), expected, "{choice:?}");
        }
    }
    let weightless = rows(0, 100).with_weights(vec![0.0; 100]).expect("a weight a row");
    let expected = "train rows: all 100 weights are 0, expected some above 0; leave the weights out, or set some";
    assert_eq!(message(&weightless, &plain, &[]), expected);
    Ok(())
}

#[test]
fn a_model_that_ignores_the_categories_of_a_batch_is_refused() -> Result<(), Error> {
    let device = cpu(1);
    let resident = brisk_train::ResidentRows::upload(&device, "train", &with_all(rows(0, 100)))?;
    let mut builder = ParametersBuilder::new();
    let linear = Linear::new(&mut builder, "linear", N_COLS, 1, Activation::identity());
    let (graph, state) = (Graph::inference("scores"), Graph::state_buffer());
    let batch = resident.record(&graph, &brisk_train::Standardisation::none(N_COLS), &state, 10);
    batch.forward(&linear, &builder.build(1).bind(&graph));
    let error = graph.check().expect_err("it takes no categories");
    let found = matches!(error.kind(), brisk_nn::Error::Shape { arg: "categories", found, .. } if found[..] == [10, 2]);
    assert!(found, "{error}");
    Ok(())
}

/// Fits on rows that act when this many of them have been gathered by number, as in a shuffled epoch.
fn fit_after<F>(n: usize, then: F, stop: StopFlag) -> Result<FitReport, Error>
where
    F: Fn() -> Result<(), brisk_loader::Error> + Sync,
{
    let then = &then;
    let after = |n| {
        let n_left = AtomicUsize::new(n);
        Before(rows(0, 500), move |rows: &RowSelection<'_>| {
            let RowSelection::Numbers(numbers) = rows else { return Ok(()) };
            let left = n_left.load(Ordering::SeqCst);
            n_left.store(left.saturating_sub(numbers.len()), Ordering::SeqCst);
            if left < numbers.len() { then() } else { Ok(()) }
        })
    };
    // Chunks of two batches of 50 rows; an epoch is five of them.
    let (train, valid) = (after(n), after(usize::MAX));
    let run = Run { train: &train, valid: &valid, columns: &[], batch_rows: 50 };
    Ok(run.fit(&cpu(2), &streamed(2 * 50 * 24), &mut Outputs { stop, ..quiet() })?.0)
}

#[test]
fn a_source_that_fails_names_the_batches() {
    let fail = || Err(brisk_loader::Error::NoColumns { n_rows: 77 });
    let error = fit_after(720, fail, StopFlag::new()).expect_err("the source fails in the second epoch");
    let Error::Stream { set: "train", epoch: 2, first_batch: 5, last_batch: 6, .. } = &error else { panic!("{error:?}") };
    let message = error.to_string();
    assert!(message.starts_with("train rows: batches 5 to 6 of epoch 2 could not be read: "), "{message}");
    assert!(message.contains("77"), "what the source said: {message}");
}

#[test]
fn a_source_that_panics_names_the_batches() {
    let error = fit_after(230, || panic!("no more"), StopFlag::new()).expect_err("the source panics in the first epoch");
    let message = error.to_string();
    let expected = "train rows: batches 5 to 6 of epoch 1 could not be read: the source panicked: no more; the steps before them are complete";
    assert_eq!(message, expected);
}

#[test]
fn a_wish_to_stop_is_heard_between_chunks() -> Result<(), Error> {
    let stop = StopFlag::new();
    let ask = || {
        stop.request();
        Ok(())
    };
    // The last chunk of the second epoch is being gathered: whichever chunk is trained on then, the third epoch does not start.
    let report = fit_after(900, ask, stop.clone())?;
    assert_eq!((report.ended, report.n_epochs), (Ended::Stopped, 1), "the first epoch is whole, the second is not");
    Ok(())
}

/// Rows that count how many of them have been gathered.
struct Counted {
    rows: Rows,
    n_gathered: AtomicUsize,
    moments: Option<Vec<ColumnMoments>>,
}

impl Counted {
    fn new(rows: Rows) -> Self {
        Self { rows, n_gathered: AtomicUsize::new(0), moments: None }
    }
}

impl RowSource for Counted {
    type Feature = f32;
    type Error = brisk_loader::Error;

    fn layout(&self) -> Layout {
        self.rows.layout()
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Self::Error> {
        self.n_gathered.fetch_add(rows.len(), Ordering::SeqCst);
        self.rows.gather(rows, into)
    }

    fn column_moments(&self) -> Option<Vec<ColumnMoments>> {
        self.moments.clone()
    }
}

/// Moments that a source knows of its columns are used instead of being computed again.
#[test]
fn columns_are_standardised_by_what_the_source_knows_of_them() -> Result<(), Error> {
    let moments = ColumnMoments { mean: 3.0, std: 0.5 };
    let constant = ColumnMoments { mean: 3.0, std: 0.0 };
    let of_columns = [vec![moments; N_COLS - 1], vec![constant]].concat();
    let train = Counted { moments: Some(of_columns), ..Counted::new(rows(0, 500)) };
    let valid = Counted::new(rows(500, 100));
    let Ready { model, params, adam, .. } = Setting::default().ready();
    let device = cpu(2);
    let training = Trainer::new(&device).prepare(Trainable::new(&model, &params, &adam), &Binary::new(), &train, &valid)?;
    let expected = ([3.0; N_COLS].to_vec(), [vec![2.0; N_COLS - 1], vec![1.0]].concat());
    assert_eq!((training.scale().mean().to_vec(), training.scale().inv_std().to_vec()), expected, "in training");
    let scale = Standardisation::of("train", &train)?;
    assert_eq!((scale.mean().to_vec(), scale.inv_std().to_vec()), expected, "by itself");
    Ok(())
}

/// The statistics of a batch depend on all of its rows, including the padding of a short one.
#[test]
fn batch_norm_sees_the_same_short_batches_streamed_and_resident() -> Result<(), Error> {
    let (train, valid) = (rows(0, 109), rows(109, 60));
    let root = tempfile::tempdir().expect("a folder for a while");
    let fit = |feed: &FeedConfig, name: &str| {
        let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(8) };
        let mut model = Model::new(3, |params| {
            Sequential(vec![
                Box::new(Linear::new(params, "first", N_COLS, 8, Activation::identity())),
                Box::new(BatchNorm::new(params, "norm", &norm)),
                Box::new(Linear::new(params, "head", 8, 1, Activation::identity())),
            ])
        });
        let mut trainer = Trainer::new(&cpu(2)).feed(feed).batch_rows(25).max_epochs(3).learning_rate(1e-2).seed(11);
        let report = trainer.fit(&mut model, &Binary::new(), &train, &valid)?;
        let path = root.path().join(name);
        model.save(&path)?;
        // The file has the parameters and the running statistics.
        Ok::<_, Error>((report.history, model.predict(&valid)?, std::fs::read(path).expect("the file")))
    };
    let expected = fit(&resident(), "resident")?;
    for chunk_bytes in [0, 2 * 25 * 24, 1 << 30] {
        let found = fit(&streamed(chunk_bytes), &format!("streamed-{chunk_bytes}"))?;
        assert_eq!(found.0, expected.0, "chunks of {chunk_bytes} bytes: losses and metrics");
        assert!(found.1 == expected.1, "chunks of {chunk_bytes} bytes: predictions");
        assert!(found.2 == expected.2, "chunks of {chunk_bytes} bytes: parameters and running statistics");
    }
    Ok(())
}

/// Digest, labels, statistics and checks take one pass, and copying resident rows to the device another.
#[test]
fn rows_are_read_once_before_they_are_streamed() -> Result<(), Error> {
    for (feed, n_passes) in [(streamed(2_000), 1), (resident(), 2)] {
        // More than one block of one thread.
        let [train, valid] = [rows(0, 60_000), rows(60_000, 3_000)].map(Counted::new);
        let Ready { model, params, adam, .. } = Setting::default().ready();
        let trainable = Trainable::new(&model, &params, &adam);
        let device = cpu(2);
        let training = Trainer::new(&device).feed(&feed).prepare(trainable, &Binary::new(), &train, &valid)?;
        for (counted, digest) in [&train, &valid].into_iter().zip(training.row_digests()) {
            assert_eq!(counted.n_gathered.load(Ordering::SeqCst), n_passes * counted.n_rows(), "{feed:?}");
            assert_eq!(digest, RowDigest::of("all", &counted.rows)?, "the digest does not depend on how rows are read");
        }
        let expected = Standardisation::of("train", &train.rows)?;
        assert_eq!((training.scale().mean(), training.scale().inv_std()), (expected.mean(), expected.inv_std()));
    }
    Ok(())
}
