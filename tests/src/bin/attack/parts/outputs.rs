//! Outputs that are inputs, links, devices, pipes or folders: refused before anything is written, or written as promised.

use std::fs;

use anyhow::{Context, Result, bail};

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::files::Snapshot;
use crate::report::Kind;
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::Outputs, weight: 0.0, prepare };

struct Outputs {
    training: Training,
    table: Vec<u8>,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("outputs-shared")?;
    let training = Training::prepare(attack, &dir, 200, 1)?;
    let ended = attack.program("import", &dir).arg(&training.train).arg("table.safetensors").start()?.wait()?;
    if !ended.success() {
        bail!("an undisturbed import fails: {ended}");
    }
    let table = fs::read(dir.join("table.safetensors")).context("an undisturbed import makes no table")?;
    Prepared::ready(Outputs { training, table })
}

/// What is at the path of an output. The input is `in.csv`, or the table `in.safetensors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Input,
    InputByOtherPath,
    LinkToInput,
    LinkToLinkToInput,
    HardLinkToInput,
    Folder,
    Device,
    LinkToDevice,
    Pipe,
    Socket,
    BelowFile,
    NoFolder,
}

const ALL: [At; 12] = [
    At::Input,
    At::InputByOtherPath,
    At::LinkToInput,
    At::LinkToLinkToInput,
    At::HardLinkToInput,
    At::Folder,
    At::Device,
    At::LinkToDevice,
    At::Pipe,
    At::Socket,
    At::BelowFile,
    At::NoFolder,
];

impl At {
    fn what(self) -> &'static str {
        match self {
            Self::Input => "the input",
            Self::InputByOtherPath => "the input by another path",
            Self::LinkToInput => "a link to the input",
            Self::LinkToLinkToInput => "a link to a link to the input",
            Self::HardLinkToInput => "a hard link to the input",
            Self::Folder => "a folder",
            Self::Device => "a device",
            Self::LinkToDevice => "a link to a device",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::BelowFile => "below a file",
            Self::NoFolder => "in a folder that is not there",
        }
    }

    /// Creates it and returns its path, or `None` if this machine does not allow it.
    #[cfg(unix)]
    fn lay(self, case: &Case<'_>, input: &str) -> Result<Option<String>> {
        use std::os::unix::fs::symlink;
        use std::os::unix::net::UnixListener;

        let at = case.path("at");
        // A separate device node for the case: a program that replaces `/dev/null` would break the machine.
        let made = |words: &[&str]| case.attack.tool("mknod", &case.dir).args(words).start()?.wait();
        match self {
            Self::Input => return Ok(Some(input.to_owned())),
            Self::InputByOtherPath => {
                fs::create_dir(case.path("sub"))?;
                return Ok(Some(format!("./sub/../{input}")));
            }
            Self::LinkToInput => symlink(input, at)?,
            Self::LinkToLinkToInput => {
                symlink(input, case.path("link"))?;
                symlink("link", at)?;
            }
            Self::HardLinkToInput => fs::hard_link(case.path(input), at)?,
            Self::Folder => fs::create_dir(at)?,
            Self::Device if !made(&["at", "c", "1", "3"])?.success() => return Ok(None),
            Self::LinkToDevice if !made(&["null", "c", "1", "3"])?.success() => return Ok(None),
            Self::Device => {}
            Self::LinkToDevice => symlink("null", at)?,
            Self::Pipe if !made(&["at", "p"])?.success() => return Ok(None),
            Self::Pipe => {}
            Self::Socket => drop(UnixListener::bind(at)?),
            Self::BelowFile => return Ok(Some(format!("{input}/at"))),
            Self::NoFolder => return Ok(Some("no/such/folder/at".to_owned())),
        }
        Ok(Some("at".to_owned()))
    }

    #[cfg(not(unix))]
    fn lay(self, _: &Case<'_>, _: &str) -> Result<Option<String>> {
        Ok(None)
    }
}

/// Programs and the options that take the path of an output.
const WAYS: [&str; 5] = ["import OUT", "import --json", "inspect --json", "higgs --json", "data_parallel --json"];

/// Cases in addition to all pairs of [`ALL`] and [`WAYS`].
const OTHERS: [fn(&Outputs, &mut Case<'_>) -> Result<()>; 5] = [
    Outputs::link_to_old_table,
    Outputs::link_to_nothing,
    Outputs::json_is_table,
    Outputs::full_standard_output,
    Outputs::run_folder_is_file,
];

impl Cases for Outputs {
    fn n_listed(&self) -> u64 {
        (ALL.len() * WAYS.len() + OTHERS.len()) as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        fs::copy(&self.training.train, case.path("in.csv")).context("cannot copy the rows")?;
        fs::write(case.path("in.safetensors"), &self.table).context("cannot write the table")?;
        let index = case.index as usize;
        if let Some(other) = index.checked_sub(ALL.len() * WAYS.len()) {
            return OTHERS[other % OTHERS.len()](self, case);
        }
        let (at, way) = (ALL[index / WAYS.len()], WAYS[index % WAYS.len()]);
        let input = if way == "inspect --json" { "in.safetensors" } else { "in.csv" };
        let Some(path) = at.lay(case, input)? else { return Ok(()) };
        let before = Snapshot::take(&case.dir);
        let (name, option) = way.split_once(' ').context("a way has two words")?;
        let run = case.program(name);
        let run = match (name, option) {
            ("import", "OUT") => run.args(["in.csv", &path]),
            ("import", _) => run.args(["in.csv", "out.safetensors", "--json", &path]),
            ("inspect", _) => run.args(["in.safetensors", "--json", &path]),
            ("higgs", _) => self.training.options(run).replaced("--train", "in.csv").args(["--runs", "runs", "--json", &path]),
            _ => self.training.replicas(run).replaced("--train", "in.csv").args(["--json", &path]),
        };
        let ended = case.refuse(run, &format!("{way} is {} and is not refused", at.what()))?;
        self.check_untouched(case, &before, &format!("{way} is {}", at.what()), &ended);
        Ok(())
    }
}

impl Outputs {
    /// Checks that the inputs and the output are unchanged, and that no other file was created.
    fn check_untouched(&self, case: &mut Case<'_>, before: &Snapshot, what: &str, ended: &crate::run::Ended) {
        let changes = before.changes(&Snapshot::take(&case.dir));
        let (lost, new): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| !change.ends_with(" is new"));
        if !lost.is_empty() {
            case.find(Kind::Loss, format!("files are destroyed where {what}"), format!("{}\n{ended}", lost.join(", ")));
        }
        if !new.is_empty() && !ended.success() {
            case.find(
                Kind::Wrong,
                format!("files are made before a refusal where {what}"),
                format!("{}\n{ended}", new.join(", ")),
            );
        }
    }

    /// A link to a table is followed: the table is replaced, and the link stays.
    #[cfg(unix)]
    fn link_to_old_table(&self, case: &mut Case<'_>) -> Result<()> {
        fs::create_dir(case.path("elsewhere"))?;
        fs::write(case.path("elsewhere/old.safetensors"), b"old")?;
        std::os::unix::fs::symlink("elsewhere/old.safetensors", case.path("at.safetensors"))?;
        let run = case.program("import").args(["in.csv", "at.safetensors"]);
        if let Some(ended) = case.succeed(run, "import fails where its output is a link to a table")? {
            let is_link = fs::symlink_metadata(case.path("at.safetensors")).is_ok_and(|at| at.is_symlink());
            let found = fs::read(case.path("elsewhere/old.safetensors")).ok();
            let followed = is_link && found.is_some_and(|found| found.len() == self.table.len());
            case.expect(followed, Kind::Wrong, "import replaces a link rather than the table it leads to", &ended);
            let dir = case.dir.clone();
            case.check_no_leftovers(&dir, "import leaves files behind where its output is a link", &ended);
        }
        Ok(())
    }

    /// A link to a file that does not exist: the file is created, or the link is refused.
    #[cfg(unix)]
    fn link_to_nothing(&self, case: &mut Case<'_>) -> Result<()> {
        std::os::unix::fs::symlink("new.safetensors", case.path("at.safetensors"))?;
        let run = case.program("import").args(["in.csv", "at.safetensors"]);
        let ended = case.end(run)?;
        let is_link = fs::symlink_metadata(case.path("at.safetensors")).is_ok_and(|at| at.is_symlink());
        case.expect(is_link, Kind::Wrong, "import replaces a link that leads nowhere", &ended);
        Ok(())
    }

    #[cfg(not(unix))]
    fn link_to_old_table(&self, _: &mut Case<'_>) -> Result<()> {
        Ok(())
    }

    #[cfg(not(unix))]
    fn link_to_nothing(&self, _: &mut Case<'_>) -> Result<()> {
        Ok(())
    }

    /// The JSON file is the table itself.
    fn json_is_table(&self, case: &mut Case<'_>) -> Result<()> {
        let before = Snapshot::take(&case.dir);
        let run = case.program("import").args(["in.csv", "out.safetensors", "--json", "./out.safetensors"]);
        let ended = case.refuse(run, "import takes one path for the table and for --json")?;
        self.check_untouched(case, &before, "import has one path for the table and for --json", &ended);
        Ok(())
    }

    /// Results that cannot be printed are an error, not a panic.
    fn full_standard_output(&self, case: &mut Case<'_>) -> Result<()> {
        let runs = [
            case.program("import").args(["in.csv", "out.safetensors"]),
            case.program("inspect").arg("in.safetensors"),
            case.program("import").arg("--help"),
            self.training.options(case.program("higgs")),
            self.training.replicas(case.program("data_parallel")),
        ];
        for run in runs {
            let line = run.line();
            let ended = case.end(run.stdout("/dev/full"))?;
            let is_help = line.ends_with("--help");
            case.expect(is_help || ended.code() == Some(1), Kind::Wrong, "results are lost on a full standard output", &ended);
        }
        // A reader that closes the pipe must not cause a panic.
        for name in ["import", "inspect", "higgs", "data_parallel"] {
            let run = case.program(name).arg("--help").by(["sh", "-c", r#""$0" "$@" | true"#]);
            case.end(run)?;
        }
        Ok(())
    }

    /// Options that name a folder, given a file.
    fn run_folder_is_file(&self, case: &mut Case<'_>) -> Result<()> {
        let before = Snapshot::take(&case.dir);
        let runs = [
            self.training.options(case.program("higgs")).args(["--runs", "in.csv"]),
            self.training.options(case.program("higgs")).replaced("--data-dir", "in.csv"),
            self.training.ranks(case.program("data_parallel")).replaced("--out", "in.csv"),
        ];
        for run in runs {
            let ended = case.refuse(run, "a file is taken for a folder")?;
            let changes = before.changes(&Snapshot::take(&case.dir));
            let changed: Vec<_> = changes.into_iter().filter(|change| !change.starts_with("data")).collect();
            if !changed.is_empty() {
                case.find(Kind::Wrong, "files are made where a folder is a file", format!("{}\n{ended}", changed.join(", ")));
            }
        }
        Ok(())
    }
}
