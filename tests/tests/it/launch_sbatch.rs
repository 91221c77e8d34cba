//! The script for Slurm: its directives, its syntax, and its behaviour, with launchers and an scontrol that are scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

const SCRIPT: &str = include_str!("../../../examples/launch/data_parallel.sbatch");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/launch/data_parallel.sbatch");

/// Options of sbatch that are useful for a script like this, and whether each takes a value.
#[rustfmt::skip]
const OPTIONS: [(&str, bool); 18] = [
    ("account", true), ("cpus-per-task", true), ("error", true), ("exclusive", false), ("gpus-per-node", true), ("gpus-per-task", true),
    ("job-name", true), ("mem", true), ("mem-per-cpu", true), ("no-requeue", false), ("nodes", true), ("ntasks", true),
    ("ntasks-per-node", true), ("open-mode", true), ("output", true), ("partition", true), ("requeue", false), ("time", true),
];

/// What is wrong with the directives, if anything.
fn finding(script: &str) -> Option<String> {
    if !script.starts_with("#!/") {
        return Some("the first line names no shell".to_owned());
    }
    // sbatch reads no further than the first command.
    let n_read = script.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    script.lines().zip(0..).find_map(|(line, at)| {
        let option = line.strip_prefix("#SBATCH")?;
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let known = OPTIONS.iter().find(|(known, _)| name.strip_prefix(" --") == Some(*known));
        match known {
            _ if at >= n_read => Some(format!("sbatch does not read `{line}`, which is after a command")),
            None => Some(format!("`{line}` is no option of sbatch")),
            Some((_, takes)) => (*takes != value.is_some_and(|value| !value.is_empty() && !value.contains(['$', ' '])))
                .then(|| format!("`{line}`: the value is missing, or cannot be taken as it is")),
        }
    })
}

#[test]
fn sbatch_knows_the_directives() {
    assert_eq!(finding(SCRIPT), None);
    assert!(SCRIPT.contains("#SBATCH --requeue\n"), "a lost job comes back");
    let check = |from: &str, to: &str, part: &str| {
        let found = finding(&SCRIPT.replacen(from, to, 1)).unwrap_or_default();
        assert!(SCRIPT.contains(from) && found.contains(part), "`{found}`, expected `{part}`");
    };
    check("#!/bin/bash", "", "names no shell");
    check("--nodes=2", "--hosts=2", "`#SBATCH --hosts=2` is no option");
    check("--nodes=2", "--nodes=", "value is missing");
    check("--job-name=brisk", "--job-name=$USER", "cannot be taken as it is");
    check("#SBATCH --time", "cd runs\n#SBATCH --time", "after a command");
}

#[test]
fn the_shell_reads_it() {
    let output = Command::new("bash").args(["-n", PATH]).output().expect("bash is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the script with launchers that end with `status`, after this many restarts; returns its status, and what was called.
fn run(status: i32, n_restarts: u32, variables: &[(&str, &str)]) -> (Option<i32>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder for a while");
    for (name, status) in [("srun", status), ("mpirun", status), ("scontrol", 0)] {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\necho \"{name} $*\" >> calls\nexit {status}\n")).expect("it is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args([PATH, "--epochs", "2"]).current_dir(folder.path()).envs(variables.iter().copied());
    bash.envs([("PATH", path.as_str()), ("SLURM_JOB_ID", "17"), ("SLURM_CPUS_PER_TASK", "8")]);
    bash.env("SLURM_RESTART_COUNT", n_restarts.to_string());
    let status = bash.output().expect("bash is there").status.code();
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap_or_default();
    (status, calls.lines().map(String::from).collect())
}

#[test]
fn a_lost_job_is_put_back_into_the_queue() {
    const STARTED: &str = "target/release/examples/data_parallel --out runs/slurm-17 --resume auto --epochs 2";
    let by_srun = format!("srun --mpi=pmix --cpu-bind=cores --kill-on-bad-exit=1 {STARTED}");
    let requeued = "scontrol requeue 17".to_owned();
    assert_eq!(run(0, 0, &[]), (Some(0), vec![by_srun.clone()]));
    assert_eq!(run(1, 0, &[]), (Some(1), vec![by_srun.clone()]), "a wrong option stays wrong");
    assert_eq!(run(75, 0, &[]), (Some(75), vec![by_srun.clone(), requeued.clone()]));
    assert_eq!(run(137, 2, &[]), (Some(137), vec![by_srun.clone(), requeued.clone()]));
    assert_eq!(run(137, 3, &[]), (Some(137), vec![by_srun]), "three times are enough");
    let by_mpirun = format!("mpirun --map-by slot:PE=8 {STARTED}");
    assert_eq!(run(75, 0, &[("LAUNCHER", "mpirun")]), (Some(75), vec![by_mpirun, requeued]));
    assert_eq!(run(0, 0, &[("LAUNCHER", "ssh")]), (Some(1), vec![]));
}
