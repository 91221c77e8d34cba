//! Training with the recipes, in f32 and with matrix products in f16 and bf16. The first losses must match PyTorch's.

use std::ops::Range;

use anyhow::{Context, Result, anyhow, bail, ensure};
use brisk_loader::{Order, RowBuffers, RowSelection, RowSource};
use brisk_nn::GradScalerConfig;
use brisk_nn::tensor::{CrossEntropyOptions, DType, Graph, Persistent, Precision, Reduction};
use brisk_program::{Device, DeviceKind};
use brisk_train::{BatchTensors, Checkpoint, CountFrom, Feed, FeedConfig, Model, Standardisation, Step};
use brisk_vision::{AugmentedImages, Network, Rates, Recipe};

use super::images::{self, IMAGE, LEN, N_CLASSES};
use crate::command_line::Cifar10;
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

/// A recipe at a size.
struct Case {
    name: &'static str,
    /// The peer's name for the recipe.
    peer: &'static str,
    recipe: Recipe,
    /// The number of batches of an epoch, which are timed and whose losses are compared.
    n_batches: usize,
    /// The target ratio to PyTorch's faster layout.
    target: Option<f64>,
}

/// The number of images whose predicted classes are compared after the batches of an epoch.
const N_TEST: usize = 500;

pub(super) fn run(options: &Options, suite: &Cifar10) -> Result<Table> {
    let is_smoke = options.scale == Scale::Smoke;
    // A software adapter is compared with PyTorch's results, not with its speed.
    let has_target = options.device.info().kind != DeviceKind::Software;
    let case =
        |name, peer, recipe, n_batches, target| Case { name, peer, recipe, n_batches, target: has_target.then_some(target) };
    let mut cases = if is_smoke {
        vec![
            case("Muon, widths 8 to 16", "muon", Recipe::muon().narrowed(&[8, 8, 16], 32), 3, 1.2),
            case("Page, widths 8 to 16", "page", Recipe::page().narrowed(&[8, 8, 8, 16], 32), 3, 1.2),
        ]
    } else {
        vec![
            case("Muon, widths 16, 32, 64, batch 500", "muon", Recipe::muon().narrow(), 20, 1.2),
            case("Page, widths 8, 16, 32, 64, batch 128", "page", Recipe::page().narrow(), 20, 1.2),
        ]
    };
    match options.device.info().kind {
        // The unchanged recipes.
        DeviceKind::Gpu if suite.full => cases.extend([
            case("Muon, widths 64, 256, 256, batch 2000", "muon", Recipe::muon(), 6, 1.0),
            case("Page, widths 64, 128, 256, 512, batch 512", "page", Recipe::page(), 6, 1.0),
        ]),
        _ if suite.full => {
            let full = Recipe::page().with_batch_rows(64);
            cases.push(case("Page, widths 64, 128, 256, 512, batch 64", "page", full, 6, 1.0));
        }
        _ => {}
    }
    let mut rows = Vec::new();
    for case in &cases {
        rows.extend(measure(options, case, suite.precision.into())?);
    }
    Ok(Table { device: options.device.info().clone(), rows })
}

/// Checks the losses in all precisions, and times training in `precision`.
fn measure(options: &Options, case: &Case, precision: Precision) -> Result<Vec<Row>> {
    let device = &options.device;
    let Case { recipe, n_batches, .. } = case;
    let n_batches = *n_batches;
    let batch = recipe.batch_rows;
    let (train, test) = (images::drawn(n_batches * batch, 1), images::drawn(N_TEST.min(4 * batch), 2));
    let scale = Standardisation::of("train", &train)?.per_channel(IMAGE[2])?;
    scale.write(device)?;

    let first = scale.rows("train", &train, 0..train.n_rows())?;
    let config = FeedConfig { labels: DType::U32, ..FeedConfig::default() };
    let augmentation = AugmentedImages { image: IMAGE, augmentation: recipe.augmentation };
    let feed = Feed::new(device, "train", &train, Order::Shuffled { seed: 5 }, batch, &config)?;
    let feed = feed.augmented(std::rc::Rc::new(augmentation));
    let n_rows = train.n_rows();
    let recorded = |recipe, precision| record(device, recipe, &feed, &scale, &first, precision);

    let n_steps = recipe.n_steps(n_rows);
    let Some(python) = &options.peers else {
        let (_, step) = recorded(recipe, precision)?;
        let losses = step.run_epoch(0)?.batches;
        ensure!(losses.last() < losses.first(), "the losses of the first steps are {losses:?}: there is nothing to time");
        let figures = (0..options.n_rounds).map(|_| images_per_second(&step, n_rows)).collect::<Result<_>>()?;
        return Ok(vec![row(case, precision, figures, None)]);
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run.safetensors");
    write_run(&path, device, &feed, &scale, &recorded(recipe, Precision::F32)?.0, (&test, n_batches))?;
    // Starts PyTorch's side and reads the losses of its first steps, which it prints first.
    let is_gpu = device.info().kind == DeviceKind::Gpu;
    let start_with = |recipe: &Recipe| {
        let n_threads = std::thread::available_parallelism()?.get();
        let place = if is_gpu { "gpu" } else { "cpu" };
        let mut words = vec![case.peer.to_owned(), batch.to_string(), place.to_owned(), precision.to_string()];
        words.extend([n_threads.to_string(), path.display().to_string(), n_steps.to_string()]);
        words.extend(rates(recipe, n_rows));
        let mut torch = Peer::python(python, "benches/peers/cifar10.py", &words)?;
        let place = torch.line()?;
        let [exact, channels_last, default_layout] = [(); 3].map(|()| Trace::read(&torch.line()));
        anyhow::Ok((torch, exact?, [channels_last?, default_layout?], place))
    };
    let start = || start_with(recipe);
    let slow = Recipe { rates: slowed(recipe.rates), ..recipe.clone() };
    let (_, slow_exact, ..) = start_with(&slow)?;
    let (mut torch, exact, in_f32, place) = start()?;
    let mut timed = None;
    for checked in [Precision::F32, Precision::F16, Precision::Bf16] {
        let traced = |recipe| {
            let (model, step) = recorded(recipe, checked)?;
            let losses = step.run_epoch(0)?.batches;
            anyhow::Ok((step, Trace { losses, accuracy: accuracy(device, &model, &scale, &test)? }))
        };
        check_slow(checked, slow.rates, &traced(&slow)?.1, &slow_exact)?;
        let (step, ours) = traced(recipe)?;
        match checked {
            Precision::F32 => check(&ours, &exact, &in_f32)?,
            _ => check_in_16_bits(checked, &ours, &exact, &in_f32)?,
        }
        if checked == precision {
            timed = Some(step);
        }
    }
    let step = timed.context("one of the precisions that are checked")?;
    let mut ours = Vec::new();
    let (mut channels_last, mut default_layout) = (Vec::new(), Vec::new());
    for round in 0..=options.n_rounds {
        // A new process for each round: the placement of its memory makes PyTorch a fifth faster or slower.
        if round > 1 {
            drop(torch);
            (torch, ..) = start()?;
        }
        let figure = images_per_second(&step, n_rows)?;
        let figures = torch.ask(&n_batches.to_string())?;
        let [of_last, of_default] = figures[..] else { bail!("PyTorch's side has two figures") };
        if round > 0 {
            ours.push(figure);
            channels_last.push(batch as f64 / of_last);
            default_layout.push(batch as f64 / of_default);
        }
    }
    let torch = if is_gpu { format!("PyTorch on {place}") } else { "PyTorch".to_owned() };
    let reference = |layout: &str, figures| Some((format!("{torch}, {layout}"), figures));
    Ok(vec![
        row(case, precision, ours.clone(), reference("channels last", channels_last)),
        row(case, precision, ours, reference("default layout", default_layout)),
    ])
}

/// A network with the recipe's initial values, and the step that trains it on the batches of `feed`.
fn record<'a>(
    device: &Device,
    recipe: &Recipe,
    feed: &Feed<'a>,
    scale: &Standardisation,
    first: &[f32],
    precision: Precision,
) -> Result<(Model<Network>, Step<'a>)> {
    let mut model = Model::new(3, |params| recipe.build(params));
    let network = model.module().clone();
    recipe.initialise(&network, model.params_mut(), device, first)?;
    let params = model.params();
    params.write_initial(device)?;
    let n_rows = feed.n_rows();
    let optimizer = recipe.optimizer(&network, params, n_rows)?;
    let smoothing = recipe.label_smoothing;
    let step = Step::over(device, feed, scale)
        .train(params, &*optimizer, &recipe.schedule(n_rows))
        .epochs(recipe.n_epochs.ceil() as usize)
        .precision(precision)
        // Low enough that no step of such a short run is skipped.
        .scaler(GradScalerConfig { init_scale: 128.0, ..GradScalerConfig::default() })
        .record(|BatchTensors { x, labels, weights, .. }, params| {
            let options =
                CrossEntropyOptions { label_smoothing: smoothing, reduction: Reduction::Mean, ..CrossEntropyOptions::default() };
            brisk_nn::Module::forward(&network, &params[0], x).cross_entropy(labels, weights, options)
        })?;
    Ok((model, step))
}

fn row(case: &Case, precision: Precision, ours: Vec<f64>, reference: Option<(String, Vec<f64>)>) -> Row {
    let precision = if precision == Precision::F32 { String::new() } else { format!(", {precision}") };
    Row {
        suite: "cifar10",
        case: format!("training, {}{precision}", case.name),
        ours,
        unit: "images/s",
        target: reference.as_ref().and(case.target),
        reference,
        better: Better::More,
    }
}

fn images_per_second(step: &Step<'_>, n_rows: usize) -> Result<f64> {
    let start = std::time::Instant::now();
    step.run_epoch(0)?;
    Ok(n_rows as f64 / start.elapsed().as_secs_f64())
}

/// A tenth of the rates, with which rounding errors grow little from step to step.
fn slowed(rates: Rates) -> Rates {
    const FACTOR: f64 = 0.1;
    match rates {
        Rates::Muon { filters, head, biases, decay } => {
            Rates::Muon { filters: FACTOR * filters, head: FACTOR * head, biases: FACTOR * biases, decay }
        }
        Rates::Page { peak, peak_epoch, floor, floor_epochs, weight_decay, bias_factor, is_averaged } => {
            let [peak, floor] = [peak, floor].map(|rate| FACTOR * rate);
            Rates::Page { peak, peak_epoch, floor, floor_epochs, weight_decay, bias_factor, is_averaged }
        }
        other => other,
    }
}

/// At [`slowed`] rates, all losses, and the test accuracy after them, must match PyTorch's in f64 within rounding errors.
fn check_slow(precision: Precision, rates: Rates, ours: &Trace, exact: &Trace) -> Result<()> {
    let tolerance = match (rates, precision) {
        // Muon amplifies small differences of gradients at any rate: PyTorch's losses in f32 are up to 0.3 % from those in f64.
        (Rates::Muon { .. }, Precision::F32) => 5e-3,
        (Rates::Muon { .. }, _) => 1.5e-2,
        (_, Precision::F32) => 5e-4,
        _ => 1e-3,
    };
    let n_steps = exact.losses.len();
    ensure!(
        ours.losses.len() == n_steps && ours.difference(exact, 0..n_steps) < tolerance,
        "at a tenth of the rates the losses in {precision:?} are {:?}, but PyTorch's in f64 are {:?}: there is nothing to time",
        ours.losses,
        exact.losses
    );
    ensure!(
        (ours.accuracy - exact.accuracy).abs() < 0.03,
        "at a tenth of the rates the test accuracy in {precision:?} is {}, but PyTorch's in f64 is {}: there is nothing to time",
        ours.accuracy,
        exact.accuracy
    );
    Ok(())
}

/// The losses of the first steps, and the test accuracy after them.
#[derive(Debug)]
struct Trace {
    losses: Vec<f32>,
    accuracy: f32,
}

impl Trace {
    fn read(line: &Result<String>) -> Result<Self> {
        let line = line.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        let figures: Vec<f32> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [losses @ .., accuracy] = figures.as_slice() else { bail!("PyTorch's side has no losses") };
        Ok(Self { losses: losses.to_vec(), accuracy: *accuracy })
    }

    /// The largest relative difference between the losses of these steps and another trace's; NaN if a loss is NaN.
    fn difference(&self, other: &Self, steps: Range<usize>) -> f32 {
        let pairs = self.losses.iter().zip(&other.losses).take(steps.end).skip(steps.start);
        // Not `f32::max`, which ignores NaN.
        pairs.map(|(a, b)| ((a - b) / b).abs()).max_by(f32::total_cmp).unwrap_or(0.0)
    }
}

/// At the recipe's rates, rounding errors grow from step to step. Therefore only the first losses must match PyTorch's in f64
/// within rounding errors; all 20 must be near those of PyTorch in f32, whose two layouts differ by up to 15 %. Only
/// [`check_slow`] compares the test accuracy after them: here it differs by 10 points between the layouts.
fn check(ours: &Trace, exact: &Trace, in_f32: &[Trace]) -> Result<()> {
    ensure!(
        exact.difference(ours, 0..4) < 1e-3,
        "the first losses are {:?}, but PyTorch's in f64 are {:?}: there is nothing to time",
        ours.losses,
        exact.losses
    );
    let is_whole = in_f32.iter().all(|theirs| theirs.losses.len() == ours.losses.len());
    let differences = in_f32.iter().map(|theirs| ours.difference(theirs, 0..ours.losses.len()));
    ensure!(
        is_whole && differences.fold(f32::INFINITY, f32::min) < 0.25,
        "the losses are {:?}, but PyTorch's are {in_f32:?}: there is nothing to time",
        ours.losses
    );
    Ok(())
}

/// With matrix products in 16 bits, the first losses must match PyTorch's in f64 within the rounding of the type, and the later
/// ones must be near those of PyTorch in f32.
fn check_in_16_bits(precision: Precision, ours: &Trace, exact: &Trace, in_f32: &[Trace]) -> Result<()> {
    let tolerance = if precision == Precision::F16 { 3e-2 } else { 5e-2 };
    ensure!(
        exact.difference(ours, 0..4) < tolerance,
        "the first losses in {precision:?} are {:?}, but PyTorch's in f64 are {:?}: there is nothing to time",
        ours.losses,
        exact.losses
    );
    let differences = in_f32.iter().map(|theirs| ours.difference(theirs, 0..ours.losses.len()));
    ensure!(
        differences.fold(f32::INFINITY, f32::min) < 0.25,
        "the losses in {precision:?} are {:?}, but PyTorch's in f32 are {in_f32:?}: there is nothing to time",
        ours.losses
    );
    Ok(())
}

/// The recipe's rates as arguments of the peer.
fn rates(recipe: &Recipe, n_rows: usize) -> Vec<String> {
    let words: Vec<(&str, f64)> = match recipe.rates {
        Rates::Muon { filters, head, biases, decay } => {
            vec![
                ("filters", filters),
                ("head", head),
                ("biases", biases),
                ("decay", decay),
                ("whitening_steps", recipe.whitening_steps(n_rows) as f64),
            ]
        }
        Rates::Page { peak, peak_epoch, floor, floor_epochs, weight_decay, bias_factor, .. } => vec![
            ("peak", peak),
            ("peak_epoch", peak_epoch),
            ("floor", floor),
            ("floor_epochs", floor_epochs),
            ("decay", f64::from(weight_decay)),
            ("bias_factor", f64::from(bias_factor)),
            ("epoch_steps", recipe.epoch_steps(n_rows) as f64),
        ],
        _ => Vec::new(),
    };
    words.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Writes the inputs of the peer: initial parameters, the batches as augmented here, and test images.
fn write_run<M: brisk_nn::Module, S: RowSource<Feature = u8>>(
    path: &std::path::Path,
    device: &Device,
    feed: &Feed<'_>,
    scale: &Standardisation,
    model: &Model<M>,
    (test, n_batches): (&S, usize),
) -> Result<()> {
    let batch = feed.batch_rows();
    let graph = Graph::inference("batches");
    let state = Graph::state_buffer();
    let BatchTensors { x, labels, .. } = feed.record(&graph, scale, &state);
    let images = Persistent::new("images", DType::F32, n_batches * batch * LEN);
    let classes = Persistent::new("labels", DType::F32, n_batches * batch);
    graph.store(&x, &state, &images);
    // Labels as floats, which can be stored.
    let numbers = graph.constant("classes", &(0..N_CLASSES).map(|class| class as f32).collect::<Vec<_>>(), &[N_CLASSES, 1]);
    graph.store(&numbers.gather_rows(&labels), &state, &classes);
    graph.advance(&state);
    let executable = graph.compile(device)?;
    feed.open(device, |open| {
        open.for_each_range(0, CountFrom::Epoch, n_batches, |turn| {
            executable.run(turn.n_batches)?;
            Ok(std::ops::ControlFlow::Continue(()))
        })
    })?;
    let mut run = Checkpoint::new();
    let [height, width, channels] = IMAGE;
    let params = model.params();
    for id in params.ids_where(|_| true) {
        let entry = params.entry(id);
        run.insert(&entry.name, &entry.shape, params.initial_of(id))?;
    }
    for buffer in params.buffers() {
        run.insert(buffer.name(), buffer.shape(), buffer.initial())?;
    }
    let mut run = run.ohwi_to_oihw();
    run.insert("images", &[n_batches, batch, height, width, channels], device.read::<f32>(&images)?)?;
    run.insert("labels", &[n_batches, batch], device.read::<f32>(&classes)?)?;
    let n_test = test.n_rows();
    run.insert("test_images", &[n_test, height, width, channels], scale.rows("test", test, 0..n_test)?)?;
    run.insert("test_labels", &[n_test], labels_of(test)?)?;
    run.save(path)?;
    Ok(())
}

fn labels_of<S: RowSource<Feature = u8>>(rows: &S) -> Result<Vec<f32>> {
    let n = rows.n_rows();
    let (mut pixels, mut labels) = (vec![0; n * LEN], vec![0.0; n]);
    rows.gather(RowSelection::Range(0..n), RowBuffers::new(&mut pixels, &mut labels))?;
    Ok(labels)
}

/// The fraction of the test images whose class is predicted correctly with the parameters on the device.
fn accuracy<M: brisk_nn::Module, S: RowSource<Feature = u8>>(
    device: &Device,
    model: &Model<M>,
    scale: &Standardisation,
    test: &S,
) -> Result<f32> {
    let n = test.n_rows();
    let graph = Graph::inference("accuracy");
    let x = graph.constant("x", &scale.rows("test", test, 0..n)?, &[n, LEN]);
    let logits = model.module().forward(&model.params().bind(&graph), &x);
    let (state, all) = (Graph::state_buffer(), Persistent::new("logits", DType::F32, n * N_CLASSES));
    graph.store(&logits, &state, &all);
    graph.compile(device)?.run(1)?;
    let logits: Vec<f32> = device.read(&all)?;
    let predicted = logits.chunks_exact(N_CLASSES).map(|row| (0..N_CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b])));
    let labels = labels_of(test)?;
    let n_correct = predicted.zip(&labels).filter(|(class, label)| class.is_some_and(|class| class as f32 == **label)).count();
    Ok(n_correct as f32 / n as f32)
}
