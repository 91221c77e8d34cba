//! Logs of every batch and the report, over a run that is interrupted and resumed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use brisk_train::{
    BatchesEnd, Binary, Callback, Checkpoint, Ended, Error, GradientClip, Outputs, ReportFile, RunFolder, RunView, StepEnd,
    StepLog, StopFlag, TensorBoard, TrainerConfig, ValidationInterval, report,
};

use crate::event_files::scalars;
use crate::gpu::cpu;
use crate::run::{Setting, into_folder, quiet};

/// The number of batches of an epoch of the setting.
const N_BATCHES: usize = 8;

fn logging<'a>(outputs: Outputs<'a>, folder: &Path) -> Outputs<'a> {
    let mut outputs = outputs;
    outputs.callbacks.push(Box::new(StepLog::new(folder.join("logs/batches.csv"))));
    outputs.callbacks.push(Box::new(StepLog::new(folder.join("logs/batches.jsonl"))));
    outputs.callbacks.push(Box::new(TensorBoard::new(folder.join("events"))));
    outputs.callbacks.push(Box::new(ReportFile::new(folder.join("report.html"), &Binary::new(), Vec::new())));
    outputs
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("logs").join(name)).expect("a log")
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a log");
    file.write_all(text.as_bytes()).expect("written");
}

#[test]
fn a_log_has_each_batch_once_although_the_run_was_interrupted() -> Result<(), Error> {
    let (setting, device) = (Setting::default(), cpu(1));
    let [whole, parts] = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
    let report = setting.ready().trainer(&device)?.fit(&mut logging(quiet(), whole.path()))?;
    let csv = read(whole.path(), "batches.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("batch,epoch,loss,learning_rate,waited_s,waited_for", 1 + 3 * N_BATCHES), "{csv}");
    let losses =
        lines[1..=N_BATCHES].iter().map(|line| line.split(',').nth(2).and_then(|x| x.parse::<f64>().ok()).expect("a loss"));
    // The last batch of 500 rows has 52 instead of 64.
    let first_epoch: f64 = losses.zip([64.0; N_BATCHES - 1].into_iter().chain([52.0])).map(|(loss, n_rows)| loss * n_rows).sum();
    assert!((first_epoch / 500.0 - report.history[0].train_loss()).abs() < 1e-6, "the mean of the epoch");
    assert!(lines[9].starts_with("8,2,") && lines[9].ends_with(",0.003,,"), "{}", lines[9]);
    let json = read(whole.path(), "batches.jsonl");
    for (line, json) in lines[1..].iter().zip(json.lines()) {
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let number = |name: &str| value[name].as_f64().expect("a number") as f32;
        let found = ["batch", "epoch", "loss", "learning_rate"].map(|name| number(name).to_string()).join(",");
        assert_eq!(found + ",,", *line, "the same values");
        assert!(value["waited_s"].is_null() && value["waited_for"].is_null(), "a single replica: {json}");
    }

    let (outputs, folder) = into_folder(parts.path());
    let config = TrainerConfig { max_steps: Some(12), ..setting.config.clone() };
    let short = Setting { config, ..setting.clone() }.ready();
    assert_eq!(short.trainer(&device)?.fit(&mut logging(outputs, parts.path()))?.ended, Ended::MaxSteps, "within epoch 2");
    // Batches after the checkpoint, the last of which was being written when the process was killed.
    append(&parts.path().join("logs/batches.csv"), "12,2,9,9\n13,2,9.");
    append(&parts.path().join("logs/batches.jsonl"), "{\"batch\":12,\"epoch\":2,\"loss\":9,\"learning_rate\":9}\n{\"bat");
    let last = Checkpoint::load(folder.last())?;
    setting.ready().trainer(&device)?.resume(&last, &mut logging(quiet(), parts.path()))?;
    for name in ["batches.csv", "batches.jsonl"] {
        assert_eq!(read(parts.path(), name), read(whole.path(), name), "{name}");
    }
    let n_event_files = fs::read_dir(parts.path().join("events")).expect("a folder").count();
    assert_eq!(n_event_files, 2, "one of each part of the run");

    // A run from the start replaces the log.
    setting.ready().trainer(&device)?.fit(&mut logging(quiet(), parts.path()))?;
    assert_eq!(read(parts.path(), "batches.csv"), csv, "once");
    Ok(())
}

#[test]
fn event_files_have_the_metrics_by_set() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    Setting::default().ready().trainer(&cpu(1))?.fit(&mut logging(quiet(), folder.path()))?;
    let file = fs::read_dir(folder.path().join("events")).expect("a folder").next().expect("a file").expect("a file").path();
    let bytes = fs::read(file).expect("an event file");
    let count = |tag: &str| {
        // A protobuf string: its field, its length, its bytes.
        let field = [&[10, tag.len() as u8], tag.as_bytes()].concat();
        bytes.windows(field.len()).filter(|window| *window == field).count()
    };
    let counts = ["loss/batch", "learning_rate", "loss/train", "loss/valid", "auc/valid"].map(count);
    assert_eq!(counts, [3 * N_BATCHES, 3 * N_BATCHES, 3, 3, 3], "values of each tag");
    Ok(())
}

#[test]
fn a_log_that_cannot_be_written_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let mut outputs = quiet();
    outputs.callbacks.push(Box::new(StepLog::new(file.join("batches.csv"))));
    let ready = Setting::default().ready();
    let error = ready.trainer(&cpu(1)).expect("a run").fit(&mut outputs).expect_err("a file is no folder");
    assert!(matches!(error, Error::Report(report::Error::Io { .. })), "{error}");
}

#[test]
fn a_file_of_another_kind_ends_the_run_before_its_first_step() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let (outputs, run) = into_folder(folder.path());
    let config = TrainerConfig { max_steps: Some(12), ..Setting::default().config };
    let short = Setting { config, ..Setting::default() }.ready();
    short.trainer(&cpu(1))?.fit(&mut { outputs })?;
    let last = Checkpoint::load(run.last())?;
    for (name, text) in
        [("rows.csv", "x,y\n1,2\n"), ("rows.jsonl", "{\"x\": 1}\n"), ("notes.csv", "batch,epoch\n"), ("b.csv", "PNG")]
    {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        for from in [None, Some(&last)] {
            let n_batches = Rc::new(RefCell::new(0));
            let mut outputs = quiet();
            outputs.callbacks.push(Box::new(Batches(n_batches.clone())));
            outputs.callbacks.push(Box::new(StepLog::new(&path)));
            let ready = Setting::default().ready();
            let training = ready.trainer(&cpu(1))?;
            let ended = match from {
                None => training.fit(&mut outputs),
                Some(last) => training.resume(last, &mut outputs),
            };
            let error = ended.expect_err("it is not a log");
            assert!(matches!(&error, Error::Report(report::Error::Io { path: found, .. }) if *found == path), "{error}");
            assert_eq!((*n_batches.borrow(), fs::read_to_string(&path).expect("a file")), (0, text.to_owned()), "{name}");
        }
    }
    Ok(())
}

/// Counts the batches of a run.
struct Batches(Rc<RefCell<usize>>);

impl Callback for Batches {
    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        *self.0.borrow_mut() += batches.losses.len();
        Ok(())
    }
}

/// Requests a stop at a step.
struct StopsAt {
    step: usize,
    stop: StopFlag,
}

impl Callback for StopsAt {
    fn every_n_steps(&self) -> usize {
        self.step
    }
    fn on_step_end(&mut self, _: &RunView<'_>, step: &StepEnd) -> Result<(), Error> {
        if step.step == self.step {
            self.stop.request();
        }
        Ok(())
    }
}

/// Copies the run's folder when its `n`th checkpoint to resume from is on disk: what a kill at that moment leaves.
struct KilledAt {
    n: usize,
    folder: PathBuf,
    copy: PathBuf,
}

impl Callback for KilledAt {
    fn on_checkpoint(&mut self, _: &RunView<'_>, path: &Path) -> Result<(), Error> {
        if path.ends_with("last.safetensors") {
            self.n = self.n.wrapping_sub(1);
            if self.n == 0 {
                copy_folder(&self.folder, &self.copy);
            }
        }
        Ok(())
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if fs::copy(entry.path(), target).is_err() {
            assert!(!entry.path().exists(), "a temporary file may be gone");
        }
    }
}

/// Everything that the logs of a run in `folder` say, without times.
fn logged(folder: &Path) -> BTreeMap<&'static str, String> {
    let mut logged: BTreeMap<&str, String> = ["logs/batches.csv", "logs/batches.jsonl", "metrics.csv", "metrics.json"]
        .map(|name| (name, fs::read_to_string(folder.join(name)).expect(name)))
        .into();
    logged.insert("events", format!("{:#?}", scalars(&folder.join("events"))));
    let html = fs::read_to_string(folder.join("report.html")).expect("a report");
    let figures = html.find("<dl class=\"figures\">").zip(html.find("</dl>")).expect("figures");
    let kept =
        html[figures.0..figures.1].split("<div").filter(|figure| !figure.contains(">Time<") && !figure.contains("per second"));
    logged.insert("report", format!("{}{:?}{}", &html[..figures.0], kept.collect::<Vec<_>>(), &html[figures.1..]));
    logged
}

/// The folder of a run is always called the same, so that reports have the same title.
fn folder_in(root: &Path) -> (Outputs<'static>, RunFolder) {
    let (outputs, folder) = into_folder(root);
    (logging(outputs, folder.path()), folder)
}

/// Interrupts a run of three epochs of eight batches as `interrupt` says, resumes it from the folder that this returns, and
/// compares all logs with those of a run without interruption.
#[track_caller]
fn check_logs(config: TrainerConfig, interrupt: impl Fn(&Setting, &Path) -> PathBuf) -> Result<(), Error> {
    let (setting, device) = (Setting { config, ..Setting::default() }, cpu(1));
    let [whole, parts] = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
    let (mut outputs, folder) = folder_in(whole.path());
    setting.ready().trainer(&device)?.fit(&mut outputs)?;
    let expected = logged(folder.path());

    let path = interrupt(&setting, parts.path());
    let folder = RunFolder::create_at(&path)?;
    for time in ["resumed", "resumed again when it was finished"] {
        let last = Checkpoint::load(folder.last())?;
        let outputs = Outputs { folder: Some(folder.clone()), ..quiet() };
        setting.ready().trainer(&device)?.resume(&last, &mut logging(outputs, folder.path()))?;
        for (name, found) in logged(folder.path()) {
            assert_eq!(found, expected[name], "{name}, {time}, {:?}", setting.config);
        }
    }
    Ok(())
}

/// A stop request after step `step`.
fn stopped(step: usize) -> impl Fn(&Setting, &Path) -> PathBuf {
    move |setting, root| {
        let (mut outputs, folder) = folder_in(root);
        outputs.callbacks.push(Box::new(StopsAt { step, stop: outputs.stop.clone() }));
        match setting.ready().trainer(&cpu(1)).expect("a run").fit(&mut outputs) {
            Ok(report) => assert_eq!(report.ended, Ended::Stopped, "at step {step}"),
            Err(error) => assert!(matches!(error, Error::NoEpoch { .. }), "{error}"),
        }
        folder.path().to_owned()
    }
}

/// A kill when checkpoint `n` is on disk.
fn killed(n: usize) -> impl Fn(&Setting, &Path) -> PathBuf {
    move |setting, root| {
        let (mut outputs, folder) = folder_in(&root.join("before"));
        let copy = root.join("after").join(folder.path().file_name().expect("a name"));
        outputs.callbacks.push(Box::new(KilledAt { n, folder: folder.path().to_owned(), copy: copy.clone() }));
        setting.ready().trainer(&cpu(1)).expect("a run").fit(&mut outputs).expect("it is only copied");
        copy
    }
}

/// The end of a limit of steps, which a resumed run does not have.
fn limited(max_steps: usize) -> impl Fn(&Setting, &Path) -> PathBuf {
    move |setting, root| {
        let (mut outputs, folder) = folder_in(root);
        let config = TrainerConfig { max_steps: Some(max_steps), ..setting.config.clone() };
        let report = Setting { config, ..setting.clone() }.ready().trainer(&cpu(1)).expect("a run").fit(&mut outputs);
        assert_eq!(report.expect("it has steps").ended, Ended::MaxSteps, "it ends by its limit");
        folder.path().to_owned()
    }
}

#[test]
fn logs_and_report_of_a_resumed_run_are_those_of_one_without_interruption() -> Result<(), Error> {
    let config = || Setting::default().config;
    let within = || TrainerConfig { validate_within_epoch: Some(ValidationInterval::Batches(3)), ..config() };
    for step in [1, 5, 8, 11, 23] {
        check_logs(config(), stopped(step))?;
    }
    check_logs(within(), stopped(12))?;
    // Steps of two batches and the last one of one: four steps per epoch.
    check_logs(TrainerConfig { accumulate: 3, ..config() }, stopped(4))?;
    for n in [1, 3, 5, 6] {
        check_logs(TrainerConfig { checkpoint_every: 3, ..config() }, killed(n))?;
    }
    check_logs(within(), killed(4))?;
    for max_steps in [3, 8, 13] {
        check_logs(config(), limited(max_steps))?;
    }
    check_logs(within(), limited(10))
}

#[test]
fn the_report_of_a_resumed_run_has_all_epochs() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder");
    let (mut outputs, folder) = folder_in(root.path());
    let setting = Setting::default();
    setting.ready().trainer(&cpu(1))?.fit(&mut outputs)?;
    let page = || fs::read_to_string(folder.path().join("report.html")).expect("a report");
    assert!(page().contains("3 epochs on"), "the whole run");
    // Without a history in the checkpoint, a finished run's report stays as it is.
    let before = page();
    let (mut quiet_outputs, other) = into_folder(&root.path().join("other"));
    setting.ready().trainer(&cpu(1))?.fit(&mut quiet_outputs)?;
    let last = Checkpoint::load(other.last())?;
    setting.ready().trainer(&cpu(1))?.resume(&last, &mut logging(quiet(), folder.path()))?;
    assert_eq!(page(), before);
    Ok(())
}

/// Notes what it is told of steps, and checks the gradients that the device has then.
#[derive(Clone)]
struct Steps {
    every: usize,
    noted: Rc<RefCell<Vec<usize>>>,
    n_told: Rc<RefCell<usize>>,
    has_norms: bool,
}

impl Callback for Steps {
    fn every_n_steps(&self) -> usize {
        self.every
    }
    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        let expected = if self.has_norms { batches.losses.len() } else { 0 };
        assert_eq!(batches.grad_norms.len(), expected, "norms as asked");
        *self.n_told.borrow_mut() += batches.losses.len();
        Ok(())
    }
    fn on_step_end(&mut self, run: &RunView<'_>, step: &StepEnd) -> Result<(), Error> {
        self.noted.borrow_mut().push(step.step);
        assert_eq!(run.first_batch() as usize + step.batch, *self.n_told.borrow(), "its batches are told before");
        assert_eq!(step.grad_norm.is_some(), self.has_norms, "as asked");
        let grads: Vec<f32> = run.device.read(run.params.grads())?;
        let norm = grads.iter().map(|grad| grad * grad).sum::<f32>().sqrt();
        if let Some(found) = step.grad_norm {
            assert!((found - norm).abs() <= 1e-4 * norm, "{found}, expected {norm}");
        }
        Ok(())
    }
}

/// The steps of which a callback that asks for every `every`th is told, of three epochs of eight batches.
#[track_caller]
fn check_steps(every: usize, config: TrainerConfig, expected: &[usize]) -> Result<(), Error> {
    let has_norms = config.record_grad_norms;
    let steps = Steps { every, noted: Rc::default(), n_told: Rc::default(), has_norms };
    let (mut outputs, setting) = (quiet(), Setting { config, ..Setting::default() });
    outputs.callbacks.push(Box::new(steps.clone()));
    let report = setting.ready().trainer(&cpu(1))?.fit(&mut outputs)?;
    assert_eq!(*steps.noted.borrow(), expected, "every {every}, {:?}", setting.config);
    assert_eq!(*steps.n_told.borrow(), 24, "each batch once");
    let without = TrainerConfig { record_grad_norms: false, ..setting.config.clone() };
    let without = Setting { config: without, ..setting }.ready().fit(&cpu(1))?.0;
    assert_eq!(report.history, without.history, "training is the same");
    Ok(())
}

#[test]
fn callbacks_are_told_of_the_steps_they_ask_for() -> Result<(), Error> {
    let config = |record_grad_norms| TrainerConfig { record_grad_norms, ..Setting::default().config };
    check_steps(0, config(true), &[])?;
    check_steps(5, config(false), &[5, 10, 15, 20])?;
    check_steps(5, config(true), &[5, 10, 15, 20])?;
    check_steps(100, config(true), &[])?;
    // Three steps per epoch, the last of two batches.
    check_steps(2, TrainerConfig { accumulate: 3, ..config(true) }, &[2, 4, 6, 8])?;
    check_steps(1, TrainerConfig { accumulate: 8, ..config(true) }, &[1, 2, 3])
}

#[test]
fn a_recorded_norm_is_that_before_clipping() -> Result<(), Error> {
    let clip = Some(GradientClip::Norm(1e-3));
    let config = TrainerConfig { record_grad_norms: true, clip, ..Setting::default().config };
    struct Norms(Rc<RefCell<Vec<f32>>>);
    impl Callback for Norms {
        fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
            self.0.borrow_mut().extend(batches.grad_norms);
            Ok(())
        }
    }
    let (mut outputs, norms) = (quiet(), Rc::default());
    outputs.callbacks.push(Box::new(Norms(Rc::clone(&norms))));
    Setting { config, ..Setting::default() }.ready().trainer(&cpu(1))?.fit(&mut outputs)?;
    let norms = norms.borrow();
    assert!(norms.len() == 24 && norms.iter().all(|norm| *norm > 1e-2), "{norms:?}");
    Ok(())
}
