//! The `data_parallel` example as ranks of an MPI job, and jobs that lose ranks or receive signals.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use brisk_train::Checkpoint;

use crate::data_parallel_cli::{Place, check_same_auc};
use crate::example::built;
#[cfg(feature = "all-formats")]
use crate::run::noise;

#[path = "../../../crates/replicate/tests/it/mpi/two_hosts.rs"]
pub(crate) mod two_hosts;

/// The example on two ranks.
fn two_ranks() -> Command {
    let mut command = Command::new(built("launch"));
    command.args(["-n", "2"]).arg(built("data_parallel"));
    command
}

#[test]
fn processes_come_to_the_auc_of_one_device_and_the_bits_of_threads() {
    let place = Place::new();
    let alone = place.results("higgs", &[]);
    place.results("data_parallel", &["--out", "threads"]);
    for folder in ["ranks", "again"] {
        let mut command = place.prepared(two_ranks(), &["--out", folder, "--json", "ranks.json"]);
        let output = command.output().expect("launch starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("rank 0: cpu") && said.contains("rank 1: cpu"), "who they are: {said}");
        assert_eq!(said.matches("epoch 3/3").count(), 1, "one of them shows progress: {said}");
        let run = place.json("ranks.json");
        check_same_auc(&run, &alone);
        assert!(run["n_replicas"] == 2 && run["engine"].as_str().is_some_and(|engine| engine.contains("MPI")), "{run}");
        assert!(place.best(folder) == place.best("threads"), "bit for bit");
    }
}

#[test]
fn two_hosts_come_to_the_auc_of_one_device_and_the_bits_of_threads() {
    let Some(mut command) = two_hosts::two_hosts() else { return };
    let place = Place::new();
    let alone = place.results("higgs", &[]);
    place.results("data_parallel", &["--out", "threads"]);
    command.arg(built("launch")).args(["-n", "2", "--hosts", "host0:1,host1:1"]).arg(built("data_parallel"));
    let output = place.prepared(command, &["--out", "hosts", "--json", "hosts.json"]).output().expect("`timeout` starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("on host0, process") && said.contains("on host1, process"), "one rank on each: {said}");
    check_same_auc(&place.json("hosts.json"), &alone);
    assert!(place.best("hosts") == place.best("threads"), "bit for bit");
}

/// One of the hosts has the server, whose rows the other reads over the network between them.
#[cfg(feature = "all-formats")]
#[test]
fn two_hosts_that_stream_from_a_server_come_to_the_bits_of_threads() {
    let what = "two hosts that read from a server";
    let (Some(mut command), Some(rclone)) = (two_hosts::two_hosts(), crate::rclone::Rclone::program(what)) else { return };
    let place = Place::new();
    let rows = (0..30_000).map(|row| [0, 1, 2].map(|column| noise(row, column)));
    let rows = rows.map(|[a, b, c]| format!("{},{a},{b},{c}\n", u8::from(a + 0.3 * b > 0.0))).collect::<String>();
    fs::create_dir(place.path("served")).expect("it is new");
    place.write("rows.csv", format!("y,a,b,c\n{rows}"));
    let imported = place.command("import", &["rows.csv", "served/t", "--shard-rows", "12000"]).output().expect("it runs");
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let train = |table: &'static str| ["--train", table, "--test", table, "--stream", "16", "--batch", "1024"];
    let threads = place.results("data_parallel", &[&train("served/t")[..], &["--out", "threads"]].concat());

    let script = r#""$0" serve http --config /dev/null --addr 10.77.0.1:8080 served >log 2>&1 & exec "$@""#;
    command.args(["sh", "-c", script, rclone]).arg(built("launch"));
    command.args(["-n", "2", "--hosts", "host0:1,host1:1"]).arg(built("data_parallel"));
    let args = ["--out", "hosts", "--json", "hosts.json", "--cache", "blocks"];
    let output = place.prepared(command, &[&train("http://10.77.0.1:8080/t")[..], &args].concat()).output();
    let said = output.as_ref().map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).expect("`timeout` starts");
    assert!(output.expect("it has started").status.success(), "{said}");
    assert!(said.contains("on host0, process") && said.contains("on host1, process"), "one rank on each: {said}");
    assert!(said.contains("MiB from servers") && said.contains("by 2 ranks"), "{said}");
    assert!(place.best("hosts") == place.best("threads"), "bit for bit");
    assert_eq!(place.json("hosts.json")["test_auc"], threads["test_auc"], "the scores of the test rows");
}

#[test]
fn what_is_wrong_for_all_ranks_is_no_lost_rank() {
    let place = Place::new();
    for (args, status, part) in [
        (&["--devices", "nosuch"][..], 1, "error: no device `nosuch`"),
        (&["--replicas", "3"], 1, "error: --replicas is 3, but 2 processes were started"),
        (&["--batch", "1"], 2, "error: --batch 1 leaves some of 2 replicas without a row"),
        (&["--nosuch"], 2, "error: unexpected argument '--nosuch'"),
    ] {
        let output = place.prepared(two_ranks(), args).output().expect("launch starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(status) && said.contains(part), "{args:?}: {:?} {said}", output.status);
    }
}

/// Two ranks with different options: `options` is in shell syntax, where `$RANK` is the rank.
#[track_caller]
fn check_refused_ranks(place: &Place, options: &str, words: &[&str]) {
    let mut command = Command::new(built("launch"));
    // The options of a run begin with `--rows`, which is for simulated rows.
    let without_rows = if options.contains("--train") { "shift 2;" } else { "" };
    let script = format!(r#"RANK=$OMPI_COMM_WORLD_RANK; {without_rows} exec "$0" "$@" {options}"#);
    command.args(["-n", "2", "/bin/sh", "-c", &script]).arg(built("data_parallel"));
    let output = place.prepared(command, &[]).output().expect("launch starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{options}: {said}");
    assert!(words.iter().all(|words| said.contains(words)), "{options}: {said}");
    assert!(!said.contains("epoch 1/3"), "{options}: nothing was trained: {said}");
}

#[test]
fn ranks_with_other_options_are_told_which_option_differs() {
    let place = Place::new();
    let between = |what: &str, mine: &str, theirs: &str| {
        format!("error: {what} differs between rank 0 and rank 1: {mine} against {theirs}; start all ranks with the same program")
    };
    check_refused_ranks(&place, "--batch $((64 + RANK))", &[&between("--batch", "64", "65")]);
    check_refused_ranks(&place, "--lr 0.$((1 + RANK))", &[&between("--lr", "0.1", "0.2")]);
    check_refused_ranks(&place, "--wire $([ $RANK = 0 ] && echo f32 || echo f16)", &[&between("--wire", "f32", "f16")]);
    check_refused_ranks(&place, "--zero $RANK", &[&between("--zero", "0", "1")]);
    check_refused_ranks(&place, "$([ $RANK = 0 ] && echo --stream 8)", &["error: --stream differs between rank 0 and rank 1: "]);
    let files = "--checkpoint-files $([ $RANK = 0 ] && echo one || echo each)";
    check_refused_ranks(&place, files, &[&between("--checkpoint-files", "one", "one_a_replica")]);
}

#[test]
fn ranks_with_other_rows_are_refused_before_training() {
    let place = Place::new();
    let row = |i: usize, label: usize| format!("{label},{},{}\n", i as f32 * 0.37, (i * i % 101) as f32);
    let table = |inverted: Option<usize>| -> String {
        (0..200).map(|i| row(i, (i / 3 % 2) ^ usize::from(inverted == Some(i)))).collect()
    };
    // Rank 1 has one inverted label: first in its training rows, then in its test rows.
    for (name, rank_1) in [("a0", None), ("a1", Some(77)), ("b0", None), ("b1", None), ("t0", None), ("t1", Some(5))] {
        fs::write(place.path(format!("{name}.csv")), table(rank_1)).expect("there is room");
    }
    // The row is among the nine tenths to train on, or those held out; each rank imports into a separate folder.
    let folder = "--data-dir data$RANK";
    let train = format!("--train a$RANK.csv --test b$RANK.csv {folder}");
    check_refused_ranks(&place, &train, &["rows` differs between rank 0 and rank 1: ", "rows of 2 columns with digest "]);
    let test = format!("--train b$RANK.csv --test t$RANK.csv {folder}");
    let words = ["`test rows` differs between rank 0 and rank 1: 200 rows of 2 columns with digest "];
    check_refused_ranks(&place, &test, &words);
}

/// A run that takes seconds, so that it can be disturbed.
const LONG: [&str; 10] = ["--rows", "4000", "--batch", "20", "--epochs", "12", "--patience", "0", "--checkpoint-every", "20"];

/// A job under `launch` whose standard error goes to a file.
struct Job {
    child: Child,
    said: PathBuf,
}

impl Job {
    fn start(place: &Place, restarts: &[&str], name: &str, more: &[&str]) -> Self {
        let said = place.path(format!("{name}.said"));
        let mut command = Command::new(built("launch"));
        command.args(["-n", "3"]).args(restarts).arg(built("data_parallel"));
        let json = format!("{name}.json");
        let mut command = place.prepared(command, &[&LONG[..], &["--out", name, "--json", &json], more].concat());
        let child = command.stderr(File::create(&said).expect("there is room")).spawn().expect("launch starts");
        Self { child, said }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).expect("the file was made")
    }

    /// The process that was rank `rank` when the job was last started.
    fn process_of(&self, rank: usize) -> Option<String> {
        let said = self.said();
        let line = said.lines().rfind(|line| line.starts_with(&format!("rank {rank}: ")))?;
        line.rsplit_once(", process ").map(|(_, process)| process.to_owned())
    }
}

/// Kills rank 1 once there is a checkpoint from within an epoch, after more than `past` epochs; returns its epoch and batch.
fn kill_within_an_epoch(place: &Place, job: &mut Job, name: &str, past: usize) -> (usize, usize) {
    let since = Instant::now();
    loop {
        assert!(since.elapsed() < Duration::from_secs(120), "no checkpoint within an epoch: {}", job.said());
        assert!(matches!(job.child.try_wait(), Ok(None)), "it ended too early: {}", job.said());
        let last = Checkpoint::load(place.path(name).join("last.safetensors"));
        let at = last.ok().and_then(|last| Some((last.metadata("epoch", "").ok()?, last.metadata("batch", "").ok()?)));
        if let (Some(at), Some(process)) = (at.filter(|at| *at > (past, 0)), job.process_of(1)) {
            send(&process, "-KILL");
            return at;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(process: &str, signal: &str) {
    let sent = Command::new("kill").args([signal, process]).status().expect("there is `kill`");
    assert!(sent.success(), "process {process} is running");
}

/// Waits until a run has started in the folder `name`, and nothing has been saved yet.
fn wait_for_start(place: &Place, job: &mut Job, name: &str) {
    let since = Instant::now();
    while !place.path(name).join("config.json").exists() {
        assert!(since.elapsed() < Duration::from_secs(120), "it does not start: {}", job.said());
        assert!(matches!(job.child.try_wait(), Ok(None)), "it ended too early: {}", job.said());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// With one epoch, so that the first checkpoint is the last.
const ONE_EPOCH: [&str; 4] = ["--epochs", "1", "--checkpoint-every", "0"];

#[test]
fn a_job_that_lost_a_rank_before_its_first_checkpoint_starts_again() {
    let place = Place::new();
    place.results("data_parallel", &[&LONG[..], &ONE_EPOCH, &["--replicas", "3", "--out", "undisturbed"]].concat());
    let mut job = Job::start(&place, &["--restarts", "1"], "disturbed", &ONE_EPOCH);
    wait_for_start(&place, &mut job, "disturbed");
    send(&job.process_of(1).expect("it has said so"), "-KILL");
    let status = job.child.wait().expect("it ends");
    let said = job.said();
    assert!(status.success(), "{said}");
    assert!(said.contains("restart 1 of 1") && said.contains("in disturbed: starting from the start"), "{said}");
    assert!(place.best("disturbed") == place.best("undisturbed"), "bit for bit");
}

#[test]
fn a_job_of_which_one_rank_is_asked_to_end_has_the_status_of_the_signal() {
    let place = Place::new();
    let mut job = Job::start(&place, &[], "asked", &["--epochs", "1000000"]);
    wait_for_start(&place, &mut job, "asked");
    send(&job.process_of(1).expect("it has said so"), "-TERM");
    let status = job.child.wait().expect("it ends");
    let said = job.said();
    assert!(status.code() == Some(143) && said.contains("a checkpoint was written to asked/last.safetensors"), "{status} {said}");
}

/// Slurm and Kubernetes send the signal to every process of a job.
#[test]
fn a_job_that_is_asked_to_end_keeps_what_was_trained() {
    let place = Place::new();
    let mut job = Job::start(&place, &[], "asked", &["--epochs", "1000000"]);
    wait_for_start(&place, &mut job, "asked");
    (0..3).for_each(|rank| send(&job.process_of(rank).expect("each has said so"), "-TERM"));
    job.child.wait().expect("it ends");
    let said = job.said();
    assert!(said.contains("a checkpoint was written to asked/last.safetensors"), "{said}");
    assert!(said.contains("to resume: start the job again with --resume asked/last.safetensors"), "{said}");
    Checkpoint::load(place.path("asked/last.safetensors")).expect("it is intact");
}

#[test]
fn a_job_that_lost_ranks_is_bit_identical_to_one_that_did_not() {
    let place = Place::new();
    place.results("data_parallel", &[&LONG[..], &["--replicas", "3", "--out", "undisturbed"]].concat());
    let mut job = Job::start(&place, &["--restarts", "3"], "disturbed", &[]);
    let (epoch, _) = kill_within_an_epoch(&place, &mut job, "disturbed", 0);
    // The first process of rank 1 has ended; the next one belongs to the second start.
    let since = Instant::now();
    while job.said().matches("resuming from ").count() < 1 {
        assert!(since.elapsed() < Duration::from_secs(60), "it is not started again: {}", job.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_within_an_epoch(&place, &mut job, "disturbed", epoch + 1);
    let status = job.child.wait().expect("it ends");
    let said = job.said();
    assert!(status.success(), "{said}");
    assert!(said.contains("rank 1 on ") && said.contains("was killed by signal 9"), "{said}");
    assert_eq!(said.matches("resuming from disturbed/last.safetensors").count(), 2, "{said}");
    assert!(said.contains("restart 2 of 3: -n 3"), "{said}");
    assert!(place.best("disturbed") == place.best("undisturbed"), "bit for bit");
}

#[test]
fn a_job_that_lost_a_rank_resumes_with_fewer() {
    let place = Place::new();
    let undisturbed = place.results("data_parallel", &[&LONG[..], &["--replicas", "3", "--out", "undisturbed"]].concat());
    let mut job = Job::start(&place, &["--restart-ranks", "2"], "disturbed", &[]);
    kill_within_an_epoch(&place, &mut job, "disturbed", 1);
    let status = job.child.wait().expect("it ends");
    let said = job.said();
    assert!(status.success(), "{said}");
    assert!(said.contains("restart 1 of 1: -n 2") && said.contains("2 replicas by "), "{said}");
    let run = place.json("disturbed.json");
    let [ours, theirs] = [&run, &undisturbed].map(|results| results["test_auc"].as_f64().expect("a number"));
    assert!((ours - theirs).abs() < 1e-3, "test AUC {ours}, undisturbed {theirs}");
    assert_eq!((&run["n_replicas"], &run["epochs"]), (&2.into(), &undisturbed["epochs"]));
}
