//! Runs whose checkpoints are copied to a server, and resumed from there.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brisk_loader::Rows;
use brisk_nn::tensor::program::{Device, Selection};
use brisk_nn::{Activation, Mlp, MlpConfig};
use brisk_table::{CacheFolder, Remote, RemoteFolder, RemoteOptions};
use brisk_train::{
    BucketSizes, Checkpoint, CheckpointFiles, DataParallel, DataParallelConfig, Error, Fetched, FitReport, Model, Outputs,
    Regression, RunFolder, Trainer, TrainerConfig, Warning, ZeroStage, run_threads,
};
use tempfile::TempDir;

use crate::gpu::cpu;
use crate::replicas::CONFIG;
use crate::run::{Setting, quiet};
use crate::server::{Fault, Request, Server};

fn remote() -> Remote {
    let options = RemoteOptions {
        cache: CacheFolder::Off,
        first_pause: Duration::from_millis(1),
        timeout: Duration::from_secs(5),
        retry_for: Duration::from_secs(10),
        ..RemoteOptions::default()
    };
    Remote::new(options).expect("it has no cache")
}

fn store(server: &Server) -> RemoteFolder {
    // The secret is in no message.
    let url = server.url("/runs/7?sig=s3cret");
    RemoteFolder::at(&url, &remote()).expect("the URL is valid")
}

fn new_folder() -> (TempDir, RunFolder) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = RunFolder::create_at(&dir.path().join("run")).expect("there is room");
    (dir, folder)
}

fn names(server: &Server) -> Vec<String> {
    server.names_of_objects().iter().map(|path| path.strip_prefix("/runs/7/").expect("in the folder").to_owned()).collect()
}

/// Trains until `epochs` epochs are done, from a checkpoint if there is one. The learning rate is so high that not every epoch is
/// the best.
fn train(
    replicas: &DataParallel,
    epochs: usize,
    folder: &RunFolder,
    store: Option<RemoteFolder>,
    from: Option<&Checkpoint>,
) -> Result<FitReport, Error> {
    let x: Vec<f32> = (0..96).map(|row| row as f32 / 48.0 - 1.0).collect();
    let labels = x.iter().map(|x| x * x).collect::<Vec<_>>();
    let rows = Rows::new(x, labels, 1).expect("one column");
    let sizes = MlpConfig { n_inputs: 1, hidden: vec![8], n_outputs: 1, activation: Activation::tanh() };
    let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let config = TrainerConfig { batch_rows: 16, max_epochs: epochs, keep_best: 1, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(&device).config(config).learning_rate(0.05).folder(folder).replicas(replicas);
    if let Some(store) = store {
        trainer = trainer.store(store);
    }
    match from {
        None => trainer.fit(&mut model, &Regression::mse(), &rows, &rows),
        Some(checkpoint) => trainer.resume(&mut model, checkpoint, &Regression::mse(), &rows, &rows),
    }
}

fn by_itself(
    epochs: usize,
    folder: &RunFolder,
    store: Option<RemoteFolder>,
    from: Option<&Checkpoint>,
) -> Result<FitReport, Error> {
    train(DataParallel::single(), epochs, folder, store, from)
}

/// The same with replicas that write a file each; the report of the first.
fn together(n: usize, epochs: usize, folder: &RunFolder, server: &Server, from: Option<&Checkpoint>) -> Result<FitReport, Error> {
    // A bucket for each parameter, so that each replica has some.
    let buckets = BucketSizes { first_bytes: 4, bytes: 4 };
    let (files, zero) = (CheckpointFiles::OneAReplica, ZeroStage::Parameters);
    let config = DataParallelConfig { buckets, files, zero, ..DataParallelConfig::default() };
    let reports = run_threads(n, &config, |replica| train(replica, epochs, folder, Some(store(server)), from))?;
    assert!(reports.iter().all(|report| report.history == reports[0].history), "all have the same history");
    Ok(reports.into_iter().next().expect("there is a replica"))
}

/// A folder with what was fetched from the server.
#[track_caller]
fn fetched(server: &Server, expected: Fetched) -> (TempDir, RunFolder) {
    let (dir, folder) = new_folder();
    assert_eq!(folder.fetch(&store(server)).expect("the server answers"), expected, "what was fetched");
    (dir, folder)
}

#[track_caller]
fn newest(folder: &RunFolder) -> Checkpoint {
    let found = folder.find_checkpoint().expect("all can be read");
    assert!(found.damaged.is_empty(), "{:?}", found.damaged);
    found.newest.expect("there is one").1
}

fn epoch(checkpoint: &Checkpoint) -> usize {
    checkpoint.metadata("epoch", "a number").expect("it is there")
}

#[track_caller]
fn check_same_run(report: &FitReport, whole: &FitReport, from: usize) {
    let values = |report: &FitReport| report.watched_values();
    let (found, expected) = (values(report), values(whole)[from..].to_vec());
    assert_eq!(found.len(), expected.len(), "epochs since epoch {from}");
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs()), "{found:?} differs from {expected:?}");
    assert_eq!((report.n_epochs, report.best_epoch), (whole.n_epochs, whole.best_epoch), "epochs and the best of them");
}

fn is_put_of(request: &Request, name: &str) -> bool {
    request.method == "PUT" && request.path.ends_with(name)
}

fn of_copies(report: &FitReport) -> Vec<&Warning> {
    let is_one = |warning: &&Warning| matches!(warning, Warning::NotCopied { .. } | Warning::CopiesMissing { .. });
    report.warnings.iter().filter(is_one).collect()
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("it is there")
}

#[test]
fn a_run_resumes_from_the_server() -> Result<(), Error> {
    let (_dir, folder) = new_folder();
    let whole = by_itself(5, &folder, None, None)?;

    let server = Server::start();
    let (_dir, folder) = new_folder();
    assert_eq!(folder.fetch(&store(&server))?, Fetched::Nothing);
    let report = by_itself(3, &folder, Some(store(&server)), None)?;
    assert!(of_copies(&report).is_empty(), "{report:?}");
    let kept = folder.best_checkpoints()?;
    let kept = kept[0].file_name().and_then(|name| name.to_str()).expect("one is kept");
    let mut expected = ["best.safetensors", "config.json", kept, "last.safetensors", "metrics.csv", "metrics.json"];
    expected.sort_unstable();
    assert_eq!(names(&server), expected, "older ones are removed");
    assert_eq!(folder.fetch(&store(&server))?, Fetched::NotNewer);

    // On another machine.
    let (_other, elsewhere) = fetched(&server, Fetched::Newer);
    for (here, there) in
        [(folder.last(), elsewhere.last()), (folder.best(), elsewhere.best()), (folder.config(), elsewhere.config())]
    {
        assert!(bytes(&here) == bytes(&there), "{} differs", there.display());
    }
    let report = by_itself(5, &elsewhere, Some(store(&server)), Some(&newest(&elsewhere)))?;
    check_same_run(&report, &whole, 3);
    assert_eq!(bytes(&elsewhere.metrics_csv()).iter().filter(|&&byte| byte == b'\n').count(), 6, "the log has all epochs");

    // Back on the first, whose run is older now.
    assert_eq!(folder.fetch(&store(&server))?, Fetched::Newer);
    assert_eq!(epoch(&newest(&folder)), 5);
    assert!(folder.path().join("earlier-1").join("last.safetensors").is_file(), "it is set aside");
    Ok(())
}

#[test]
fn a_new_run_does_not_replace_another_one() -> Result<(), Error> {
    let server = Server::start();
    let (_dir, folder) = new_folder();
    by_itself(1, &folder, Some(store(&server)), None)?;
    let before = names(&server);
    let (_dir, folder) = new_folder();
    let error = by_itself(1, &folder, Some(store(&server)), None).expect_err("it has a run").to_string();
    assert!(error.contains("/runs/7") && error.contains("fetch") && !error.contains("s3cret"), "{error}");
    assert_eq!(names(&server), before);
    Ok(())
}

#[test]
fn a_server_that_fails_for_a_while_gets_everything() -> Result<(), Error> {
    let server = Server::start();
    server.misbehave(|request, n| (request.method == "PUT" && n % 3 != 0).then_some(Fault::Status(503, "", "busy")));
    let (_dir, folder) = new_folder();
    let report = by_itself(3, &folder, Some(store(&server)), None)?;
    assert!(of_copies(&report).is_empty(), "{report:?}");
    let (_dir, elsewhere) = fetched(&server, Fetched::Newer);
    assert!(bytes(&elsewhere.last()) == bytes(&folder.last()), "the copy differs");
    Ok(())
}

#[test]
fn a_server_that_refuses_does_not_end_a_run() -> Result<(), Error> {
    let server = Server::start();
    // Reading is refused, too.
    server.misbehave(|_, _| Some(Fault::Status(403, "", "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>")));
    let (_dir, folder) = new_folder();
    let report = by_itself(2, &folder, Some(store(&server)), None)?;
    assert_eq!((report.n_epochs, epoch(&newest(&folder))), (2, 2));
    let warnings = of_copies(&report);
    let [.., Warning::CopiesMissing { objects, reason }] = warnings[..] else { panic!("{warnings:?}") };
    assert!(!objects.is_empty() && reason.contains("AccessDenied"), "{warnings:?}");
    assert!(warnings.iter().any(|warning| matches!(warning, Warning::NotCopied { .. })), "{warnings:?}");
    for warning in warnings {
        let said = warning.to_string();
        assert!(said.contains("/runs/7/") && !said.contains("s3cret") && !said.contains('\n'), "{said}");
    }
    let error = folder.fetch(&store(&server)).expect_err("reading is refused").to_string();
    assert!(error.contains("/runs/7/") && error.contains("AccessDenied") && !error.contains("s3cret"), "{error}");
    assert_eq!(epoch(&newest(&folder)), 2, "it is as it was");
    Ok(())
}

#[test]
fn of_several_files_the_index_is_last_and_older_files_are_removed() -> Result<(), Error> {
    let server = Server::start();
    let (_dir, folder) = new_folder();
    let report = together(3, 3, &folder, &server, None)?;
    assert!(of_copies(&report).is_empty(), "{report:?}");
    let requests = server.requests();
    let is_last_file = |request: &&Request| request.path.contains("/last") && request.method != "GET";
    let of_last: Vec<&Request> = requests.iter().filter(is_last_file).collect();
    for (at, index) in of_last.iter().enumerate().filter(|(_, request)| is_put_of(request, "last.safetensors.index.json")) {
        let before = &of_last[at - 3..at];
        assert!(before.iter().all(|request| is_put_of(request, "-of-00003.safetensors")), "{before:?} come before {index:?}");
    }
    let parts = |name: &str| names(&server).iter().filter(|file| file.starts_with(name) && file.contains("-of-")).count();
    assert_eq!(["last-", "best-", "epoch-"].map(parts), [3, 3, 3], "{:?}", names(&server));
    let (_dir, elsewhere) = fetched(&server, Fetched::Newer);
    assert_eq!(newest(&elsewhere).fingerprint(), newest(&folder).fingerprint());
    Ok(())
}

#[test]
fn a_run_that_is_cut_off_leaves_the_previous_checkpoint_whole() -> Result<(), Error> {
    let (_dir, folder) = new_folder();
    let whole = by_itself(4, &folder, None, None)?;

    // As if all replicas were killed in the third epoch, between their files and the index.
    let server = Server::start();
    let mut n_indices = 0;
    server.misbehave(move |request, _| {
        let is_refused = n_indices >= 2 && is_put_of(request, ".index.json");
        n_indices += usize::from(is_put_of(request, "last.safetensors.index.json"));
        is_refused.then_some(Fault::Status(403, "", ""))
    });
    let (_dir, folder) = new_folder();
    let report = together(3, 3, &folder, &server, None)?;
    assert!(matches!(of_copies(&report)[..], [.., Warning::CopiesMissing { .. }]), "{report:?}");
    server.misbehave(|_, _| None);
    let has_parts_of = |generation: usize| names(&server).iter().any(|name| name.starts_with(&format!("last-{generation}-")));
    assert!(has_parts_of(2) && has_parts_of(3), "{:?}", names(&server));

    // Other numbers of replicas resume from the second epoch, and replace no file that the index lists before their own index is
    // there.
    for n in [2, 3] {
        let (_dir, elsewhere) = fetched(&server, Fetched::Newer);
        let checkpoint = newest(&elsewhere);
        let at = epoch(&checkpoint);
        assert_eq!(at, if n == 2 { 2 } else { 3 });
        let report = together(n, at + 1, &elsewhere, &server, Some(&checkpoint))?;
        assert!(of_copies(&report).is_empty(), "{report:?}");
        assert_eq!(report.watched_values().len(), 1);
        let (found, expected) = (report.watched_values()[0], whole.watched_values()[at]);
        assert!((found - expected).abs() <= 1e-5 * expected.abs(), "{n} replicas: {found} differs from {expected}");
    }
    let (_dir, elsewhere) = fetched(&server, Fetched::Newer);
    assert_eq!(epoch(&newest(&elsewhere)), 4);
    Ok(())
}

#[test]
fn a_damaged_newest_checkpoint_in_the_store_is_found_and_the_best_one_used() -> Result<(), Error> {
    for (what, is_of_index) in [("the head of a file", false), ("the index", true)] {
        let server = Server::start();
        let (_dir, folder) = new_folder();
        together(2, 3, &folder, &server, None)?;
        let is_damaged = |name: &&String| match is_of_index {
            true => *name == "last.safetensors.index.json",
            false => name.starts_with("last-") && name.ends_with("-00001-of-00002.safetensors"),
        };
        let name = names(&server).iter().find(is_damaged).expect("it was copied").clone();
        server.put(&format!("/runs/7/{name}"), b"half".to_vec());

        let (_dir, elsewhere) = fetched(&server, Fetched::Newer);
        let found = elsewhere.find_checkpoint()?;
        let (path, best) = found.newest.expect("the best one is intact");
        assert_eq!((path, found.damaged.len()), (elsewhere.best(), 1), "{what}: {:?}", found.damaged);
        assert_eq!(elsewhere.newest_first(), [elsewhere.last(), elsewhere.best()], "{what}: the damaged one is named");

        let (_dir, elsewhere) = new_folder();
        let by_parts = elsewhere.fetch_but_parts(&store(&server))?;
        assert_eq!(by_parts, Fetched::ButParts(LAST_AND_BEST.map(str::to_owned).into()), "{what}");
        let loaded = run_threads(2, &CONFIG, |replica| {
            let (ready, device) = (Setting::default().ready().sharded(replica)?, cpu(1));
            let training = ready.on_replica(&device, replica)?;
            let error = training.load_checkpoint_from(&store(&server), LAST_AND_BEST[0]).expect_err("it is damaged");
            assert!(matches!(error, Error::Damaged { .. }) && error.to_string().contains("/runs/7/last"), "{what}: {error}");
            Ok::<_, Error>(error.to_string())
        })?;
        assert_eq!(loaded[0], loaded[1], "{what}: replicas agree");
        assert!(epoch(&best) <= 3, "{what}");

        for name in names(&server).iter().filter(|name| name.starts_with("best") && name.ends_with(".index.json")) {
            server.put(&format!("/runs/7/{name}"), b"half".to_vec());
        }
        let error = new_folder().1.fetch_but_parts(&store(&server)).expect_err("none is intact").to_string();
        assert!(error.contains("/runs/7/last") && !error.contains("s3cret"), "{what}: {error}");
        let error = new_folder().1.fetch(&store(&server)).expect_err("none is intact").to_string();
        assert!(error.contains("/runs/7/") && !error.contains("s3cret"), "{what}: {error}");
    }
    Ok(())
}

/// Objects to resume from.
const LAST_AND_BEST: [&str; 2] = ["last.safetensors", "best.safetensors"];

/// Parameters that are large compared with heads of files.
fn wide() -> Setting {
    let config = TrainerConfig { max_epochs: 2, ..Setting::default().config };
    Setting { hidden: vec![256, 256, 256], n_rows: 100, n_valid: 64, config, ..Setting::default() }
}

#[test]
fn replicas_request_only_their_parts_and_resume_like_a_run_that_was_not_stopped() -> Result<(), Error> {
    let server = Server::start();
    let (dir, folder) = new_folder();
    let config = DataParallelConfig { files: CheckpointFiles::OneAReplica, zero: ZeroStage::Parameters, ..CONFIG };
    let run = |n: usize, setting: &Setting, folder: &RunFolder, resumes: Option<&str>| {
        let reports = run_threads(n, &config, |replica| {
            let (ready, device) = (setting.ready().sharded(replica)?, cpu(1));
            let training = ready.on_replica(&device, replica)?;
            let mut outputs = Outputs { folder: Some(folder.clone()), store: Some(Arc::new(store(&server))), ..quiet() };
            let Some(object) = resumes else { return training.fit(&mut outputs) };
            let checkpoint = training.load_checkpoint_from(&store(&server), object)?;
            training.resume(&checkpoint, &mut outputs)
        })?;
        Ok::<_, Error>(reports.into_iter().next().expect("there is a replica"))
    };
    let longer = Setting { config: TrainerConfig { max_epochs: 4, ..wide().config }, ..wide() };
    let (_dir, elsewhere) = new_folder();
    let whole = run_threads(2, &DataParallelConfig { zero: ZeroStage::Parameters, ..CONFIG }, |replica| {
        longer.ready().sharded(replica)?.on_replica(&cpu(1), replica)?.fit(&mut quiet())
    })?;
    let report = run(3, &wide(), &folder, None)?;
    assert!(of_copies(&report).is_empty(), "{report:?}");
    assert_eq!(folder.fetch_but_parts(&store(&server))?, Fetched::NotNewer);

    let n_before = server.requests().len();
    assert_eq!(elsewhere.fetch_but_parts(&store(&server))?, Fetched::ButParts(LAST_AND_BEST.map(str::to_owned).into()));
    assert!(elsewhere.metrics_csv().is_file() && !elsewhere.last().exists(), "the log only");
    let report = run(2, &longer, &elsewhere, Some("last.safetensors"))?;
    let read = |request: &Request| {
        let is_read = request.method == "GET" && request.path.contains("/last-") && request.path.ends_with(".safetensors");
        request.range().filter(|_| is_read).map_or(0, |(first, last)| (last - first + 1) as u64)
    };
    let n_read: u64 = server.requests()[n_before..].iter().map(read).sum();
    let files = fs::read_dir(dir.path().join("run")).expect("the folder of the first run").map(|entry| entry.expect("an entry"));
    let is_last = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("last-");
    let n_bytes: u64 = files.filter(is_last).map(|entry| entry.metadata().expect("a file").len()).sum();
    // Heads are read twice, and come with some values; small gaps between parts are read, too.
    let more = n_bytes / 10;
    assert!((n_bytes..n_bytes + more).contains(&n_read), "{n_read} bytes read of {n_bytes}");
    check_same_run(&report, &whole[0], 2);

    server.misbehave(|request, _| request.path.contains("00002-of-").then_some(Fault::Status(403, "", "no")));
    let said = run(2, &longer, &elsewhere, Some("last.safetensors")).expect_err("a file is refused").to_string();
    assert!(said.contains("/runs/7/last-") && said.contains("00002-of-") && !said.contains("s3cret"), "{said}");
    Ok(())
}
