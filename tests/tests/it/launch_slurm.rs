//! The script for Slurm with Slurm itself: a controller and two nodes on this machine.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::installed::{Need, installed};

/// The programs that check job files.
pub(crate) const JOBS: Need = ["BRISK_TEST_JOBS", "jobs"];

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/launch/data_parallel.sbatch");

/// Daemons with a folder of their own. They end with this value.
struct Slurm {
    daemons: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Slurm {
    /// `None`, after a message, if it is not installed, or this is not root, who may start jobs as any user.
    fn start(what: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            _ = writeln!(std::io::stderr(), "NOT RUN: {what}: Slurm's daemons are started by root");
            return None;
        }
        let programs = ["munged", "slurmctld", "slurmd", "sbatch"];
        let are_there = programs.map(|program| installed(&[program], &["-V"], "", JOBS, what).is_some());
        if are_there.contains(&false) {
            return None;
        }
        let mut slurm = Self { daemons: Vec::new(), folder: tempfile::tempdir().expect("a temporary folder") };
        let at = |name: &str| slurm.folder.path().join(name).display().to_string();
        let key = (0..1024).map(|_| fastrand::u8(..)).collect::<Vec<_>>();
        fs::write(at("key"), key).expect("there is room");
        fs::set_permissions(at("key"), fs::Permissions::from_mode(0o600)).expect("it is ours");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux says its name");
        let host = host.trim().split('.').next().unwrap_or_default();
        let free: [TcpListener; 3] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("there is a free port"));
        let [of_controller, of_first, of_second] = free.map(|free| free.local_addr().expect("it is bound").port());
        let folder = slurm.folder.path().display();
        let node =
            |name: &str, port: u16| format!("NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16\n");
        let nodes = [node("n1", of_first), node("n2", of_second)].concat();
        let config = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={of_controller}\nSlurmUser=root\n\
             AuthInfo=socket={folder}/munge\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool-%n\n\
             SlurmctldPidFile={folder}/controller.pid\nSlurmdPidFile={folder}/%n.pid\n\
             SlurmctldLogFile={folder}/controller.log\nSlurmdLogFile={folder}/%n.log\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             SlurmdParameters=config_overrides\n{nodes}PartitionName=all Nodes=n[1-2] Default=YES\n"
        );
        fs::write(at("slurm.conf"), config).expect("there is room");
        fs::create_dir(at("state")).expect("there is room");
        let munged = [
            ("key-file", "key"),
            ("socket", "munge"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "seed"),
        ];
        let munged = munged.map(|(option, name)| format!("--{option}={}", at(name)));
        let munged: Vec<&str> = ["--foreground", "--force"].into_iter().chain(munged.iter().map(String::as_str)).collect();
        slurm.daemon("munged", &munged);
        slurm.until("munged listens", |slurm| slurm.folder.path().join("munge").exists());
        slurm.daemon("slurmctld", &["-D"]);
        ["n1", "n2"].into_iter().for_each(|node| slurm.daemon("slurmd", &["-D", "-N", node]));
        slurm.until("both nodes are idle", |slurm| slurm.said("sinfo", &["-h", "-t", "idle", "-o", "%D"]).1.trim() == "2");
        Some(slurm)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf")).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn daemon(&mut self, program: &str, args: &[&str]) {
        let started = self.command(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.daemons.push(started.expect("it is installed"));
    }

    /// Whether a command succeeds, and its output.
    fn said(&self, program: &str, args: &[&str]) -> (bool, String) {
        let Output { status, stdout, stderr } = self.command(program).args(args).output().expect("it is installed");
        (status.success(), [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat())
    }

    #[track_caller]
    fn until(&self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let since = Instant::now();
        while !is_true(self) {
            let logs = || ["controller.log", "n1.log", "n2.log", "munge.log"].map(|log| self.file(log)).concat();
            assert!(since.elapsed() < Duration::from_secs(60), "never: {what}\n{}", logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            _ = daemon.kill();
            _ = daemon.wait();
        }
    }
}

#[test]
fn slurm_takes_the_script_and_starts_a_lost_job_again() {
    let Some(slurm) = Slurm::start("the script with Slurm itself") else { return };
    let (is_taken, said) = slurm.said("sbatch", &["--test-only", SCRIPT]);
    assert!(is_taken && said.contains("to start at") && said.contains("using 32 processors on nodes n[1-2]"), "{said}");
    let script = fs::read_to_string(SCRIPT).expect("it is there");
    for (from, to, part) in [
        ("--nodes=2", "--hosts=2", "unrecognized option '--hosts=2'"),
        ("--time=04:00:00", "--time=soon", "Invalid --time"),
        ("--nodes=2", "--nodes=3", "Requested node configuration is not available"),
    ] {
        let path = slurm.folder.path().join("wrong.sbatch");
        fs::write(&path, script.replacen(from, to, 1)).expect("there is room");
        let (is_taken, said) = slurm.said("sbatch", &["--test-only", &path.to_string_lossy()]);
        assert!(!is_taken && said.contains(part), "{to}: {said}");
    }

    // The first time, a rank is lost. Two nodes on one machine cannot start ranks by PMIx together, so both ranks are on one.
    let program = slurm.folder.path().join("program");
    let text = "#!/bin/sh\necho rank $PMIX_RANK of $SLURM_NTASKS, start ${SLURM_RESTART_COUNT:-0}: \"$@\"\n\
                [ \"${SLURM_RESTART_COUNT:-0}\" -gt 0 ] || exit 75\n";
    fs::write(&program, text).expect("there is room");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (job, output) = run(&slurm, &program);
    for start in [0, 1] {
        for rank in [0, 1] {
            let line = format!("rank {rank} of 2, start {start}: --out runs/slurm-{job} --resume auto --epochs 2\n");
            assert!(output.contains(&line), "{line}{output}");
        }
    }
}

/// The number of a job, and its output until it has succeeded.
fn run(slurm: &Slurm, program: &Path) -> (String, String) {
    let mut sbatch = slurm.command("sbatch");
    sbatch.args(["--nodes=1", "--cpus-per-task=1", SCRIPT, "--epochs", "2"]).env("PROGRAM", program);
    let sbatch = sbatch.output().expect("it is installed");
    let said = String::from_utf8_lossy(&sbatch.stdout).into_owned();
    assert!(sbatch.status.success(), "{said}{}", String::from_utf8_lossy(&sbatch.stderr));
    let job = said.trim().rsplit(' ').next().expect("a number").to_owned();
    slurm.until("the job has succeeded", |slurm| {
        let (_, state) = slurm.said("scontrol", &["show", "job", &job]);
        if state.contains("Reason=BeginTime") {
            // Slurm would wait for two minutes.
            slurm.said("scontrol", &["update", &format!("JobId={job}"), "StartTime=now"]);
        }
        state.contains("JobState=COMPLETED")
    });
    let output = slurm.file(&format!("brisk-{job}.out"));
    (job, output)
}
