//! A process with limited memory.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the system enforces the limit. Page cache counts in a control group, address space in a resource limit.
pub(crate) enum MemoryLimit {
    /// A control group that this process created, removed when this is dropped.
    Group(PathBuf),
    /// `ulimit -v`, if no group can be created.
    AddressSpace { n_bytes: usize },
}

impl MemoryLimit {
    /// In a control group, of either version, if this process may create one.
    pub(crate) fn new(n_bytes: usize) -> Self {
        let of_process = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let groups = of_process.lines().flat_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
            match controllers {
                "" => vec![(format!("/sys/fs/cgroup{path}"), "memory.max")],
                "memory" => ["", path].map(|path| (format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes")).to_vec(),
                _ => Vec::new(),
            }
        });
        let name = format!("brisk-bench-{}", std::process::id());
        let mut made = groups.filter_map(|(parent, file)| group(&Path::new(&parent).join(&name), file, n_bytes));
        made.next().unwrap_or(Self::AddressSpace { n_bytes })
    }

    /// The name of the limit, for the report.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Group(_) => "a control group",
            Self::AddressSpace { .. } => "ulimit -v",
        }
    }

    /// The program with the limit from its start: a shell enters the group, or sets its limit, and then becomes the program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut shell = Command::new("sh");
        match self {
            Self::Group(folder) => {
                shell.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(folder.join("cgroup.procs"));
            }
            Self::AddressSpace { n_bytes } => {
                shell.args(["-c", r#"ulimit -v "$0" && exec "$@""#]).arg((n_bytes / 1024).to_string());
            }
        }
        shell.arg(program);
        shell
    }
}

/// A new group with that limit; `None` if it cannot be created, or does not support such a limit.
fn group(folder: &Path, file: impl AsRef<OsStr>, n_bytes: usize) -> Option<MemoryLimit> {
    fs::create_dir(folder).ok()?;
    let group = MemoryLimit::Group(folder.to_owned());
    // Dropped, and thereby removed, if this fails.
    fs::write(folder.join(file.as_ref()), n_bytes.to_string()).ok().map(|()| group)
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        if let Self::Group(folder) = self {
            let _ = fs::remove_dir(folder);
        }
    }
}
