//! Disks that fill up at a random moment: the program reports an error, leaves no half-written file, and keeps the last good one.

use std::fs;

use anyhow::{Context, Result};

use super::import_kills::Import;
use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::files;
use crate::report::Kind;
use crate::run::Run;
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::FullDisk, weight: 1.0, prepare };

/// Mounts a disk of `$1` bytes at `$2`, copies `$3` onto it, runs the rest there, and copies what is left to `$4`.
const ON_DISK: &str = r#"
size=$1 disk=$2 before=$3 after=$4; shift 4
mount -t tmpfs -o "size=$size" none "$disk" || exit 97
cp -a "$before/." "$disk/" || exit 98
cd "$disk" || exit 98
"$@"
status=$?
cp -a "$disk/." "$after/" || exit 99
exit $status"#;

/// As root, and as a user who may make namespaces.
const NAMESPACES: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--user", "--map-root-user", "--mount"]];

/// Writes of files beyond `$1` bytes fail.
const LIMITED: &str = r#"ulimit -f $(($1 / 1024)); shift; trap '' XFSZ; exec "$@""#;

struct FullDisk {
    /// The command that creates a mount namespace, where that is allowed.
    namespace: Option<&'static [&'static str]>,
    import: Import,
    training: Training,
    /// The size of the files of a whole run.
    n_run_bytes: u64,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("full-disk-shared")?;
    let is_possible = |by: &&&[&str]| {
        let mount = format!("mount -t tmpfs none {}", dir.display());
        let ended = attack.tool("sh", &dir).args(["-c", &mount]).by(**by).start().and_then(crate::run::Running::wait);
        ended.is_ok_and(|ended| ended.success())
    };
    let namespace = NAMESPACES.iter().find(is_possible).copied();
    let import = Import::prepare(attack, "full-disk")?;
    let training = Training::prepare(attack, &dir, 300, 3)?;
    let n_run_bytes = n_bytes(&dir.join("run"))? + n_bytes(&dir.join("data"))?;
    Prepared::ready(FullDisk { namespace, import, training, n_run_bytes })
}

fn n_bytes(dir: &std::path::Path) -> Result<u64> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    entries.map(|entry| Ok(entry?.metadata()?.len().next_multiple_of(4096))).sum()
}

impl FullDisk {
    /// Runs in the case's folder with `n_bytes` of free space, either on a small disk, whose files are then moved to that folder,
    /// or with limited files.
    fn run_on_small_disk(&self, case: &mut Case<'_>, run: Run, n_bytes: u64) -> Result<crate::run::Ended> {
        let on_disk = match self.namespace {
            Some(namespace) if case.rng.u8(..4) > 0 => namespace,
            _ => {
                let words = ["sh", "-c", LIMITED, "sh"].map(Into::into).into_iter().chain([n_bytes.to_string().into()]);
                return case.end(run.by::<std::ffi::OsString>(words));
            }
        };
        for name in ["disk", "before", "after"] {
            fs::create_dir(case.path(name))?;
        }
        for entry in fs::read_dir(&case.dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::rename(entry.path(), case.path("before").join(entry.file_name()))?;
            }
        }
        let path = |name: &str| case.path(name).into_os_string();
        let words = on_disk.iter().chain(&["sh", "-c", ON_DISK, "sh"]).map(Into::into);
        let words = words.chain([n_bytes.to_string().into(), path("disk"), path("before"), path("after")]);
        let ended = case.end(run.by::<std::ffi::OsString>(words))?;
        for name in ["disk", "before"] {
            fs::remove_dir_all(case.path(name))?;
        }
        for entry in fs::read_dir(case.path("after"))? {
            let entry = entry?;
            fs::rename(entry.path(), case.dir.join(entry.file_name()))?;
        }
        fs::remove_dir(case.path("after"))?;
        Ok(ended)
    }

    fn import(&self, case: &mut Case<'_>) -> Result<()> {
        const DISTURBANCE: &str = "a full disk";
        let old = self.import.lay_old(case)?;
        let before = old.map_or(0, <[u8]>::len) as u64;
        let n_bytes = before + 8192 + case.rng.u64(..self.import.new.len() as u64 * 5 / 4);
        let run = self.import.run(case);
        let run = if case.rng.bool() { run.args(["--json", "out.json"]) } else { run };
        let ended = self.run_on_small_disk(case, run, n_bytes)?;
        self.import.check_old_or_new(case, old, DISTURBANCE, &ended);
        if ended.success() {
            let found = fs::read(case.path("out.safetensors")).ok();
            case.expect(found.as_ref() == Some(&self.import.new), Kind::Wrong, "import succeeds on a full disk", &ended);
        }
        self.check_left(case, &ended)?;
        let run = self.import.run(case);
        self.import.finish(case, run, DISTURBANCE)
    }

    fn training(&self, case: &mut Case<'_>) -> Result<()> {
        let run = self.training.replicas(case.program("data_parallel")).args(["--resume", "auto", "--json", "out.json"]);
        let n_bytes = 8192 + case.rng.u64(..self.n_run_bytes * 3 / 2);
        let ended = self.run_on_small_disk(case, run, n_bytes)?;
        self.check_left(case, &ended)?;
        self.training.finish(case, "a full disk")
    }

    /// Checks that there are no half-written and no temporary files.
    fn check_left(&self, case: &mut Case<'_>, ended: &crate::run::Ended) -> Result<()> {
        let damaged = files::damaged(&case.dir);
        if !damaged.is_empty() {
            let what = format!("{} leaves a half-written file on a full disk", ended.name);
            case.find(Kind::Loss, what, format!("{}\n{ended}", damaged.join(", ")));
        }
        let dir = case.dir.clone();
        case.check_no_leftovers(&dir, &format!("{} leaves files behind on a full disk", ended.name), ended);
        Ok(())
    }
}

impl Cases for FullDisk {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        if case.rng.bool() { self.import(case) } else { self.training(case) }
    }
}
