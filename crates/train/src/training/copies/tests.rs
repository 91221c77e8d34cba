use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::*;

/// Objects in memory. Each request waits for the test, which says whether it fails.
#[derive(Debug)]
struct Memory {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    requests: SyncSender<String>,
    answers: Mutex<Receiver<bool>>,
}

impl Memory {
    fn ask(&self, request: String) -> Result<(), StoreError> {
        self.requests.send(request).expect("the test waits");
        let is_right = self.answers.lock().expect("one thread").recv().expect("the test answers");
        if is_right { Ok(()) } else { Err("refused".into()) }
    }
}

impl CheckpointStore for Memory {
    fn name_of(&self, object: &str) -> String {
        format!("memory:{object}")
    }

    fn put(&self, file: &Path, object: &str) -> Result<(), StoreError> {
        self.ask(format!("put {object}"))?;
        self.objects.lock().expect("one thread").insert(object.to_owned(), fs::read(file)?);
        Ok(())
    }

    fn read(&self, object: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.objects.lock().expect("one thread").get(object).cloned())
    }

    fn delete(&self, object: &str) -> Result<(), StoreError> {
        self.ask(format!("delete {object}"))?;
        self.objects.lock().expect("one thread").remove(object);
        Ok(())
    }
}

/// A folder with a log, a store, and both ends of its requests.
struct Run {
    folder: RunFolder,
    store: Arc<Memory>,
    requests: Receiver<String>,
    answers: SyncSender<bool>,
    copies: Copies,
    _dir: tempfile::TempDir,
}

impl Run {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = RunFolder::create_at(dir.path()).expect("it is there");
        fs::write(folder.metrics_csv(), "epoch\n").expect("there is room");
        let ((requests, requested), (answers, answered)) = (sync_channel(0), sync_channel(0));
        let store = Arc::new(Memory { objects: Mutex::default(), requests, answers: Mutex::new(answered) });
        let copies = Copies::start(store.clone(), &folder).expect("threads can be started");
        Self { folder, store, requests: requested, answers, copies, _dir: dir }
    }

    /// Writes a checkpoint and submits it.
    fn write(&self, path: &Path, bytes: &str, replaced: &[PathBuf]) {
        fs::write(path, bytes).expect("there is room");
        self.copies.queue.add(path, replaced);
    }

    /// The next request is this one, and ends like this.
    #[track_caller]
    fn expect(&self, request: &str, is_right: bool) {
        assert_eq!(self.requests.recv().expect("the thread runs"), request);
        self.answers.send(is_right).expect("the thread waits");
    }

    fn objects(&self) -> Vec<(String, String)> {
        let text = |(name, bytes): (&String, &Vec<u8>)| (name.clone(), String::from_utf8_lossy(bytes).into_owned());
        self.store.objects.lock().expect("no other thread").iter().map(text).collect()
    }
}

fn failure(object: &str) -> Failure {
    Failure { object: format!("memory:{object}"), reason: "refused".to_owned() }
}

#[test]
fn the_log_comes_first_and_only_the_newest_is_sent() {
    let mut run = Run::start();
    let [last, kept, other] = [run.folder.last(), run.folder.best_of(1, "auc", 0.5), run.folder.best_of(2, "auc", 0.6)];
    run.write(&last, "1", &[]);
    // The thread has begun with the first.
    assert_eq!(run.requests.recv().expect("the thread runs"), "put metrics.csv");
    run.write(&kept, "k", &[]);
    run.write(&last, "2", &[]);
    run.write(&other, "o", std::slice::from_ref(&kept));
    run.write(&last, "3", &[]);
    fs::remove_file(&kept).expect("it is there");
    run.answers.send(true).expect("the thread waits");
    run.expect("put last.safetensors", true);
    run.expect("put epoch-2-auc-0.6.safetensors", true);
    run.expect("delete epoch-1-auc-0.5.safetensors", true);
    run.expect("put last.safetensors", true);
    assert_eq!((run.copies.wait(), run.copies.new_failures()), (vec![], vec![]));
    let expected = [("epoch-2-auc-0.6.safetensors", "o"), ("last.safetensors", "3"), ("metrics.csv", "epoch\n")];
    assert_eq!(run.objects(), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

#[test]
fn what_failed_is_told_once_and_tried_again() {
    let mut run = Run::start();
    let [best, last] = [run.folder.best(), run.folder.last()];
    run.write(&best, "1", &[]);
    run.expect("put metrics.csv", true);
    run.expect("put best.safetensors", false);
    assert_eq!(run.copies.wait(), [failure("best.safetensors")]);
    assert_eq!(run.copies.new_failures(), [failure("best.safetensors")]);
    for _ in 0..2 {
        run.write(&last, "1", &[]);
        run.expect("put best.safetensors", false);
        run.expect("put last.safetensors", true);
        assert_eq!((run.copies.wait(), run.copies.new_failures()), (vec![failure("best.safetensors")], vec![]));
    }
    run.write(&last, "2", &[]);
    run.expect("put best.safetensors", true);
    run.expect("put last.safetensors", true);
    assert_eq!(run.copies.wait(), []);
    // Now it is new.
    run.write(&best, "2", &[]);
    run.expect("put best.safetensors", false);
    assert_eq!(
        (run.copies.wait(), run.copies.new_failures()),
        (vec![failure("best.safetensors")], vec![failure("best.safetensors")])
    );
}

#[test]
fn without_the_log_no_checkpoint_is_sent() {
    let mut run = Run::start();
    let last = run.folder.last();
    run.write(&last, "1", &[]);
    run.expect("put metrics.csv", false);
    assert_eq!((run.copies.wait(), run.objects()), (vec![failure("metrics.csv")], vec![]));
    fs::write(run.folder.metrics_csv(), "epoch\n0\n").expect("there is room");
    run.write(&last, "2", &[]);
    run.expect("put metrics.csv", true);
    run.expect("put last.safetensors", true);
    assert_eq!((run.copies.wait(), run.objects().len()), (vec![], 2));
}

#[test]
fn a_single_file_takes_the_place_of_several() {
    let mut run = Run::start();
    let index = |name: &str| {
        let map = [1, 2].map(|n| (format!("tensor.{n}"), format!("{name}-7-0000{n}-of-00002.safetensors")));
        Index::new(7, BTreeMap::from(map))
    };
    let [last, old] = [run.folder.last(), run.folder.best_of(1, "auc", 0.5)];
    for path in [&last, &old] {
        let object = object_of(path);
        let index = index(object.trim_end_matches(".safetensors"));
        index.save(path).expect("there is room");
        let mut objects = run.store.objects.lock().expect("no other thread");
        objects.extend(index.files().into_iter().map(|file| (file.to_owned(), Vec::new())));
        let index = Index::path_of(path);
        objects.insert(object_of(&index), fs::read(index).expect("it is there"));
    }
    run.write(&last, "1", std::slice::from_ref(&old));
    run.expect("put metrics.csv", true);
    run.expect("put last.safetensors", true);
    // Until all files are removed, the index is there to find them.
    run.expect("delete last-7-00001-of-00002.safetensors", false);
    let removed = |name: &str| {
        let files = index(name).files().into_iter().map(str::to_owned).collect::<Vec<_>>();
        files.iter().for_each(|file| run.expect(&format!("delete {file}"), true));
        run.expect(&format!("delete {name}.safetensors.index.json"), true);
    };
    run.expect("delete epoch-1-auc-0.5.safetensors", true);
    removed("epoch-1-auc-0.5");
    run.write(&last, "2", &[]);
    run.expect("put last.safetensors", true);
    removed("last");
    assert_eq!(run.copies.wait(), []);
    let expected = [("last.safetensors", "2"), ("metrics.csv", "epoch\n")];
    assert_eq!(run.objects(), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
}
