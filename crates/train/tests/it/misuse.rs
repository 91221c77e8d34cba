//! Mistakes that would otherwise train on, or evaluate, something else than intended.

use brisk_loader::{Encoding, Error as LoaderError, Layout, Names, Order, RowBuffers, RowSelection, RowSource, Rows};
use brisk_nn::tensor::program::{Device, Selection};
use brisk_nn::tensor::{DType, Graph, Precision, Reduction, Tensor};
use brisk_nn::{
    Activation, Adam, Augment, Augmented, BatchSource, CategoricalColumn, EmaConfig, Linear, Mlp, MlpConfig, ParameterGroup,
    Schedule,
};
use brisk_train::metrics::Direction;
use brisk_train::{
    Binary, Checkpoint, DataParallelConfig, EarlyStopping, Error, Feed, FeedChoice, FeedConfig, FitReport, Head, Heads,
    LabelledRows, Labels, Model, ResidentRows, ResumeMismatch, RunFolder, Scorer, Standardisation, Step, Task, Trainer, Warning,
    run_threads,
};

pub(crate) fn cpu() -> Device {
    Device::builder().selection(Selection::Cpu).threads(1).open().expect("one thread")
}

/// `n` rows of two columns, labelled by the sign of the first.
pub(crate) fn rows(n: usize) -> Rows {
    let features: Vec<f32> = (0..2 * n).map(|i| (i as f32 * 0.7549).fract() - 0.5).collect();
    let labels: Vec<f32> = features.chunks(2).map(|x| f32::from(x[0] > 0.0)).collect();
    Rows::new(features, labels, 2).expect("a label a row")
}

pub(crate) fn line() -> Model<Linear> {
    Model::new(7, |params| Linear::new(params, "line", 2, 1, Activation::identity()))
}

fn trainer() -> Trainer<'static> {
    Trainer::new(&cpu()).batch_rows(16).max_epochs(2).learning_rate(0.01)
}

fn fit(trainer: &mut Trainer<'_>) -> Result<FitReport, Error> {
    trainer.fit(&mut line(), &Binary::new(), &rows(48), &rows(20))
}

/// Rows with names.
#[derive(Debug, Clone)]
struct Named {
    rows: Rows,
    columns: Vec<String>,
    labels: Vec<String>,
    classes: Vec<String>,
    categories: Vec<(String, Vec<String>)>,
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn named(columns: &[&str], label: &str, classes: &[&str], colours: &[&str]) -> Named {
    let rows = rows(40);
    let codes: Vec<u32> = (0..rows.n_rows()).map(|row| row as u32 % 3).collect();
    Named {
        rows: rows.with_categories(codes, 1).expect("a code a row"),
        columns: texts(columns),
        labels: texts(&[label]),
        classes: texts(classes),
        categories: vec![("colour".to_owned(), texts(colours))],
    }
}

impl RowSource for Named {
    type Feature = f32;
    type Error = LoaderError;

    fn layout(&self) -> Layout {
        self.rows.layout()
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), LoaderError> {
        self.rows.gather(rows, into)
    }

    fn names(&self) -> Names<'_> {
        Names {
            columns: &self.columns,
            labels: &self.labels,
            classes: &self.classes,
            categories: self.categories.iter().map(|(name, values)| (name.as_str(), &values[..])).collect(),
            encoding: Encoding::default(),
        }
    }
}

fn with_colours() -> Model<Mlp> {
    Model::new(7, network)
}

fn network(params: &mut brisk_nn::ParametersBuilder) -> Mlp {
    let sizes = MlpConfig { n_inputs: 2, hidden: vec![4], n_outputs: 1, activation: Activation::relu() };
    Mlp::with_categories(params, &sizes, &[CategoricalColumn::of(3)])
}

#[test]
fn rows_whose_names_disagree_are_refused() -> Result<(), Error> {
    let (train, task) = (named(&["a", "b"], "y", &["no", "yes"], &["red", "blue"]), Binary::new());
    let mut model = with_colours();
    trainer().fit(&mut model, &task, &train, &train)?;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    model.save(&path)?;
    let loaded = Model::load(&path, network)?;

    let others = [
        (named(&["b", "a"], "y", &["no", "yes"], &["red", "blue"]), ["column 0 is `b`", "`a`"]),
        (named(&["a", "b"], "price", &["no", "yes"], &["red", "blue"]), ["label 0 is `price`", "`y`"]),
        (named(&["a", "b"], "y", &["yes", "no"], &["red", "blue"]), ["class 0 is `yes`", "`no`"]),
        (named(&["a", "b"], "y", &["yes"], &["red", "blue"]), ["class 0 is `yes`", "`no`"]),
        (named(&["a", "b"], "y", &["no", "yes"], &["red", "green"]), ["category `colour`, code 2 is `green`", "`blue`"]),
    ];
    for (other, parts) in &others {
        let fitted = trainer().fit(&mut with_colours(), &task, &train, other).map(|_| ());
        let evaluated = [&model, &loaded].map(|model| model.evaluate(&task, other).map(|_| ()));
        for result in [fitted].into_iter().chain(evaluated) {
            let error = result.expect_err("another name");
            let text = error.to_string();
            assert!(matches!(error, Error::RowSet { .. }) && parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }
    assert!(model.predict(&others[0].0).is_err() && model.predict(&others[4].0).is_err(), "features mean something else");
    for (other, _) in &others[1..4] {
        assert_eq!(model.predict(other)?, loaded.predict(&train)?, "labels are ignored");
    }

    // Rows without names, and those that name less.
    let fewer = Named { columns: texts(&["a"]), ..named(&[], "y", &["no"], &["red"]) };
    for accepted in [&fewer, &named(&[], "y", &[], &[])] {
        trainer().fit(&mut with_colours(), &task, &train, accepted)?;
        loaded.evaluate(&task, accepted)?;
    }
    loaded.evaluate(&task, &train.rows)?;
    Ok(())
}

fn step<'a>(device: &Device, feed: &Feed<'a>, model: &Model<Linear>) -> Result<Step<'a>, Error> {
    let (adam, line) = (Adam::new(model.params()), model.module().clone());
    Step::over(device, feed, &Standardisation::none(2)).train(model.params(), &adam, &Schedule::constant(0.01)).record(
        |batch, params| {
            let logits = line.forward(&params[0], &batch.x);
            logits.bce_with_logits(&batch.labels, &batch.weights, Default::default(), 1.0)
        },
    )
}

#[test]
fn rows_on_another_device_are_refused() -> Result<(), Error> {
    let (device, other, rows, model) = (cpu(), cpu(), rows(40), line());
    for choice in [FeedChoice::Resident, FeedChoice::Streamed] {
        let config = FeedConfig { choice, ..FeedConfig::default() };
        let feed = Feed::new(&other, "train", &rows, Order::Sequential, 20, &config)?;
        let error = step(&device, &feed, &model).expect_err("the rows are on the other device");
        assert!(matches!(error, Error::Setting { name: "device", .. }), "{error}");
        let scale = Standardisation::none(2);
        let scorer = Scorer::new(&device, model.module(), model.params(), &feed, &scale, Precision::F32);
        let error = scorer.expect_err("the rows are on the other device");
        assert!(matches!(error, Error::Setting { name: "device", .. }), "{error}");
        step(&other.clone(), &feed, &model)?.run_epoch(0)?;
    }
    Ok(())
}

#[test]
fn a_scorer_writes_its_standardisation() -> Result<(), Error> {
    let (device, rows, mut model) = (cpu(), rows(40), line());
    model.set_standardisation(Standardisation::of("rows", &rows)?);
    let resident = ResidentRows::upload(&device, "rows", &rows)?;
    let scale = Standardisation::of("rows", &rows)?;
    let scorer = Scorer::new(
        &device,
        model.module(),
        model.params(),
        &Feed::of_resident(&resident, Order::Sequential, 10),
        &scale,
        Precision::F32,
    )?;
    assert_eq!(scorer.scores()?, model.on(&device).predict(&rows)?);
    Ok(())
}

#[test]
fn a_standardisation_that_was_not_written_is_no_zero() -> Result<(), Error> {
    let (device, rows, scale) = (cpu(), rows(40), Standardisation::none(2));
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 20, &FeedConfig::default())?;
    let (graph, state) = (Graph::inference("sum"), Graph::state_buffer());
    let sum = feed.record(&graph, &scale, &state).x.sum(..);
    graph.store(&sum, &state, &brisk_nn::tensor::Persistent::new("sum", DType::F32, 1));
    graph.advance(&state);
    let executable = graph.compile(&device)?;
    let error = executable.run(1).expect_err("features would be 0").to_string();
    assert!(error.contains("mean"), "{error}");
    scale.write(&device)?;
    Ok(executable.run(1)?)
}

#[test]
fn steps_in_turn_are_over_one_feed() -> Result<(), Error> {
    let (device, rows, fewer) = (cpu(), rows(40), rows(20));
    let feed = |rows| Feed::new(&device, "train", rows, Order::Shuffled { seed: 1 }, 20, &FeedConfig::default());
    let (one, models) = (feed(&rows)?, [line(), line(), line()]);
    let first = step(&device, &one, &models[0])?;
    let clone = step(&device, &one.clone(), &models[1])?;
    assert_eq!(Step::run_epoch_in_turn(&[&first, &clone], 0)?.len(), 2);
    for other in [feed(&rows)?, feed(&fewer)?] {
        let other = step(&device, &other, &models[2])?;
        let error = Step::run_epoch_in_turn(&[&first, &other], 0).expect_err("another feed");
        assert!(matches!(&error, Error::Setting { name: "steps", found, .. } if found.contains("step 2")), "{error}");
    }
    let error = Step::run_epoch_in_turn(&[&first, &clone, &first], 0).expect_err("twice").to_string();
    assert!(error.contains("step 3") && error.contains("twice"), "{error}");
    Ok(())
}

/// Batches of almost 0.
#[derive(Debug)]
struct Shrink;

impl Augment for Shrink {
    fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented {
        (rows.gather(graph) * 1e-6).into()
    }
}

#[test]
fn a_search_for_a_learning_rate_uses_the_batches_of_the_run() -> Result<(), Error> {
    let (model, rows) = (line(), rows(100));
    let first_loss =
        |trainer: Trainer<'_>| -> Result<f64, Error> { Ok(trainer.find_learning_rate(&model, &Binary::new(), &rows)?.losses[0]) };
    let of_rows = first_loss(trainer())?;
    let scaled = first_loss(trainer().standardisation(Standardisation::new(vec![0.0; 2], vec![1e-6; 2])))?;
    let augmented = first_loss(trainer().augment(Shrink))?;
    // Without its input, the model returns its bias.
    assert!((scaled - augmented).abs() < 1e-3 && (of_rows - scaled).abs() > 1e-2, "{of_rows}, {scaled} and {augmented}");
    Ok(())
}

#[test]
fn labels_that_are_no_classes_are_refused() -> Result<(), Error> {
    let device = cpu();
    let first_epoch = |rows: &Rows, choice, labels| -> Result<(), Error> {
        let config = FeedConfig { choice, labels, ..FeedConfig::default() };
        let feed = Feed::new(&device, "own", rows, Order::Sequential, 4, &config)?;
        let model = line();
        step_of_x(&device, &feed, &model)?.run_epoch(0).map(|_| ())
    };
    for choice in [FeedChoice::Resident, FeedChoice::Streamed] {
        for bad in [-1.0, f32::NAN, 0.5, 4_294_967_296.0] {
            let mut labels = rows(8).labels().to_vec();
            labels[5] = bad;
            let rows = Rows::new(rows(8).features().to_vec(), labels, 2).expect("a label a row");
            let error = first_epoch(&rows, choice, DType::U32).expect_err("no class");
            assert!(matches!(&error, Error::Value { set: "own", row: 5, found, .. } if *found == bad.to_string()), "{error}");
            first_epoch(&rows, choice, DType::F32)?;
        }
    }
    Ok(())
}

/// A step whose loss does not use the labels.
fn step_of_x<'a>(device: &Device, feed: &Feed<'a>, model: &Model<Linear>) -> Result<Step<'a>, Error> {
    let (adam, line) = (Adam::new(model.params()), model.module().clone());
    let builder = Step::over(device, feed, &Standardisation::none(2));
    builder.train(model.params(), &adam, &Schedule::constant(0.01)).record(|batch, params| {
        let y = line.forward(&params[0], &batch.x).squeeze(1);
        batch.mean(&y.multiply(&y))
    })
}

#[test]
fn a_run_that_trains_nothing_is_refused_or_said() -> Result<(), Error> {
    for names in ["haed.", "line."] {
        let groups = |factor: f32| {
            move |params: &brisk_nn::Parameters| {
                let ids = params.ids_where(|entry| entry.name.starts_with(names));
                Adam::new(params).groups(params, &[ParameterGroup::new(ids).lr_factor(factor)])
            }
        };
        let (factor, expected) =
            if names == "line." { (0.0, "none of the 2 parameters") } else { (1.0, "group 1 of 1 without parameters") };
        let error = fit(&mut trainer().try_optimizer(groups(factor))).expect_err("nothing is trained").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let heads = Heads::of([Head::new("a", Binary::new()).weight(0.0)]);
    let error = trainer().fit(&mut line(), &heads, &rows(48), &rows(20)).expect_err("no head is trained");
    assert!(matches!(error, Error::Setting { name: "heads", .. }), "{error}");
    for rate in [0.0, 1e-50] {
        assert_eq!(without_effect(&fit(&mut trainer().learning_rate(rate))?), ["schedule"]);
    }
    assert_eq!(without_effect(&fit(&mut trainer())?), [""; 0]);
    Ok(())
}

/// The loss of rows whose mean is taken, whatever is asked for.
#[derive(Debug)]
struct AlwaysMean;

impl Task for AlwaysMean {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }
    fn n_outputs(&self) -> usize {
        1
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        outputs.squeeze(1).mse_loss(&rows.labels, &rows.weights, Reduction::Mean)
    }
}

#[test]
fn a_loss_follows_the_reduction() {
    let error = trainer().fit(&mut line(), &AlwaysMean, &rows(48), &rows(20)).expect_err("sums are means").to_string();
    assert!(error.contains("AlwaysMean") && error.contains("`LabelledRows::reduction`"), "{error}");
}

#[test]
fn sets_of_different_encodings_are_refused() -> Result<(), Error> {
    let raw = || rows(48);
    let encoded = |inputs, labels| rows(48).with_encoding(Encoding { inputs, labels });
    let task = Binary::new();
    let mut model = line();
    trainer().fit(&mut model, &task, &encoded(Some(1), Some(2)), &encoded(Some(1), Some(2)))?;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    model.save(&path)?;
    let loaded = Model::load(&path, |params| Linear::new(params, "line", 2, 1, Activation::identity()))?;
    for (other, expected) in [
        (raw(), "features that were not converted"),
        (encoded(Some(3), Some(2)), "features that were converted in another way"),
        (encoded(Some(1), None), "labels that were not converted"),
        (encoded(Some(1), Some(3)), "labels that were converted in another way"),
    ] {
        let own = encoded(Some(1), Some(2));
        let errors = [
            fit_on(&own, &other).err(),
            fit_on(&other, &own).err(),
            model.evaluate(&task, &other).err(),
            loaded.evaluate(&task, &other).err(),
            trainer()
                .fit(
                    &mut Model::load(&path, |params| Linear::new(params, "line", 2, 1, Activation::identity()))?,
                    &task,
                    &other,
                    &other,
                )
                .err(),
        ];
        for error in errors {
            let error = error.expect("they mean something else").to_string();
            assert!(error.contains(expected) || error.contains("converted"), "{error}");
        }
        let is_of_labels = expected.starts_with("labels");
        assert_eq!(loaded.predict(&other).is_ok(), is_of_labels, "{expected}");
    }
    // Of a file that does not say so, nothing is known.
    fit_on(&raw(), &raw())?;
    line().evaluate(&task, &encoded(Some(1), None))?;
    Ok(())
}

fn fit_on(train: &Rows, valid: &Rows) -> Result<FitReport, Error> {
    trainer().fit(&mut line(), &Binary::new(), train, valid)
}

#[test]
fn tensors_of_another_model_are_named() -> Result<(), Error> {
    let network = |hidden: &'static [usize]| {
        move |params: &mut brisk_nn::ParametersBuilder| {
            let hidden = hidden.to_vec();
            Mlp::new(params, &MlpConfig { n_inputs: 2, hidden, n_outputs: 1, activation: Activation::relu() })
        }
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    // The layers of the smaller one are the first ones of the larger one.
    let [small, large] = [network(&[1]), network(&[1, 1])];
    for (of_file, of_model, found) in [(small, large, "missing"), (large, small, "one that the model does not have")] {
        let run = RunFolder::create_at(&folder.path().join(found))?;
        let mut model = Model::new(7, of_file);
        trainer().folder(&run).fit(&mut model, &Binary::new(), &rows(48), &rows(20))?;
        model.save(&path)?;
        for file in [path.clone(), run.last(), run.best()] {
            Model::load(&file, of_file)?;
            let error = Model::load(&file, of_model).map(drop).expect_err("it is another model").to_string();
            for part in ["`layers.2.weight`", "layers.2.bias", found] {
                assert!(error.contains(part), "`{part}` in `{error}`");
            }
        }
        model.save_pytorch(&path)?;
        assert!(Model::load_pytorch(&path, of_model).is_err(), "as with strict=True");
    }
    Ok(())
}

#[test]
fn checkpoints_say_what_rows_they_are_of() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let run = RunFolder::create_at(&folder.path().join("run"))?;
    let train = |columns: &[&str]| named(columns, "y", &["no", "yes"], &["red", "blue"]);
    let task = Binary::new();
    let own = train(&["a", "b"]);
    let mut bf16 = trainer().precision(Precision::Bf16).folder(&run);
    bf16.fit(&mut with_colours(), &task, &own, &own)?;
    let checkpoint = Checkpoint::load(run.last())?;
    let loaded = Model::load(run.last(), network)?;
    let error = loaded.evaluate(&task, &train(&["b", "a"])).expect_err("other columns").to_string();
    assert!(error.contains("column 0 is `b`"), "{error}");
    // It predicts in the precision of its training.
    let path = folder.path().join("model.safetensors");
    loaded.save(&path)?;
    assert!(Checkpoint::load(&path)?.all_metadata().any(|entry| entry == ("precision", "bf16")), "it is known");

    let resumed = |columns: &[&str], allowed: &[ResumeMismatch]| {
        let rows = train(columns);
        let mut trainer = trainer().precision(Precision::Bf16).max_epochs(3).resume_anyway(allowed);
        trainer.resume(&mut with_colours(), &checkpoint, &task, &rows, &rows)
    };
    let error = resumed(&["a", "c"], &[]).expect_err("another column").to_string();
    assert!(error.contains("name of column 1: b in the checkpoint, c here"), "{error}");
    resumed(&["a", "c"], &[ResumeMismatch::Rows])?;
    resumed(&["a", "b"], &[])?;
    Ok(())
}

#[test]
fn a_function_of_the_rate_is_the_same_when_a_run_resumes() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let run = RunFolder::create_at(&folder.path().join("run"))?;
    let falling = |from: f64| Schedule::from_fn(move |step, _| if step < 3 { 0.01 } else { from / step as f64 });
    let epochs = |n_epochs: usize, schedule: Schedule| {
        trainer().configure(|config| config.extend = true).max_epochs(n_epochs).schedule(schedule)
    };
    epochs(2, falling(0.1)).folder(&run).fit(&mut line(), &Binary::new(), &rows(48), &rows(20))?;
    let checkpoint = Checkpoint::load(run.last())?;
    let resume = |schedule: Schedule, n_epochs| {
        epochs(n_epochs, schedule).resume(&mut line(), &checkpoint, &Binary::new(), &rows(48), &rows(20))
    };
    for schedule in [falling(0.2), falling(0.2).warmup(0)] {
        let error = resume(schedule, 3).expect_err("another function").to_string();
        assert!(error.contains("learning rate of step 3: 0.033333335 in the checkpoint, 0.06666667 here"), "{error}");
    }
    resume(falling(0.1), 3)?;
    Ok(())
}

fn without_effect(report: &FitReport) -> Vec<&'static str> {
    let settings = report.warnings.iter().filter_map(|warning| match warning {
        Warning::NoEffect { setting, .. } => Some(*setting),
        _ => None,
    });
    settings.collect()
}

#[test]
fn settings_without_effect_are_said() -> Result<(), Error> {
    // Two epochs of three steps.
    for (ema, setting) in [
        (EmaConfig::new(0.9).first_step(7).from_initial(), "ema.first_step"),
        (EmaConfig::new(0.9).every(7), "ema.every"),
        (EmaConfig::new(1.0), "ema.decay"),
    ] {
        assert_eq!(without_effect(&fit(&mut trainer().ema(ema))?), [setting]);
    }
    assert_eq!(without_effect(&fit(&mut trainer().ema(EmaConfig::new(0.9).first_step(6)))?), [""; 0]);
    let mut config = brisk_train::TrainerConfig { accumulate: 4, keep_best: 2, checkpoint_every: 1, ..Default::default() };
    (config.batch_rows, config.max_epochs) = (16, 2);
    assert_eq!(without_effect(&fit(&mut trainer().config(config.clone()))?), ["accumulate", "keep_best", "checkpoint_every"]);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = RunFolder::create_at(&folder.path().join("run"))?;
    config.accumulate = 3;
    assert_eq!(without_effect(&fit(&mut trainer().config(config).folder(&folder))?), [""; 0]);
    let names = ["no".to_owned(), "yes".to_owned()];
    let trainer = || trainer().class_names(&names).report_panels(|_| Ok(Vec::new())).report_settings([("a".into(), "1".into())]);
    let trainer = || trainer().resume_anyway(&[ResumeMismatch::Rows]);
    assert_eq!(without_effect(&fit(&mut trainer())?), ["class_names", "report_panels", "report_settings", "resume_anyway"]);
    let mut reported = trainer().report(folder.path().join("report.html")).resume_anyway(&ResumeMismatch::ALL);
    let checkpoint = Checkpoint::load(folder.last())?;
    let resumed = reported.resume(&mut line(), &checkpoint, &Binary::new(), &rows(48), &rows(20))?;
    assert_eq!(without_effect(&resumed), [""; 0]);
    Ok(())
}

#[test]
fn early_stopping_starts_without_earlier_checks() -> Result<(), Error> {
    let mut early_stopping = EarlyStopping::new(Direction::Maximize).patience(2);
    early_stopping.check(2.0);
    early_stopping.check(1.0);
    early_stopping.check(1.0);
    let report = fit(&mut trainer().early_stopping(early_stopping))?;
    assert_eq!(report.n_epochs, 2, "{:?}", report.ended);
    Ok(())
}

#[test]
fn a_fast_run_writes_no_report() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let config = brisk_train::TrainerConfig { min_epochs: 2, ..Default::default() };
    let report = fit(&mut trainer().config(config).report(&path).fast_dev_run(1))?;
    assert_eq!((report.n_epochs, path.exists()), (1, false));
    Ok(())
}

#[test]
fn replicas_with_different_functions_of_the_rate_are_refused() {
    let result = run_threads(2, &DataParallelConfig::default(), |replica| {
        let rate = [1e-3, 0.1][replica.rank()];
        fit(&mut trainer().schedule(Schedule::from_fn(move |_, _| rate)).replicas(replica)).map(|_| ())
    });
    let error = result.expect_err("they would train different models").to_string();
    assert!(error.contains("learning rates"), "{error}");
}
